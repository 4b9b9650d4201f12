"""Real pages before and after a release: what differs by the build alone, and what was edited.

By itself a page does not tell one from the other; the other pages of its site do.

tests/fixtures/released_pages says where they are from. Which were edited was found by reading what differs in them.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import pytest

from crawlsched.change_detection import Recipe
from crawlsched.change_detection.blocks import page_blocks
from crawlsched.change_detection.fingerprint import Fingerprint, sketch, sketch_similarity
from crawlsched.jobs.recorded import RecordedVisit, judge_all
from tests.kinds_of_change import WORDS

PAGES = Path(__file__).parents[2] / "fixtures" / "released_pages"
#: In the article of the newer release words are others: one of `front` (what a command is to be called with), a few of
#: the others. Release numbers and years are not in articles.
EDITED = {"alembic": ("front", "commands", "script", "tutorial"), "mako": ()}
#: Only release numbers, years, names of assets and markup differ.
BUILT_ANEW = {"alembic": ("overview", "config", "naming", "offline"), "mako": ("unicode", "filtering", "syntax")}
RELEASES = {"alembic": ("1.13.1", "1.13.2"), "mako": ("1.3.8", "1.3.9")}
ARTICLE = {"alembic": "div.body", "mako": "#docs-body"}
ALL = [(package, name) for group in (EDITED, BUILT_ANEW) for package, names in group.items() for name in names]


def _two(package: str, name: str) -> tuple[bytes, bytes]:
    before, after = (
        gzip.decompress((PAGES / f"{package}-{release}" / f"{name}.html.gz").read_bytes())
        for release in RELEASES[package]
    )
    return before, after


def _is_changed(package: str, name: str, by: Recipe) -> bool:
    url = f"https://{package}.example/{name}.html"
    before, after = (by.fingerprint(body, "text/html", "utf-8", url) for body in _two(package, name))
    assert before != Fingerprint.of(before.recipe, b"")
    return before.digest != after.digest


@pytest.mark.parametrize(("package", "name"), ALL)
def test_by_the_article_only_edited_pages_have_changed(package: str, name: str) -> None:
    """One selector for each site leaves no false change, and every edit is seen, the one of one word too."""
    assert _is_changed(package, name, Recipe("blocks", keep=[ARTICLE[package]])) == (name in EDITED[package])


@pytest.mark.parametrize(("package", "name"), ALL)
def test_without_a_selector_the_release_number_in_the_heading_is_a_change(package: str, name: str) -> None:
    """A reader sees it, and fetches seconds apart do not differ in it: one page alone does not tell."""
    assert _is_changed(package, name, Recipe("blocks"))


@pytest.mark.parametrize("package", RELEASES)
@pytest.mark.parametrize("seed", range(3))
def test_what_a_release_changes_on_all_pages_counts_once(package: str, seed: int) -> None:
    """In whatever order pages are visited: all edits are found, and at most three pages more; nothing is set."""
    rng = Random(seed)
    names = [*EDITED[package], *BUILT_ANEW[package]]
    order = [(release, name) for release in (0, 1) for name in rng.sample(names, len(names))]
    visits = [
        RecordedVisit(1.7e9 + 60.0 * number, f"https://{package}.example/{name}.html", _two(package, name)[release])
        for number, (release, name) in enumerate(order)
    ]
    judged = zip(order, judge_all(visits, {}, seed=seed), strict=True)
    found = {name for (_, name), row in judged if row.delivered and row.kind not in ("first", "template")}
    assert found >= {*EDITED[package]}
    assert len(found) <= len(EDITED[package]) + 3


@pytest.mark.parametrize("seed", range(3))
def test_pages_that_are_written_anew_between_all_visits_are_told_at_every_visit(seed: int) -> None:
    """Their text looks as noise that is slower than two fetches; whoever visits when pages change sees nothing else."""
    rng = Random(seed)

    def written() -> bytes:
        paragraphs = "".join(f"<p>{' '.join(rng.choices(WORDS, k=20))}</p>" for _ in range(rng.randrange(1, 4)))
        return f"<body><h1>The news</h1><main>{paragraphs}</main></body>".encode()

    visits = [
        RecordedVisit(1.7e9 + 60.0 * number, f"https://www.example.com/news/{number % 12}", written())
        for number in range(30 * 12)
    ]
    assert sum(row.kind not in ("", "first", "template") for row in judge_all(visits, {}, seed=seed)) == 29 * 12


@pytest.mark.parametrize("name", BUILT_ANEW["mako"])
def test_markup_that_no_reader_sees_is_no_change(name: str) -> None:
    """Two versions of the generator mark programs up otherwise; by blocks only those with the release number differ."""
    before, after = _two("mako", name)
    old, new = (page_blocks(body.decode()) for body in (before, after))
    differing = [text for said, text in zip(old.texts, new.texts, strict=True) if said != text]
    assert old.paths == new.paths
    assert before.count(b"<span") < after.count(b"<span")
    assert differing
    assert all("1.3.9" in text for text in differing)


def test_no_threshold_parts_a_new_build_from_an_edit() -> None:
    """`CRAWLSCHED_MIN_CHANGE` is for large pages and many small changes: a release number may be more of a page."""

    def change(package: str, name: str) -> float:
        before, after = (sketch("\n".join(page_blocks(body.decode()).texts)) for body in _two(package, name))
        return 1.0 - sketch_similarity(before, after)

    edits = [change(package, name) for package, names in EDITED.items() for name in names]
    builds = [change(package, name) for package, names in BUILT_ANEW.items() for name in names]
    assert min(edits) < 0.01 < 0.04 < max(builds)
