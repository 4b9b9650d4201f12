"""Traces: what a page said, place by place, and how a page differs from one."""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.limits import MOST_KEPT, MOST_PAIRS, MOST_SHOWN
from crawlsched.change_detection.tokens import Gap, shape, token_runs, trimmed

__all__ = ["Difference", "Kind", "Trace", "differences", "digest_of", "trace_of"]

_VERSION = 3


class Kind:
    """How a page differs."""

    REPLACED, ADDED, REMOVED, ORDER, MOVED, REST = "replaced", "added", "removed", "order", "moved", "rest"


class Difference(NamedTuple):
    """One thing that differs.

    Attributes
    ----------
    kind : str
        REPLACED: tokens of a block; ADDED, REMOVED: a block; ORDER: blocks of one place are in another order; MOVED: a
        block stands at another place, among others; REST: what lies beyond the blocks that are looked at, or a block
        that is too long to look for tokens in it.
    """

    kind: str
    place: int  # 32 bits of the path that leads to the block
    number: int = 0  # which of the blocks at this place it is, and how many there are
    n: int = 1
    left: str = ""  # the tokens around those that were replaced; see `tokens.Run`
    right: str = ""
    old: str = ""  # the tokens, or the blocks, before and now; of an order, what identifies it
    new: str = ""
    is_digits: bool = False  # whether only digits differ
    was: str = ""  # the whole text of the block, before and now
    says: str = ""
    kept: tuple[str, ...] = ()  # the tokens of it that stayed, digits as "#"

    @property
    def is_whole(self) -> bool:
        """Whether hardly a token of the block is left."""
        return not self.left and not self.right


class Trace:
    """What a page said, block by block, in order.

    Attributes
    ----------
    places : list of int
        The path to each block, 32 bits.
    texts : list of (str or None)
        What each says; None beyond what is kept.
    digests : list of int
        32 bits of each text.
    names : dict of int to str
        How to call each place.
    rest : int
        Of what lies beyond the blocks that are looked at; 0 where nothing does.
    changes : list of [str, str, str]
        What differed last, for who asks: the name of the place, what it said before, and what it says.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> trace = trace_of(page_blocks("<p class=now>12:01<p>Tea"))
    >>> kept = Trace.unpacked(trace.packed())
    >>> kept.texts, list(kept.names.values()), Trace.unpacked(b"")
    (['12:01', 'Tea'], ['p.now', 'p'], None)
    """

    __slots__ = ("changes", "digests", "names", "places", "rest", "texts")

    def __init__(
        self, places: list[int], texts: list[str | None], digests: list[int], names: dict[int, str], rest: int = 0
    ) -> None:
        self.places, self.texts, self.digests, self.names, self.rest = places, texts, digests, names, rest
        self.changes: list[list[str]] = []

    def __len__(self) -> int:
        """How many blocks it has."""
        return len(self.places)

    def packed(self) -> bytes:
        """Return it as bytes."""
        index = {place: number for number, place in enumerate(self.names)}
        kept, room = [], MOST_KEPT
        for text, digest in zip(self.texts, self.digests, strict=True):
            room -= len(text) if text is not None else 0
            kept.append(digest if text is None or room < 0 else text)
        named = list(self.names.items())
        data = [named, [index[place] for place in self.places], kept, self.rest, self.changes[:MOST_SHOWN]]
        written = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
        return bytes([_VERSION]) + zlib.compress(written.encode("ascii"), 1)

    @classmethod
    def unpacked(cls, data: bytes) -> Trace | None:
        """Return what `packed` gave; None where it is none."""
        if not data or data[0] != _VERSION:
            return None
        try:
            named, indices, kept, rest, changes = json.loads(zlib.decompress(data[1:]))
        except (zlib.error, ValueError):
            return None
        places = [named[index][0] for index in indices]
        texts = [text if isinstance(text, str) else None for text in kept]
        digests = [digest_of(text) if isinstance(text, str) else text for text in kept]
        made = cls(places, texts, digests, dict(named), rest)
        made.changes = changes
        return made

    def texts_at(self, places: Iterable[int]) -> dict[int, list[str]]:
        """Return what is said at some places."""
        found: dict[int, list[str]] = {place: [] for place in places}
        for place, text in zip(self.places, self.texts, strict=True):
            if place in found and text is not None:
                found[place].append(text)
        return found


