"""Recorded visits: stored bodies, judged by the crawl's own detector as if fetched at their recorded times."""

from __future__ import annotations

import csv
import hashlib
import mimetypes
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from crawlsched.content.reading import Body
from crawlsched.content.verdict import Verdict
from crawlsched.crawl.collection import FoundPage
from crawlsched.crawl.learned import template_and_site
from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.visits import ResponseFacts, Visit
from crawlsched.exceptions import CrawlschedError
from crawlsched.settings import PREFIX, Settings
from crawlsched.slot_clock import DAY
from crawlsched.store import Outcome, host_of

__all__ = ["COLUMNS", "JudgedVisit", "RecordedVisit", "judge_all", "read_visits", "settings_here"]

COLUMNS = ("time", "url", "outcome", "delivered", "kind", "ignored", "probes")
_NEEDED = ("time", "url", "body")


@dataclass(slots=True)
class RecordedVisit:
    """A recorded visit. `body` and `second` (the body of a second fetch) are files or content."""

    time: float
    url: str
    body: Path | bytes
    second: Path | bytes | None = None
    status: int = 200
    content_type: str | None = None
    etag: str | None = None
    last_modified: str | None = None


class JudgedVisit(NamedTuple):
    """The result of one visit; see ``crawlsched detect``."""

    time: float
    url: str
    outcome: str
    delivered: int
    kind: str
    ignored: str
    probes: int
    changes: list[list[str]]
    template: str


