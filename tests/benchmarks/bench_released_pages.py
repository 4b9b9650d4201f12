"""False changes and edits seen on real pages: documentation of two releases of a package, before and after.

All pages are visited with the old release, then with the new one; in the order of their names, and shuffled. A page
counts as edited if the words of its article differ. Of pages whose bytes are the same nothing is counted.

What a page says beside its article, or without one (a site map, a manual page of another tool), is its own where the
same text has come or gone on fewer than three pages, the release numbers made alike. A page without an article is
edited if that differs. One whose article is as it was, and that has another link to the next page, is neither edited
nor as it was: a reader of the page sees it, and one of the article does not. Such pages are counted by themselves.

Usage: python -m tests.benchmarks.bench_released_pages OLD_FOLDER NEW_FOLDER --article CSS --releases 1.3.3 1.3.4
"""

import argparse
import re
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random

from lxml import html

from crawlsched.jobs.recorded import RecordedVisit, judge_all

SITE, START = "https://docs.example/d/", 1_700_000_000.0
# What has come or gone on so many pages alike is the site's.
_SHARED = 3


def pages_of(folder: Path, largest: int | None = None) -> dict[str, bytes]:
    """Return the pages below a folder, by their names; those of at most so many bytes."""
    pages = {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.html"))}
    return {name: body for name, body in pages.items() if largest is None or len(body) < largest}


def words_of_article(body: bytes, article: str) -> list[str]:
    """Return what the article says."""
    return " ".join(element.text_content() for element in _read(body).cssselect(article)).split()


def texts_of_page(body: bytes, releases: list[str]) -> Counter[str]:
    """Return the texts between the tags of a page, release numbers made alike: 1.3 stands for 1.3.4, too."""
    texts = (" ".join(str(text).split()) for text in _read(body).itertext())
    numbers = re.compile(rf"\b(?:{'|'.join(map(re.escape, releases))})(?:\.\d+)*")
    return Counter(numbers.sub("#", text) for text in texts if text)


def _read(body: bytes) -> html.HtmlElement:
    tree = html.fromstring(body)
    for element in tree.xpath("//script | //style | /*//comment() | //head/*[not(self::title)]"):
        element.drop_tree()
    return tree


def edited_pages(
    two: tuple[dict[str, bytes], dict[str, bytes]], names: list[str], article: str, releases: list[str]
) -> tuple[set[str], set[str], int]:
    """Return the pages that were edited, those that were in what is no article, and how many have no article."""
    articles = {name: [words_of_article(pages[name], article) for pages in two] for name in names}
    differ: dict[str, set[tuple[str, int]]] = {}
    for name in names:
        old, new = (texts_of_page(pages[name], releases) for pages in two)
        differ[name] = {*(old - new).items(), *(new - old).items()}  # how often counts: a list beside the navigation
    n_pages = Counter(text for texts in differ.values() for text in texts)
    own = {name for name, texts in differ.items() if any(n_pages[text] < _SHARED for text in texts)}
    without = {name for name, both in articles.items() if not all(both)}
    edited = {name for name, (old_words, new_words) in articles.items() if old_words != new_words} - without
    edited |= own & without
    return edited, own - edited, len(without)


def released(
    two: tuple[dict[str, bytes], dict[str, bytes]], names: list[str], **settings: object
) -> tuple[set[str], int]:
    """Visit all pages with both releases; return those whose second one is told as a change, and all requests."""
    visits = [
        RecordedVisit(START + 60.0 * number, SITE + name, two[release][name], content_type="text/html; charset=utf-8")
        for number, (release, name) in enumerate(product((0, 1), names))
    ]
    judged = list(judge_all(visits, settings))
    found = {row.url.removeprefix(SITE) for row in judged if row.delivered and row.kind not in ("first", "template")}
    return found, len(visits) + sum(row.probes for row in judged)


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs=2, type=Path)
    parser.add_argument("--article", required=True, help="CSS selector of the article")
    parser.add_argument("--releases", nargs=2, required=True)
    parser.add_argument("--name", action="store_true", help="name the pages that were judged wrongly")
    parser.add_argument("--default-only", action="store_true", help="leave the other recipes out")
    parser.add_argument("--largest", type=int, help="only pages whose old release has fewer bytes")
    parser.add_argument("--shuffled", type=int, default=3, help="in how many other orders")
    given = parser.parse_args()
    two = pages_of(given.folders[0], given.largest), pages_of(given.folders[1])
    common = [name for name in two[0] if name in two[1]]
    differ = [name for name in common if two[0][name] != two[1][name]]
    edited, beside, n_without = edited_pages(two, differ, given.article, given.releases)
    print(f"{len(common)} pages of both releases, {len(differ)} differ, {n_without} without article")
    if given.name:
        print(f"    beside the article: {' '.join(sorted(beside))}")
    print(f"{'':36s}{'false':>8s}{'of':>5s}{'seen':>7s}{'of':>5s}{'beside':>8s}{'of':>5s}{'requests':>10s}")
    rows: list[tuple[str, dict[str, object], int]] = [
        ("visible text", {"FINGERPRINT": "visible_text"}, -1),
        ("the article by a selector", {"FINGERPRINT_KEEP": [given.article]}, -1),
        ("default", {}, -1),
        *((f"default, shuffled ({seed})", {}, seed) for seed in range(given.shuffled)),
    ]
    for title, settings, seed in rows[2 * given.default_only :]:
        names = Random(seed).sample(common, len(common)) if seed >= 0 else common
        found, n_requests = released(two, names, **settings)
        missed, n_beside = sorted(edited - found), len(beside & found)
        false = sorted(found.intersection(differ) - edited - beside)
        n_requests -= len(common)
        print(
            f"{title:36s}{len(false):8d}{len(differ) - len(edited) - len(beside):5d}"
            f"{len(edited) - len(missed):7d}{len(edited):5d}{n_beside:8d}{len(beside):5d}{n_requests:10d}",
            flush=True,
        )
        if given.name:
            print(f"    false: {' '.join(false[:12])}\n    not seen: {' '.join(missed[:12])}")


if __name__ == "__main__":
    main()
