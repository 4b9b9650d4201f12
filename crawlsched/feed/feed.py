"""The feed of one collection over all shards of its database, also as Atom (RFC 4287), and the cursors of followers."""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from html import escape
from itertools import islice
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from crawlsched.exceptions import CrawlschedError
from crawlsched.settings.values import read_date, read_seconds
from crawlsched.store import Store, changes
from crawlsched.store.kept_texts import differences
from crawlsched.store.reading import Reader

__all__ = ["Change", "Cursor", "Feed", "atom", "read_since"]

_CURSOR = re.compile(r"[0-9]{1,9}:[0-9]{1,18}(,[0-9]{1,9}:[0-9]{1,18})*")
_ALLOWED = (
    "since must be a duration such as 2h, a time such as 2026-11-25T07:00Z (UTC if it names no zone), or a cursor "
    "such as 0:1234"
)


class Cursor:
    """The position of a follower in each shard: the number of the last change that it has read, or 0.

    >>> cursor = Cursor.read("0:12,3:7")
    >>> cursor[0], cursor[1], str(cursor.after(1, 5))
    (12, 0, '0:12,1:5,3:7')
    """

    def __init__(self, positions: Mapping[int, int]) -> None:
        self.positions = dict(positions)

    @classmethod
    def read(cls, text: str) -> Cursor:
        """Read a cursor from the text that `str` makes of it."""
        if _CURSOR.fullmatch(text) is None:
            raise CrawlschedError(f"{_ALLOWED}, got {text!r}.")
        pairs = [part.split(":") for part in text.split(",")]
        return cls({int(shard): int(position) for shard, position in pairs})

    def __getitem__(self, shard: int) -> int:
        return self.positions.get(shard, 0)

    def __str__(self) -> str:
        return ",".join(f"{shard}:{position}" for shard, position in sorted(self.positions.items())) or "0:0"

    def after(self, shard: int, position: int) -> Cursor:
        """Return the cursor after the follower has also read this shard up to this position."""
        return Cursor({**self.positions, shard: position})


def read_since(text: str, now: float) -> Cursor | float:
    """Read where in the feed to begin: a cursor, a time, or a duration before now. Return a cursor or POSIX seconds.

    >>> read_since("2h", now=10_000.0), read_since("1970-01-01T01:00Z", now=0.0), str(read_since("0:7", now=0.0))
    (2800.0, 3600.0, '0:7')
    """
    text = text.strip()
    if _CURSOR.fullmatch(text):
        return Cursor.read(text)
    # A duration must have a unit, since a number alone could also be a year or a POSIX time.
    if re.fullmatch(r"[0-9.]+\s*(s|m|min|h|d)", text):
        try:
            return now - read_seconds(text)
        except ValueError:
            raise CrawlschedError(f"{_ALLOWED}, got {text!r}.") from None
    try:
        return read_date(text)
    except (ValueError, OverflowError):
        raise CrawlschedError(f"{_ALLOWED}, got {text!r}.") from None


_SAID = {
    "new": "The first copy of the page",
    "changed": "The page changed",
    "gone": "The page is gone",
    "back": "The page is back",
    "moved": "The page has moved",
    "failing": "The page fails",
    "recovered": "The page has recovered",
}