def read_visits(path: Path) -> list[RecordedVisit]:
    """Read a table of visits, in order of time."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise CrawlschedError(f"The visits {path} cannot be read: {why}; name another file.") from error
    missing = [name for name in _NEEDED if rows and name not in rows[0]]
    if not rows or missing:
        what = f"no column {', '.join(missing)}" if missing else "no rows"
        raise CrawlschedError(
            f"The visits {path} have {what}; it needs the columns time, url and body, and a row for each visit."
        )
    visits = [_visit(path, number, row) for number, row in enumerate(rows, 2)]
    return sorted(visits, key=lambda visit: visit.time)


def _visit(path: Path, number: int, row: Mapping[str, str | None]) -> RecordedVisit:
    try:
        time, status = float(row["time"] or ""), int(row.get("status") or 200)
    except ValueError as error:
        raise CrawlschedError(
            f"Line {number} of {path} has a time or status that is no number ({error}); time is POSIX seconds."
        ) from error
    body, second = path.parent / (row["body"] or ""), row.get("second")
    for file in (body, *([path.parent / second] if second else [])):
        if not file.is_file():
            raise CrawlschedError(f"Line {number} of {path} names the file {file}, which is not there.")
    headers = [row.get(name) or None for name in ("content_type", "etag", "last_modified")]
    return RecordedVisit(time, row["url"] or "", body, path.parent / second if second else None, status, *headers)


def judge_all(
    visits: Sequence[RecordedVisit], options: Mapping[str, Any], *, seed: int = 1, probe_after: float = 5.0
) -> Iterator[JudgedVisit]:
    """Judge visits one after the other, in a new collection, as if a user had requested these visits.

    `options` are settings, with or without ``CRAWLSCHED_``; `seed` decides which visits are probed. A probe is
    made `probe_after` seconds later.
    """
    named = {name if name.startswith(PREFIX) else f"{PREFIX}{name}": value for name, value in options.items()}
    with tempfile.TemporaryDirectory(prefix="crawlsched-detect-") as folder:
        named[f"{PREFIX}DATABASE_URL"] = f"sqlite:///{folder}/detect.db"
        judge = _Judge(Settings.from_scrapy(named, "detect"), visits, seed, probe_after)
        try:
            for visit in visits:
                yield judge.visit(visit)
        finally:
            judge.close()


class _Judge:
    """A refresher whose clock shows the recorded times, and whose visits are answered with the recorded bodies."""

    def __init__(self, settings: Settings, visits: Sequence[RecordedVisit], seed: int, probe_after: float) -> None:
        self._probe_after = probe_after
        self._now = visits[0].time if visits else 0.0
        self._flushed_at = self._now
        self._refresher = Refresher(
            settings,
            "detect",
            count=lambda name, n=1: None,
            request_fingerprint=lambda url: hashlib.sha1(url.encode("utf-8", "surrogatepass")).digest(),
            clock=lambda: self._now,
            rng=Random(seed),
        )
        self._refresher.open()
        self._verdicts: list[Verdict] = []
        self._changes: list[list[str]] = []

    def visit(self, recorded: RecordedVisit) -> JudgedVisit:
        """Visit a page, and answer all requests that follow."""
        refresher, collection = self._refresher, self._refresher.collection
        self._now = max(self._now, recorded.time)
        name = refresher.request_fingerprint(recorded.url)
        page = collection.index.page(name)
        if page < 0:
            found = FoundPage(recorded.url, name, host_of(recorded.url))
            page = collection.add_pages([found], self._now)[0]
        refresher.planner.hold(page)
        host = int(refresher.planner.pages.host[page])
        self._verdicts.clear()
        self._changes = []
        visit = refresher.visits.open(page=page, host=host, url=recorded.url, now=self._now)
        outcome = self._fetch(visit, recorded, recorded.body)
        n_probes, is_held = 0, outcome is Outcome.PROBED
        started = self._now
        while len(refresher.probes):
            self._now += self._probe_after
            due = refresher.dispatcher.next_probe(self._now, lambda host, now: now)
            if due is None:
                break
            n_probes += 1
            probe = due[0]
            impossible = probe.probe is not None and probe.probe.impossible_url is not None
            ended = self._fetch(probe, recorded, None if impossible else recorded.second or recorded.body)
            outcome = ended if is_held else outcome
            is_held = is_held and ended is Outcome.PROBED
        if recorded.time > self._flushed_at + DAY:
            self._flushed_at = recorded.time
            refresher.collection.flush(self._now)
        self._now = started
        new = next((verdict for verdict in reversed(self._verdicts) if verdict.kind), None)
        judged = [verdict for verdict in self._verdicts if verdict.outcome is not Outcome.PROBED]
        ignored = judged[-1].ignored or judged[-1].reason if judged else ""
        return JudgedVisit(
            time=recorded.time,
            url=recorded.url,
            outcome=str(outcome),
            delivered=int(new is not None),
            kind=new.kind if new is not None else "",
            ignored=ignored if isinstance(ignored, str) else "; ".join(ignored),
            probes=n_probes,
            changes=self._changes if new else [],
            template=template_and_site(recorded.url, "")[0],
        )

    def _fetch(self, visit: Visit, recorded: RecordedVisit, file: Path | bytes | None) -> Outcome:
        """Answer a visit with a file, or with status 404 if there is no file."""
        refresher = self._refresher
        status = recorded.status if file is not None else 404
        body = file.read_bytes() if isinstance(file, Path) else file or b""
        content = None
        if 200 <= status < 300:
            kind = recorded.content_type or (mimetypes.guess_type(file)[0] if isinstance(file, Path) else None)
            read, _ = refresher.dispatcher.reading(visit, Body(body, kind, None, recorded.url), None)
            content = read()
        fetched = ResponseFacts(status, content, recorded.etag, recorded.last_modified, len(body), None, None)
        verdict = refresher.responses.crawled(visit, fetched, self._now)
        self._verdicts.append(verdict)
        if verdict.kind not in ("", "first") and content is not None and content.seen is not None:
            self._changes = content.seen.trace.changes
        if refresher.book.get(visit.token) is not None:
            refresher.book.called_back(visit.token, self._now)
        assert visit.outcome is not None
        return visit.outcome

    def close(self) -> None:
        """Close the store."""
        for step in self._refresher.closing():
            if step is not None:
                step()


def settings_here(assignments: Sequence[str]) -> dict[str, str]:
    """Read settings, each in the form ``NAME=VALUE``.

    >>> settings_here(["PROBES=False"])
    {'PROBES': 'False'}
    """
    named = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or not name:
            raise CrawlschedError(f"--set must be followed by NAME=VALUE, got {assignment!r}.")
        named[name] = value
    return named
