"""``crawlsched import FILE``: read pages, their importance, and visits of other crawlers from a file."""

import argparse
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import AT_ONCE, option, shown_progress
from crawlsched.cli.stores import n_shards_of, owner_now, signs_of_life
from crawlsched.cli.target import Target, find_or_make_target, why_forgotten
from crawlsched.exceptions import CrawlschedError
from crawlsched.jobs.url_lines import UrlLine, UrlLines
from crawlsched.wording import say_count

if TYPE_CHECKING:
    from crawlsched.crawl.collection import FoundPage
    from crawlsched.jobs.importing import Import, PastVisit, Requests
    from crawlsched.store import Store
    from crawlsched.store.forgetting import Tombstone

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]


ABOUT = """\
The file has a URL a line, or is CSV whose first line names its columns:
  url,importance          what a fresh copy is worth, 1 being usual
  url,time,changed        a visit that another crawler has made; changed is 1, 0 or empty
  url,time,digest         the same, with a digest of the content
Times are POSIX seconds, ISO 8601, or YYYYMMDDhhmmss. Other columns are ignored."""


HELP = "take pages, their importance and visits from a file"
EXAMPLES = ("crawlsched import visits.csv --collection news",)
OPTIONS = (option("FILE", "plain or .gz; - is standard input", Path),)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read the file and fill the collection; if a crawl runs, it gets the pages as commands."""
    if arguments.shard is not None:
        raise CrawlschedError("A file is imported into a whole collection; leave out --shard.")
    target = find_or_make_target(arguments)
    lines = UrlLines(arguments.file, time.time())
    if str(arguments.file) != "-" and not arguments.file.is_file():
        raise CrawlschedError(f"There is no file {str(arguments.file)!r}; name one, or - for standard input.")
    from crawlsched.jobs.importing import Requests
    from crawlsched.store import Store

    requests = Requests(arguments.project_settings, target.settings.ignore_parameters)
    with closing(Store.open(target.database, target.collection)) as store:
        if n_shards_of(store) is not None:
            raise CrawlschedError(
                f"Processes share the collection {store.name!r}, and nothing can be imported into it; let start() "
                "of its spider yield the pages: each process takes its own."
            )
        taken = _taken(store, target, lines, requests)
        # The exit code is 1 if all lines were wrong.
        arguments.exit_code = 1 if taken["lines_left_out"] and not taken["pages"] else 0
        return taken


def _taken(store: "Store", target: Target, lines: UrlLines, requests: "Requests") -> dict[str, Any]:
    from crawlsched.jobs.importing import Import

    forgotten_by: Counter[Tombstone] = Counter()

    def page_of(line: UrlLine) -> "FoundPage":
        page = requests.page_of(line.url, line.importance)
        if (stone := store.tombstones.covering(page.url)) is not None:
            forgotten_by[stone] += 1
        return page

    progress = shown_progress(f"Reading {lines.name}")
    if owner_now(store) is not None:
        running = RunningImport(store)
        for step in _steps(running, lines, page_of):
            progress(*step)
        running.finish()
        return _report(store, lines, running.counts, forgotten_by)
    settings = replace(target.settings, database_url=target.database, collection=target.collection)
    importing = Import(settings, requests, time.time())
    try:
        beat = signs_of_life(importing.lease)
        for step in _steps(importing, lines, page_of):
            progress(*step)
            beat()
        importing.finish()
    finally:
        importing.close()
    return _report(store, lines, importing.counts, forgotten_by)


def _report(
    store: "Store", lines: UrlLines, counts: dict[str, int], forgotten_by: "Counter[Tombstone]"
) -> dict[str, Any]:
    return {
        "collection": store.name,
        "database": store.database.name,
        "lines": lines.n,
        **counts,
        "forgotten_by": [stone._asdict() for stone, _ in forgotten_by.most_common(5)],
        "columns_ignored": list(lines.ignored),
        "lines_left_out": lines.n_wrong,
        "wrong": [{"line": number, "fault": fault} for number, fault in lines.wrong],
        "plan_made": counts["visits"] > 0,
    }


def _steps(
    importing: "Import | RunningImport", lines: UrlLines, page_of: "Callable[[UrlLine], FoundPage]"
) -> Iterator[tuple[int, int | None]]:
    named: list[FoundPage] = []
    visits = _Visits()
    for line in lines:
        if lines.has_visits and not importing.learns:
            raise CrawlschedError(
                "A crawl of this collection is running, and learns from its own visits. End it to import visits "
                "of others; pages and their importance can be imported while it runs."
            )
        if lines.has_visits:
            place = visits.places.get(line.url)
            if place is None or line.importance is not None:
                page = _page(line, page_of, lines)
                if page is None:
                    continue
                place = visits.places[line.url] = visits.place_of(page, named)
            visits.add(place, line)
        elif (page := _page(line, page_of, lines)) is not None:
            named.append(page)
            if len(named) == AT_ONCE:
                importing.take(named)
                named = []
        if lines.n % AT_ONCE == 0:
            yield lines.n, None
    if not lines.has_visits:
        importing.take(named)
        return
    in_order = visits.in_order()
    for start in range(0, len(named), AT_ONCE):
        some = named[start : start + AT_ONCE]
        importing.take(some, in_order(start, start + len(some)))
        yield start + len(some), len(named)


def _page(line: UrlLine, page_of: "Callable[[UrlLine], FoundPage]", lines: UrlLines) -> "FoundPage | None":
    try:
        return page_of(line)
    except ValueError as error:
        lines.leave_out(str(error))
        return None


class _Visits:
    """The visits of a file, in arrays, since a million visits would take 200 MB as objects."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self._of_fingerprint: dict[bytes, int] = {}
        self._place, self._time, self._changed, self._digest = array("q"), array("d"), array("b"), array("q")

    def place_of(self, page: "FoundPage", named: "list[FoundPage]") -> int:
        """Return the page's index in `named`; a new page gets the next index."""
        place = self._of_fingerprint.setdefault(page.request_fingerprint, len(named))
        if place == len(named):
            named.append(page)
        elif page.importance is not None:
            named[place] = page
        return place

    def add(self, place: int, line: UrlLine) -> None:
        """Note the visit of a line."""
        self._place.append(place)
        self._time.append(line.time or 0.0)
        self._changed.append(line.changed)
        self._digest.append(line.digest)

    def in_order(self) -> "Callable[[int, int], Iterable[PastVisit]]":
        """Sort the visits by page and time; return a function that finds those of the pages from `start` to `stop`."""
        import numpy as np

        columns = [np.array(column) for column in (self._place, self._time, self._changed, self._digest)]
        order = np.lexsort(columns[1::-1])
        place, *facts = (column[order] for column in columns)

        def between(start: int, stop: int) -> "Iterable[PastVisit]":
            of = slice(*np.searchsorted(place, [start, stop]))
            return zip((place[of] - start).tolist(), *(column[of].tolist() for column in facts), strict=True)

        return between