# At most this many lines of a difference are shown.
_LONGEST_DIFF = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that was delivered, or a report that a page has vanished, fails, or has returned.

    Attributes
    ----------
    time, found_at : float
        POSIX seconds. `time` is when callback and pipelines had finished with the change, and `found_at` when the visit
        found it. The two are equal if nothing is delivered. `found_at` is None if the visit is no longer stored.
    """

    cursor: str  # the position after this change
    shard: int
    id: int
    page: int
    url: str
    # "new" means the page's first copy. "back" comes after "gone" or "moved", and "recovered" after "failing".
    kind: str
    time: float
    found_at: float | None
    status: int | None  # of that visit's response
    # The share of the page's blocks that changed, and the similarity of the new and the old text, each from 0 to 1.
    changed_share: float | None
    similarity: float | None
    since: float | None = None  # when the first of several visits in a row failed; None for a delivery
    target: str | None = None  # the URL to which the page has moved
    # Removed and new lines, if they were requested and the texts of exactly this change are stored.
    diff: list[str] | None = None

    @property
    def sentence(self) -> str:
        """The change in words.

        >>> known = dict(cursor="0:1", shard=0, id=1, page=0, url="http://shop.example/a", time=7200.0, found_at=7200.0)
        >>> known |= dict(changed_share=None, similarity=None)
        >>> Change(kind="failing", status=503, since=3600.0, **known).sentence
        'The page fails (503), since 1970-01-01 01:00 UTC.'
        """
        said = _SAID[self.kind]
        if self.status is not None and self.kind in ("gone", "failing"):
            said += f" ({self.status})"
        if self.target is not None:
            said += f" to {self.target}"
        if self.since is not None and self.kind != "moved":
            away = "away " if self.kind in ("back", "recovered") else ""
            said += f", {away}since {datetime.fromtimestamp(self.since, UTC):%Y-%m-%d %H:%M} UTC"
        if self.similarity is not None:
            said += f". {100 * (1 - self.similarity):.0f} % of its text is other"
        return f"{said}."

    def to_dict(self) -> dict[str, Any]:
        """Return the change for JSON, with the time of delivery also as text."""
        return {**asdict(self), "time_utc": datetime.fromtimestamp(self.time, UTC).isoformat(timespec="milliseconds")}


class Feed:
    """The changes of all shards, in the order of each shard; with `own_shard`, only those of the store's shard."""

    def __init__(self, store: Store, *, own_shard: bool = False) -> None:
        self._store = store
        with store.database.reading() as connection:
            self._keys = [store.key] if own_shard else changes.keys_of(connection, store.name)

    @property
    def name(self) -> str:
        """The collection's name."""
        return self._store.name

    def end(self) -> Cursor:
        """Return the cursor after the last change."""
        with self._store.database.reading() as connection:
            return Cursor({key[0]: changes.kept(connection, key)[1] for key in self._keys})

    def start(self) -> Cursor:
        """Return the cursor before the first change that is still stored."""
        with self._store.database.reading() as connection:
            return Cursor({key[0]: changes.kept(connection, key)[0] for key in self._keys})

    def at(self, time: float) -> Cursor:
        """Return the cursor before the first stored change at or after a time (POSIX seconds)."""
        with self._store.database.reading() as connection:
            return Cursor({key[0]: changes.before_time(connection, key, time) for key in self._keys})

    def after(self, cursor: Cursor, limit: int, *, diff: bool = False) -> list[Change]:
        """Return at most `limit` changes after a cursor; raise if the cursor is too old, or from another database."""
        with self._store.database.explained("read"), self._store.database.reading() as connection:
            found = []
            for key in self._keys:
                self._require_kept(cursor, key[0], *changes.kept(connection, key))
                rows = changes.after(connection, key, cursor[key[0]], limit)
                # If old changes are deleted after this check, the next call reports the deletion.
                found.append([(row.time, key, row) for row in rows])
            # The changes of a shard are returned in the order of their numbers, even if their times have another order.
            # Otherwise a cursor would skip changes.
            given = []
            for _, key, row in islice(heapq.merge(*found, key=lambda one: one[0]), limit):
                cursor = cursor.after(key[0], row.id)
                given.append(_change(key, row, str(cursor), self._diff(key, row) if diff else None))
            return given

    def newest(self, limit: int, *, diff: bool = False) -> list[Change]:
        """Return the newest changes, newest first. The cursor of each change is only valid for its own shard."""
        with self._store.database.explained("read"), self._store.database.reading() as connection:
            found = [(row.time, key, row) for key in self._keys for row in changes.newest(connection, key, limit)]
            found.sort(key=lambda one: one[0], reverse=True)
            return [
                _change(key, row, f"{key[0]}:{row.id}", self._diff(key, row) if diff else None)
                for _, key, row in found[:limit]
            ]

    def _require_kept(self, cursor: Cursor, shard: int, pruned: int, given: int) -> None:
        position = cursor[shard]
        if position < pruned:
            raise CrawlschedError(
                f"The changes after the cursor {cursor} are no longer kept: the oldest cursor that can be followed is "
                f"{self.start()}; give it, or a time (CRAWLSCHED_OBSERVATION_RETENTION sets how long they are kept)."
            )
        if position > given:
            raise CrawlschedError(
                f"The cursor {cursor} is ahead of the newest change, which is {self.end()}: it belongs to another "
                "database, or this one was begun anew; begin by a time, or at 0:0."
            )

    def _diff(self, key: tuple[int, int], row: changes.DeliveredChange) -> list[str] | None:
        kept = Reader(self._store.database, key).text_of(row.page)
        # If the page has changed again, the stored texts are those of a later change.
        if kept is None or kept.before is None or row.found_at is None or abs(kept.seen_at - row.found_at) > 1e-3:
            return None
        return differences(kept.before, kept.text)[:_LONGEST_DIFF]


def _change(key: tuple[int, int], row: changes.DeliveredChange, cursor: str, diff: list[str] | None) -> Change:
    return Change(cursor=cursor, shard=key[0], diff=diff, **row._asdict())


_ATOM = "http://www.w3.org/2005/Atom"
# Characters that are not allowed in XML 1.0.
_UNSPEAKABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def atom(changes: Sequence[Change], collection: str, address: str, now: float) -> bytes:
    """Return changes as an Atom document, newest first; `address` is its URL."""
    feed = ElementTree.Element("feed", xmlns=_ATOM)
    _add(feed, "title", f"Changes of {collection}")
    # The id does not contain the address: a server's address may change, but the id of a feed may not.
    _add(feed, "id", f"urn:crawlsched:{quote(collection, safe='')}")
    _add(feed, "updated", _time(changes[0].time if changes else now))
    ElementTree.SubElement(feed, "link", rel="self", type="application/atom+xml", href=_plain(address))
    _add(ElementTree.SubElement(feed, "author"), "name", "crawlsched")
    for change in changes:
        _add_entry(feed, change, collection)
    document: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return document


def _add_entry(feed: ElementTree.Element, change: Change, collection: str) -> None:
    entry = ElementTree.SubElement(feed, "entry")
    _add(entry, "title", f"{change.kind.capitalize()}: {change.url}")
    _add(entry, "id", f"urn:crawlsched:{quote(collection, safe='')}:{change.shard}:{change.id}")
    _add(entry, "updated", _time(change.time))
    if change.url.lower().startswith(("http://", "https://")):
        ElementTree.SubElement(entry, "link", rel="alternate", href=_plain(change.url))
    ElementTree.SubElement(entry, "category", term=change.kind)
    content = f"<p>{escape(change.sentence)}</p>"
    if change.diff:
        content += f"<pre>{escape(chr(10).join(change.diff))}</pre>"
    _add(entry, "content", content).set("type", "html")


def _add(parent: ElementTree.Element, name: str, text: str) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, name)
    element.text = _plain(text)
    return element


def _plain(text: str) -> str:
    return _UNSPEAKABLE.sub("\ufffd", text)


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
