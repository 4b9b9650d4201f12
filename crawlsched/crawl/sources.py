"""Sources of ChangeSignals: which there are, and when each is polled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

from crawlsched.change_signals import Limits, canonical
from crawlsched.frontier.queues import PriorityQueue
from crawlsched.slot_clock import DAY
from crawlsched.store import Source

__all__ = ["POLLED_KINDS", "Sources"]

#: Kinds of sources that are polled; pings come by themselves.
POLLED_KINDS = ("sitemap", "robots")
# All sources together take at most about this share of the bandwidth. The interval of a source is at least about this
# share of the time in which all pages are crawled once.
_SHARE = 1 / 6
# A source that nobody names any more is polled again at this time: in the year 2255.
_NEVER = 9e9


class Sources:
    """The sitemaps (and robots.txt files, where Scrapy does not read them) of a collection.

    Examples
    --------
    >>> sources = Sources(interval=3600.0)
    >>> sitemap = sources.add("sitemap", "https://example.com/sitemap.xml", "example.com", now=0.0)
    >>> sources.next_due(0.0, lambda source: True) == sitemap.source
    True
    >>> sources.polled(sitemap.source, now=10.0, n_pages=120, bandwidth=10.0, has_news=True).next_poll_at
    12.0
    """

    def __init__(self, interval: float, most_of_a_host: int = Limits().max_children, *, once: bool = False) -> None:
        self.interval = interval  # the most seconds between two polls of a source that has news
        self._once = once  # poll each source only once in this run
        # The limit of one index is also the limit of a host. Otherwise three levels of indexes could list any number.
        self._most_of_a_host = most_of_a_host
        self._n_of_host: Counter[str] = Counter()
        self.n_named_by_pages: Counter[str] = Counter()  # by host
        self._polls_per_second = 0.0
        self._rows: dict[int, Source] = {}
        # Sources that now belong to other processes are included, so that a source that comes back gets its old number.
        self._numbers: dict[tuple[str, str], int] = {}
        self._polls: PriorityQueue[int] = PriorityQueue()  # by the time of their next polls
        # The due sources by host. Hosts and sources have the order of their turns. A host that may not be asked delays
        # only its own sources, however many sitemaps its index lists.
        self._due: dict[str, dict[int, None]] = {}

    def __iter__(self) -> Iterator[Source]:
        return iter(self._rows.values())

    def __contains__(self, number: int) -> bool:
        return number in self._rows

    def __getitem__(self, number: int) -> Source:
        return self._rows[number]

    def load(self, sources: Sequence[Source], now: float = inf) -> dict[int, int]:
        """Take over sources of a store; polls wait at most a day, or the present interval if that is longer.

        Returns
        -------
        dict of int to int
            The sources' numbers in memory, by their numbers in the store.
        """
        numbers = {source.source: self._number_for(source.kind, source.url) for source in sources}
        for source in sources:
            number, at = numbers[source.source], source.next_poll_at
            if number not in self:
                parent = None if source.parent is None else numbers.get(source.parent)
                if at is not None and at != _NEVER:
                    at = min(at, now + max(self.interval, DAY))
                self._put(replace(source, source=number, parent=parent, next_poll_at=at))
        return numbers

    def drop(self, numbers: Iterable[int]) -> None:
        """Drop sources that belong to another process from now on; O(these sources)."""
        for number in numbers:
            self._take_out_of_line(number)
            self._count(self._rows.pop(number), -1)

    def add(
        self, kind: str, url: str, host: str, now: float, parent: int | None = None, named_by: str | None = None
    ) -> Source | None:
        """Add a source that another source or a robots.txt names; None if it is known already, or beyond the limit."""
        known = self.number(kind, url)
        foreign = [named_by] if named_by and named_by != host else []
        if known is not None:
            if self[known].next_poll_at == _NEVER:
                self._polls.put(known, now)
                return self.describe(known, next_poll_at=now)
            hosts = self[known].hosts
            return self.describe(known, hosts=[*hosts, *foreign]) if foreign and named_by not in hosts else None
        if kind in POLLED_KINDS and self._n_of_host[host] >= self._most_of_a_host:
            return None
        next_poll_at = now if kind in POLLED_KINDS else None
        number = self._number_for(kind, url)
        self._put(Source(number, kind, url, host, parent=parent, next_poll_at=next_poll_at, hosts=foreign))
        return self[number]

    def number(self, kind: str, url: str) -> int | None:
        """Return the number of a source, None if it is not known."""
        number = self._numbers.get(_name(kind, url))
        return number if number in self._rows else None

    def n_due(self, now: float) -> int:
        """Count the sources whose time has come; they are in line for a slot."""
        self._line_up_due(now)
        return sum(map(len, self._due.values()))

    def leave(self, number: int) -> list[Source]:
        """Stop polling a source and what it lists until it is added again; return the new rows. O(sources)."""
        listed = [row.source for row in self if row.parent == number and row.next_poll_at != _NEVER]
        self._take_out_of_line(number)
        left = self.describe(number, next_poll_at=_NEVER, fingerprint=None, etag=None, last_modified=None)
        return [left, *(row for child in listed for row in self.leave(child))]

    def poll(self, number: int) -> None:
        """Put one source in line for a slot now, if it can be polled; O(1)."""
        if self[number].kind in POLLED_KINDS and self[number].next_poll_at != _NEVER:
            self.describe(number, next_poll_at=None)
            self._polls.discard(number)
            self._line_up(number)

    def next_due(self, now: float, may_go: Callable[[Source], bool]) -> int | None:
        """Take the first source in line whose host may be asked, and put this host last; O(h) for h waiting hosts."""
        self._line_up_due(now)
        for host, waiting in self._due.items():
            number = next(iter(waiting))
            if may_go(self[number]):
                self._take_out_of_line(number)
                if waiting:
                    self._due[host] = self._due.pop(host)
                return number
        return None

    def polled(
        self,
        number: int,
        now: float,
        n_pages: int,
        bandwidth: float,
        *,
        has_news: bool | None = None,
        **changes: object,
    ) -> Source:
        """Note that a poll has ended, and plan the next one; return the new row.

        News halves the time to the next poll, if all sources together take less than their share. A poll without news
        doubles this time. `has_news` is None if the poll has failed.
        """
        source, most, usual = self[number], _SHARE * bandwidth, 1.0 / self.interval
        if source.next_poll_at == _NEVER:  # dropped while it was polled
            return self.describe(number, polled_at=now)
        if (rate := source.quality.get("polls_per_second")) is None:
            # A sitemap with a date in its index is polled when that date changes.
            rate = max(most / self._n_of_host.total(), usual) if source.listed_lastmod is None else 0.0
        else:
            rate *= 2 if has_news and self._polls_per_second < most else 0.5
        if has_news is None:
            rate = min(rate, usual / 2)
        least = usual if has_news else min(usual, 1.0 / DAY)
        rate = min(max(rate, least), max(usual, bandwidth / (_SHARE * max(n_pages, 1))))
        if not self._once:
            self._polls.put(number, now + 1 / rate)
        quality = {**source.quality, "polls_per_second": rate}
        return self.describe(number, polled_at=now, next_poll_at=now + 1 / rate, quality=quality, **changes)

    def describe(self, number: int, **changes: object) -> Source:
        """Change what is known of a source; return the new row."""
        self._count(self[number], -1)
        changed = self._rows[number] = replace(self[number], **changes)  # type: ignore[arg-type]
        self._count(changed, 1)
        return changed

    def _line_up_due(self, now: float) -> None:
        while (number := self._polls.first()) is not None and self._polls.at[number] <= now:
            self._polls.discard(number)
            self._line_up(number)

    def _line_up(self, number: int) -> None:
        self._due.setdefault(self[number].host, {})[number] = None

    def _take_out_of_line(self, number: int) -> None:
        self._polls.discard(number)
        waiting = self._due.get(self[number].host, {})
        waiting.pop(number, None)
        if not waiting:
            self._due.pop(self[number].host, None)

    def _number_for(self, kind: str, url: str) -> int:
        return self._numbers.setdefault(_name(kind, url), len(self._numbers))

    def _count(self, source: Source, by: int) -> None:
        if source.kind in POLLED_KINDS:
            self._n_of_host[source.host] += by
            self.n_named_by_pages[source.host] += by * (source.quality.get("named_by") == "page")
            self._polls_per_second += by * source.quality.get("polls_per_second", 0.0)

    def _put(self, source: Source) -> None:
        self._rows[source.source] = source
        self._count(source, 1)
        if source.kind in POLLED_KINDS:
            self._polls.put(source.source, source.next_poll_at or 0.0)


def _name(kind: str, url: str) -> tuple[str, str]:
    # The URL of a document has several spellings; the URL of a ping is the name of a host.
    return kind, canonical(url) if kind in POLLED_KINDS else url