def say(report: dict[str, Any]) -> str:
    """Say what was imported, and list the wrong lines."""
    from crawlsched.store.forgetting import Tombstone

    known, now = report["pages"] - report["new"], time.time()
    lines = [
        f"{say_count(report['lines'], 'line')} read: {say_count(report['new'], 'new page')} in "
        f"{report['collection']!r}, {say_count(known, 'URL')} named again or known before."
    ]
    for name, thing, what in (
        ("weighed", "known page", "given another importance."),
        ("visits", "visit", "learned from, and a first plan made of them."),
        (
            *("visits_of_their_own", "page"),
            "had visits of their own already; their visits in the file were left out.",
        ),
        ("forgotten", "URL", "left out, since they were forgotten:"),
    ):
        if report[name]:
            lines.append(f"{say_count(report[name], thing)} {what}")
    if report["forgotten"]:
        lines += [f"  {why_forgotten(Tombstone(**stone), now)}" for stone in report["forgotten_by"]]
    if report["too_many"]:
        lines.append(
            f"{say_count(report['too_many'], 'URL')} left out: CRAWLSCHED_MAX_PAGES, or max_pages of a rule in "
            "CRAWLSCHED_PAGES, allows no more pages."
        )
    if report["columns_ignored"]:
        lines.append(f"Columns that were ignored: {', '.join(report['columns_ignored'])}.")
    if report["lines_left_out"]:
        named = report["wrong"][:20]
        lines.append(f"{say_count(report['lines_left_out'], 'line')} left out:")
        lines += [f"  line {row['line']}: {row['fault']}" for row in named]
        if more := report["lines_left_out"] - len(named):
            lines.append(f"  and {more:,} more; --json names a thousand")
    return "\n".join(lines)


class RunningImport:
    """Send pages to a running crawl; `crawlsched.jobs.importing.Import` does this work if no crawl runs.

    Parameters
    ----------
    pages_at_once, most_waiting : int
        The number of pages in one command, and the number of commands that may wait. The crawl reads commands twice a
        second.
    timeout : float, default 60
        The number of seconds in which the crawl has to answer each command.
    """

    learns = False

    def __init__(
        self, store: "Store", *, pages_at_once: int = 250, most_waiting: int = 16, timeout: float = 60.0
    ) -> None:
        self._store = store
        self._pages_at_once, self._most_waiting, self._timeout = pages_at_once, most_waiting, timeout
        self._sent: deque[int] = deque()
        names = ("pages", "new", "forgotten", "too_many", "weighed", "visits", "visits_of_their_own")
        self.counts = dict.fromkeys(names, 0)

    def take(self, named: "Sequence[FoundPage]", visits: Any = ()) -> None:
        """Send pages; wait while the crawl has too many commands to read."""
        from crawlsched.store import commands

        for start in range(0, len(named), self._pages_at_once):
            some = named[start : start + self._pages_at_once]
            asked = {"pages": {page.url: page.importance for page in some}}
            self._sent.append(commands.send(self._store, "import", asked, time.time()))
            self.counts["pages"] += len(some)
            if len(self._sent) > self._most_waiting:
                self._collect()

    def finish(self) -> None:
        """Wait until the crawl has answered all commands."""
        while self._sent:
            self._collect()

    def _collect(self) -> None:
        from crawlsched.store import commands

        answer = commands.wait_for(self._store, self._sent.popleft(), self._timeout)
        if answer is None:
            raise CrawlschedError(
                f"The crawl of the collection {self._store.name!r} did not answer within {self._timeout:g} s. "
                "When it goes on, it will take the pages that it got. Look at its log."
            )
        if "error" in answer.result:
            raise CrawlschedError(str(answer.result["error"]))
        for name, n in answer.result.items():
            self.counts[name] += n
