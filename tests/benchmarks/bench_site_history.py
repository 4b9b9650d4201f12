"""False changes and edits seen on a built site with a history: every build of it, one after the other.

All pages are visited after each build, in one order. What a page's article says tells whether it was edited. Of pages
whose article stayed, those whose other texts came or went on three pages or more in the same build have another
template; the others differ beside their article, and either answer is right, or in their markup alone.

Usage: python -m tests.benchmarks.bench_site_history REPOSITORY REF --article CSS [--folder F]
"""

import argparse
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from crawlsched.jobs.recorded import JudgedVisit, RecordedVisit, judge_all
from tests.benchmarks.bench_released_pages import texts_of_page, words_of_article

DAY = 86_400.0
# What has come or gone on so many pages of a build alike is the site's.
_SHARED = 3
KINDS = ("own", "shared", "template", "beside", "markup", "no article")


def _git(repository: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(repository), *arguments], check=True, capture_output=True).stdout


def builds_of(
    repository: Path, ref: str, folder: str, n_builds: int, n_pages: int, but: str = "^$"
) -> Iterator[dict[str, bytes]]:
    """Yield the pages of the last builds in which any page changed, by their names, the oldest first."""
    commits = _git(repository, "log", "--first-parent", "--format=%H", f"-n{n_builds}", ref, "--", folder or ".")
    hashes = commits.decode().split()[::-1]
    listed = _git(repository, "ls-tree", "-r", "--name-only", ref, "--", folder or ".").decode().splitlines()
    names = [name for name in listed if name.endswith(".html") and not re.search(but, name)]
    names = sorted(Random(1).sample(names, min(n_pages, len(names))))
    for commit in hashes:
        there = {
            line.split("\t")[1]: line.split()[2]
            for line in _git(repository, "ls-tree", "-r", commit, "--", folder or ".").decode().splitlines()
        }
        yield {name: _git(repository, "cat-file", "blob", there[name]) for name in names if name in there}


def labels_of(before: dict[str, bytes], now: dict[str, bytes], article: str) -> dict[str, str]:
    """Say of each page of two builds whose bytes differ what differs; one of `KINDS`."""
    differ = {name: body for name, body in now.items() if name in before and before[name] != body}
    texts: dict[str, Counter[tuple[str, int]]] = {}
    words: dict[str, tuple[list[str], list[str]]] = {}
    for name, body in differ.items():
        try:
            old, new = texts_of_page(before[name], ["\0"]), texts_of_page(body, ["\0"])
            words[name] = words_of_article(before[name], article), words_of_article(body, article)
        except Exception:  # lxml: an empty document
            old, new, words[name] = Counter(), Counter(), ([], [])
        texts[name] = Counter([*((text, 1) for text in new - old), *((text, -1) for text in old - new)])
    n_pages = Counter(text for found in texts.values() for text in found)
    labels = {}
    for name in differ:
        one, two = words[name]
        is_shared = all(n_pages[text] >= _SHARED for text in texts[name])
        if not one or not two:
            labels[name] = "no article"
        elif one != two:
            labels[name] = "shared" if is_shared else "own"
        elif texts[name]:
            labels[name] = "template" if is_shared else "beside"
        else:
            labels[name] = "markup"
    return labels


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("ref")
    parser.add_argument("--article", required=True, help="CSS selector of the article")
    parser.add_argument("--folder", default="")
    parser.add_argument("--but", default="^$", help="regular expression of names that are left out")
    parser.add_argument("--builds", type=int, default=90)
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--name", action="store_true", help="name the pages that were judged wrongly")
    given = parser.parse_args()
    visits, labels, last = [], [], dict[str, bytes]()
    builds = builds_of(given.repository, given.ref, given.folder, given.builds, given.pages, given.but)
    for build, pages in enumerate(builds):
        label = labels_of(last, pages, given.article)
        for at, (name, body) in enumerate(pages.items()):
            time = 1_600_000_000.0 + build * DAY + at * 60.0
            visits.append(RecordedVisit(time, f"https://site.example/{name}", body, None, 200, "text/html"))
            labels.append(label.get(name, "" if name in last else "first"))
        last |= pages
    told: Counter[str] = Counter()
    seen = Counter(labels)
    probes = 0
    rows: list[tuple[str, JudgedVisit]] = list(zip(labels, judge_all(visits, {}), strict=True))
    for label, row in rows:
        probes += row.probes
        is_told = bool(row.delivered) and (row.kind != "template" or label in ("own", "shared"))
        told[label] += is_told
        wrong = is_told if label in ("template", "markup", "") else label in ("own", "shared") and not is_told
        if given.name and wrong:
            build = round((row.time - 1_600_000_000.0) // DAY)
            print(f"  {build:3d} {label or 'same':9s} {row.outcome:9s} {row.kind:9s} {row.url[21:]} {row.ignored[:90]}")
    for kind in (*KINDS, ""):
        print(f"{kind or 'the same bytes':15s} told {told[kind]:5d} of {seen[kind]:5d}")
    print(f"{probes} second fetches of {len(visits)} visits")


if __name__ == "__main__":
    main()