def digest_of(text: str) -> int:
    """Return 32 bits of a text."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def trace_of(blocks: PageBlocks) -> Trace:
    """Return the trace of a page."""
    names: dict[int, str] = {}
    for place in blocks.paths:
        if place not in names:
            names[place] = blocks.name_of(place)
    texts: list[str | None] = [*blocks.texts]
    return Trace([*blocks.paths], texts, [digest_of(text) for text in blocks.texts], names, digest_of(blocks.rest))


def differences(before: Trace, now: Trace) -> list[Difference]:
    """Return how a page differs from a trace; [] for the same texts in the same order, wherever one ends.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> before = trace_of(page_blocks("<h1>Tea</h1><ul><li>a<li>b</ul>"))
    >>> def kinds(markup):
    ...     return [difference.kind for difference in differences(before, trace_of(page_blocks(markup)))]
    >>> kinds("<h2>Tea</h2><ul><li>a<li>b</ul>"), kinds("<h1>Tea</h1><ul><li>b<li>a</ul>")
    ([], ['order'])
    >>> kinds("<h1>Tee</h1><ul><li>new<li>a<li>b</ul>"), kinds("<h1>Tea</h1><ul><li>a</ul><ol><li>b</ol>")
    (['replaced', 'added'], [])
    >>> kinds("<h1>Tea</h1><p>b</p><ul><li>a</ul>")
    ['moved']
    """
    rest = [Difference(Kind.REST, 0)] if before.rest != now.rest else []
    if before.digests == now.digests:
        return rest
    gaps = [gap for gap in _gaps(before, now) if not _is_markup(before, now, gap)]
    gone: dict[int, Counter[int]] = {}
    come: dict[int, Counter[int]] = {}
    for i, j, k, m in gaps:
        for trace, counts, numbers in ((before, gone, range(i, j)), (now, come, range(k, m))):
            for at in numbers:
                counts.setdefault(trace.places[at], Counter())[trace.digests[at]] += 1
    reordered = {place for place, texts in come.items() if gone.get(place) == texts}
    found = [_order(before, now, place) for place in come if place in reordered]
    for i, j, k, m in gaps:
        old = [at for at in range(i, j) if before.places[at] not in reordered]
        new = [at for at in range(k, m) if now.places[at] not in reordered]
        found += _of_gap(before, now, old, new)
    return _numbered(before, now, _with_moved(found)) + rest


def _order(before: Trace, now: Trace, place: int) -> Difference:
    was, says = (trace.texts_at([place])[place] for trace in (before, now))
    first = next((new for old, new in zip(was, says, strict=False) if old != new), "")
    return Difference(Kind.ORDER, place, new=f"{digest_of(' '.join(says)):x}", was=first, says=first)


def _with_moved(found: list[Difference]) -> list[Difference]:
    """Make one difference of a text that is gone at a place and has come at another."""
    gone = {one.old: number for number, one in enumerate(found) if one.kind == Kind.REMOVED and one.old}
    left = set()
    for number, one in enumerate(found):
        if one.kind == Kind.ADDED and one.new in gone:
            left.add(gone.pop(one.new))
            found[number] = one._replace(kind=Kind.MOVED, old=one.new, was=one.new)
    return [one for number, one in enumerate(found) if number not in left] if left else found


def _gaps(before: Trace, now: Trace) -> Iterator[Gap]:
    """Yield what differs between what stays: texts that stand once on either side hold, as many as keep their order.

    They hold at their places first, and then wherever they stand.
    """
    old, new = before.digests, now.digests
    by_place = [[*zip(trace.places, trace.digests, strict=True)] for trace in (before, now)]
    for i, j, k, m in _between(by_place[0], by_place[1], (0, len(old), 0, len(new))):
        for gap in _between(old, new, (i, j, k, m)):
            yield from _within(old, new, trimmed(old, new, gap))


def _between(old: Sequence[Hashable], new: Sequence[Hashable], gap: Gap) -> Iterator[Gap]:
    i, j, k, m = trimmed(old, new, gap)
    n_old, n_new = Counter(old[i:j]), Counter(new[k:m])
    at = {one: number for number, one in enumerate(new[k:m], k) if n_new[one] == 1}
    pairs = [(number, at[one]) for number, one in enumerate(old[i:j], i) if n_old[one] == 1 and one in at]
    for end, other in [*_rising(pairs), (j, m)]:
        if i < end or k < other:
            yield i, end, k, other
        i, k = end + 1, other + 1


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part in which both numbers rise."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, at) in enumerate(pairs):
        where = bisect_left(ends, at)
        before.append(last[where - 1] if where else -1)
        ends[where : where + 1] = [at]
        last[where : where + 1] = [number]
    kept, number = [], last[-1] if last else -1
    while number >= 0:
        kept.append(pairs[number])
        number = before[number]
    return kept[::-1]


def _within(old: Sequence[int], new: Sequence[int], gap: Gap) -> Iterator[Gap]:
    i, j, k, m = gap
    if i == j and k == m:
        return
    if i == j or k == m or (j - i) * (m - k) > MOST_PAIRS:
        yield i, j, k, m
        return
    for tag, a, b, c, d in SequenceMatcher(None, old[i:j], new[k:m], autojunk=False).get_opcodes():
        if tag != "equal":
            yield i + a, i + b, k + c, k + d


def _is_markup(before: Trace, now: Trace, gap: Gap) -> bool:
    """Whether the same words are only cut into blocks in another way."""
    i, j, k, m = gap
    old, new = before.texts[i:j], now.texts[k:m]
    if len(old) == len(new) or not old or not new or None in old:
        return False
    return " ".join(old) == " ".join(new)  # type: ignore[arg-type]


def _of_gap(before: Trace, now: Trace, old: list[int], new: list[int]) -> Iterator[Difference]:
    """Yield what was replaced, place by place, and what has come and gone; numbers are those of all blocks still."""
    come: dict[int, list[int]] = {}
    for at in new:
        come.setdefault(now.places[at], []).append(at)
    for at in old:
        place, was = before.places[at], before.texts[at]
        there = come.get(place)
        if not there:
            yield Difference(Kind.REMOVED, place, at, 0, old=was or "", was=was or "")
            continue
        number = there.pop(0)
        says = now.texts[number]
        runs = [] if was is None or says is None else token_runs(was, says)
        if was is None or says is None or not runs:
            yield Difference(Kind.REST, place, number, 1, new=says or "", was=was or "", says=says or "")
            continue
        for run in runs:
            is_digits = shape(run.old) == shape(run.new)
            yield Difference(Kind.REPLACED, place, number, 1, *run[:4], is_digits, was, says, run.kept)
    for place, there in come.items():
        for number in there:
            says = now.texts[number] or ""
            yield Difference(Kind.ADDED, place, number, 1, new=says, says=says)


def _numbered(before: Trace, now: Trace, found: list[Difference]) -> list[Difference]:
    """Give each difference its number among the blocks of its place."""
    sides = _ranks(before), _ranks(now)
    numbered = []
    for one in found:
        ranks, _ = sides[one.kind != Kind.REMOVED]
        n = max(counts.get(one.place, 0) for _, counts in sides)
        numbered.append(one._replace(number=ranks[one.number], n=n))
    return numbered


def _ranks(trace: Trace) -> tuple[list[int], dict[int, int]]:
    """Return of each block how many of its place stand before it, and how many each place has."""
    ranks, counts = [], dict[int, int]()
    for place in trace.places:
        n = counts.get(place, 0)
        ranks.append(n)
        counts[place] = n + 1
    return ranks, counts
