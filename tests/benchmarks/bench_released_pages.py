"""False changes and edits seen on real pages: documentation of two releases of a package, before and after.

All pages are visited with the old release, then with the new one; in the order of their names, and shuffled. A page
counts as edited if the words of its article differ, the two release numbers made alike; of pages whose bytes are the
same nothing is counted.

Usage: python -m tests.benchmarks.bench_released_pages OLD_FOLDER NEW_FOLDER --article CSS --releases 1.3.3 1.3.4
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from random import Random

from lxml import html

from crawlsched.change_detection import LivingBlocks, Recipe, VisibleText, recipe
from tests.noisy_pages import Counts, Judge

SITE = "https://docs.example/d/"


def pages_of(folder: Path) -> dict[str, bytes]:
    """Return the pages below a folder, by their names."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.html"))}


def words_of_article(body: bytes, article: str, releases: list[str]) -> list[str]:
    """Return what the article says, release numbers made alike."""
    tree = html.fromstring(body)
    for element in tree.xpath("//body//script | //body//style | //body//comment()"):
        element.drop_tree()
    found = tree.cssselect(article)
    if not found:
        return []
    words = " ".join(element.text_content() for element in found).split()
    return ["#" if any(release in word for release in releases) else word for word in words]


def released(
    two: tuple[dict[str, bytes], dict[str, bytes]], edited: set[str], names: list[str], by: Recipe, *, siblings: bool
) -> tuple[Counts, list[str], list[str]]:
    """Visit all pages with both releases; return the counts, the pages wrongly changed, and the edits not seen."""
    rng = Random(1)
    release = 0
    judge = Judge(by, rng)
    if siblings:

        def world(url: str) -> tuple[bytes, int]:
            name = url.removeprefix(SITE)
            return two[release][name], release if name in edited else 0

        judge.world = world
    for release in (0, 1):
        for name in names:
            if siblings:
                judge.look(SITE + name)
            else:
                body = two[release][name]
                fetch: Callable[[], bytes] = lambda body=body: body  # type: ignore[misc]  # noqa: E731
                judge.visit(SITE + name, fetch, edited=bool(release) and name in edited)
    found = {url.removeprefix(SITE) for url in judge.found_changed}
    return judge.counts, sorted(found - edited), sorted(edited - found)


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs=2, type=Path)
    parser.add_argument("--article", required=True, help="CSS selector of the article")
    parser.add_argument("--releases", nargs=2, required=True)
    parser.add_argument("--name", action="store_true", help="name the pages that were judged wrongly")
    parser.add_argument("--default-only", action="store_true", help="leave the other recipes out")
    parser.add_argument("--shuffled", type=int, default=3, help="in how many other orders")
    given = parser.parse_args()
    two = pages_of(given.folders[0]), pages_of(given.folders[1])
    common = [name for name in two[0] if name in two[1]]
    differ = [name for name in common if two[0][name] != two[1][name]]
    articles = [[words_of_article(pages[name], given.article, given.releases) for name in differ] for pages in two]
    edited = {name for name, old, new in zip(differ, *articles, strict=True) if old != new}
    empty = sum(not old or not new for old, new in zip(*articles, strict=True))
    print(f"{len(common)} pages of both releases, {len(differ)} differ, {len(edited)} edited, {empty} without article")
    print(f"{'':44s}{'false':>8s}{'of':>6s}{'seen':>8s}{'of':>6s}{'requests':>10s}")
    by_name = LivingBlocks()
    rows: list[tuple[str, Recipe, bool, int]] = [
        ("each page by itself", recipe("blocks", template_edits=True), False, -1),
        ("visible text", VisibleText(), False, -1),
        ("the article by a selector", recipe("blocks", keep=[given.article], template_edits=True), False, -1),
        ("default, without siblings", by_name, False, -1),
        ("default", by_name, True, -1),
        *((f"default, shuffled ({seed})", by_name, True, seed) for seed in range(given.shuffled)),
    ]
    for title, by, siblings, seed in rows[3 * given.default_only :]:
        names = Random(seed).sample(common, len(common)) if seed >= 0 else common
        counts, wrong, missed = released(two, edited, names, by, siblings=siblings)
        false = sum(name in differ for name in wrong)
        n_requests = counts.visits + counts.probes - len(common)
        print(
            f"{title:44s}{false:8d}{len(differ) - len(edited):6d}{len(edited) - len(missed):8d}{len(edited):6d}"
            f"{n_requests:10d}",
            flush=True,
        )
        if given.name:
            print(f"    false: {' '.join(wrong[:12])}\n    not seen: {' '.join(missed[:12])}")


if __name__ == "__main__":
    main()
