"""Traces: the texts of a page, place by place, and how a page differs from a trace."""

from __future__ import annotations

import json
import re
import zlib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Literal, NamedTuple

from crawlsched.change_detection.limits import DEEPEST, LONGEST_COMPARED, LONGEST_NAME, MOST_COMPARED, MOST_KEPT

__all__ = ["Difference", "Kind", "Trace", "differences", "digest_of", "gaps_between", "token_runs"]

#: A gap: its beginning and end among the old items, and its beginning and end among the new items.
Gap = tuple[int, int, int, int]

# A token is a word in brackets from a tag ("[hidden]"), a number with decimals, or a word of Latin letters and digits.
# A word of other letters, or any other character, is also a token.
_TOKEN = re.compile(r"\[[a-z][a-z -]*+\]|\d++(?:[.,:]\d++)*+(?![A-Za-z_])|[A-Za-z_\d]++|[^\W\d_]++|\S")
_DIGITS = re.compile(r"\d+")
_VERSION = b"\3"  # the first byte of a packed trace


#: How a page differs; see `Difference`.
Kind = Literal["replaced", "added", "removed", "order", "moved", "rest"]


class Difference(NamedTuple):
    """One thing that differs.

    Attributes
    ----------
    kind : Kind
        replaced: tokens of a block were replaced. added, removed: a block was added or removed. order: the blocks of
        one place are in another order. moved: a block is at another place, between other blocks. rest: the text after
        the blocks that are compared has changed, or a block that is too long to be compared token by token.
    """

    kind: Kind
    place: int  # 32 bits of the path that leads to the block
    number: int = 0  # the number of the block among the `n` blocks at this place
    n: int = 1
    left: str = ""  # the tokens before (`left`) and after (`right`) the replaced tokens; see `token_runs`
    right: str = ""
    old: str = ""  # the old tokens or the old block; `new`: the new tokens or block, or for "order" a digest
    new: str = ""
    is_digits: bool = False  # whether only digits differ
    kept: tuple[str, ...] = ()  # the tokens of the block that stayed, with "#" for digits
    was: str = ""  # the whole old text of the block; `says`: its whole new text
    says: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether (nearly) all tokens of the block were replaced."""
        return not self.left and not self.right


@dataclass(slots=True, eq=False)
class Trace:
    """The texts of a page, block by block, in order.

    Attributes
    ----------
    places : list of int
        A 32-bit digest of the path to each block.
    texts : list of (str or None)
        The text of each block; None where only its digest is stored.
    digests : list of int
        A 32-bit digest of each text.
    names : dict of int to str
        The name of each place.
    rest : int
        A 32-bit digest of the text after the blocks that are compared; 0 if there is no such text.
    changes : list of [str, str, str]
        The last differences, for `why`: the name of the place, its text before, and its text now.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> trace = page_blocks("<p class=now>12:01<p>Tea").trace
    >>> kept = Trace.unpacked(trace.packed())
    >>> kept.texts, list(kept.names.values()), Trace.unpacked(b"")
    (['12:01', 'Tea'], ['p.now', 'p'], None)
    """

    places: list[int]
    texts: list[str | None]
    digests: list[int]
    names: dict[int, str]
    rest: int = 0
    changes: list[list[str]] = field(default_factory=list)

    def __len__(self) -> int:
        """The number of blocks."""
        return len(self.places)

    def packed(self) -> bytes:
        """Return the trace as bytes."""
        index = {place: number for number, place in enumerate(self.names)}
        kept, room = [], MOST_KEPT
        for text, digest in zip(self.texts, self.digests, strict=True):
            room -= len(text) if text is not None else 0
            kept.append(digest if text is None or room < 0 else text)
        named = list(self.names.items())
        data = [named, [index[place] for place in self.places], kept, self.rest, self.changes]
        written = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
        return _VERSION + zlib.compress(written.encode("ascii"), 1)

    @staticmethod
    @lru_cache(maxsize=4)  # a visit unpacks the same trace twice: when the page is read, and when it is judged
    def unpacked(data: bytes) -> Trace | None:
        """Return the trace that `packed` turned into bytes; None if the bytes are no such trace."""
        if not data.startswith(_VERSION):
            return None
        try:
            named, indices, kept, rest, changes = json.loads(zlib.decompress(data[1:]))
        except (zlib.error, ValueError):
            return None
        places = [named[index][0] for index in indices]
        texts = [text if isinstance(text, str) else None for text in kept]
        digests = [digest_of(text) if isinstance(text, str) else text for text in kept]
        return Trace(places, texts, digests, dict(named), rest, changes)

    def texts_at(self, places: Iterable[int]) -> dict[int, list[str]]:
        """Return the texts at each place."""
        found: dict[int, list[str]] = {place: [] for place in places}
        for place, text in zip(self.places, self.texts, strict=True):
            if place in found and text is not None:
                found[place].append(text)
        return found


def digest_of(text: str) -> int:
    """Return a 32-bit digest of a text."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=8)  # the same pair is compared when a page is read, judged and learned from
def differences(before: Trace, now: Trace) -> list[Difference]:
    """Return how a page differs from a trace; [] if only their markup differs.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> before = page_blocks("<h1>Tea</h1><ul><li>a<li>b</ul>").trace
    >>> def kinds(markup):
    ...     return [difference.kind for difference in differences(before, page_blocks(markup).trace)]
    >>> kinds("<h2>Tea</h2><ul><li>a<li>b</ul>"), kinds("<h1>Tea</h1><ul><li>b<li>a</ul>")
    ([], ['order'])
    >>> kinds("<h1>Tee</h1><ul><li>new<li>a<li>b</ul>"), kinds("<h1>Tea</h1><ul><li>a</ul><ol><li>b</ol>")
    (['replaced', 'added'], [])
    >>> kinds("<h1>Tea</h1><p>b</p><ul><li>a</ul>")
    ['moved']
    """
    is_rest = before.rest != now.rest
    if before.digests == now.digests and before.places == now.places:
        return [Difference("rest", 0)] * is_rest
    old, new = (
        [place << 32 | said for place, said in zip(one.places, one.digests, strict=True)] for one in (before, now)
    )
    # Blocks at the same place are compared first, and then blocks at different places.
    gaps: list[Gap] = []
    same: list[tuple[int, int]] = []
    for outer in gaps_between(old, new, (0, len(old), 0, len(new))):
        inner = [*gaps_between(before.digests, now.digests, outer, 1)]
        gaps += inner
        same += _between(outer, inner)
    gaps = [gap for gap in gaps if not _is_markup(before, now, gap)]
    gone = Counter(key for i, j, _, _ in gaps for key in old[i:j])
    come = Counter(key for _, _, k, m in gaps for key in new[k:m])
    uneven = {key >> 32 for key in gone.keys() | come.keys() if gone[key] != come[key]}
    reordered = dict.fromkeys(key >> 32 for key in come if key >> 32 not in uneven and before.digests != now.digests)
    sides = (before, *_ranks(before)), (now, *_ranks(now))
    was_at, says_at = before.texts_at(reordered), now.texts_at(reordered)
    found = [_order(place, sides[1][2][place], was_at[place], says_at[place]) for place in reordered]
    for there in _moved(before, now, same, Counter(old) & Counter(new)) if same else ():
        place, text = now.places[there], now.texts[there] or ""
        found.append(
            Difference("moved", place, sides[1][1][there], sides[1][2][place], "", "", text, text, was=text, says=text)
        )
    room = MOST_COMPARED
    for at, there in _pairs(before, now, gaps, reordered):
        was, says = before.texts[at] or "" if at >= 0 else None, now.texts[there] or "" if there >= 0 else None
        room -= LONGEST_NAME + min(len(was or "") + len(says or ""), LONGEST_COMPARED)
        if room < 0:  # all further differences become one remainder
            is_rest = True
            break
        trace, ranks, _ = sides[there >= 0]
        block = at if there < 0 else there
        place = trace.places[block]
        n = max(counts[place] for _, _, counts in sides)
        found += _of_block((place, ranks[block], n), was, says)
    return _with_moved(found) + [Difference("rest", 0)] * is_rest


def _order(place: int, n: int, was: list[str], says: list[str]) -> Difference:
    first = next((new for old, new in zip(was, says, strict=False) if old != new), "")
    return Difference("order", place, 0, n, new=f"{digest_of(' '.join(says)):x}", says=f"another order of {first}")


def _with_moved(found: list[Difference]) -> list[Difference]:
    """Merge the differences of a text that was removed at one place and added at another."""
    gone = {one.old: number for number, one in enumerate(found) if one.kind == "removed" and one.old}
    left = set()
    for number, one in enumerate(found):
        if one.kind == "added" and one.new in gone:
            left.add(gone.pop(one.new))
            found[number] = one._replace(kind="moved", old=one.new, was=one.new)
    return [one for number, one in enumerate(found) if number not in left] if left else found


def _between(outer: Gap, inner: list[Gap]) -> Iterator[tuple[int, int]]:
    """Yield the old and the new number of each block of a gap that is in none of the gaps within it."""
    at, j, there, m = outer
    for i, end, k, other in [*inner, (j, j, m, m)]:
        yield from zip(range(at, i), range(there, k), strict=True)
        at, there = end, other


def _moved(before: Trace, now: Trace, same: list[tuple[int, int]], staying: Counter[int]) -> Iterator[int]:
    """Yield the new number of each block of the `same` text that has moved to another place; the others are markup.

    In data, the name of a place is content. On a page, at least as many blocks stay at the old and at the new place.
    """
    stay = Counter(key >> 32 for key in staying.elements())
    went = Counter((before.places[at], now.places[there]) for at, there in same)
    for at, there in same:
        p, q = before.places[at], now.places[there]
        if p != q and (went[p, q] <= min(stay[p], stay[q]) or _is_other_data(before.names[p], now.names[q])):
            yield there


def _is_other_data(was: str, name: str) -> bool:
    # Data are named by keys ("@a.b"), by an attribute ("[itemprop=...") or by words (lines, cells, elements, members).
    return was != name and (name[0] in "@[" or (" " in name and ">" not in name))


def _is_markup(before: Trace, now: Trace, gap: Gap) -> bool:
    """Whether the words are the same, and only their division into blocks differs."""
    i, j, k, m = gap
    old, new = before.texts[i:j], now.texts[k:m]
    return len(old) != len(new) and None not in [*old, *new] and " ".join(old) == " ".join(new)  # type: ignore[arg-type]


def _pairs(before: Trace, now: Trace, gaps: list[Gap], but: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield pairs of the old and the new number of a block, place by place; -1 if it was added or removed."""
    for i, j, k, m in gaps:
        come: dict[int, list[int]] = {}
        for there in range(m - 1, k - 1, -1):
            come.setdefault(now.places[there], []).append(there)
        for at in range(i, j):
            if before.places[at] not in but:
                left = come.get(before.places[at])
                there = left.pop() if left else -1
                if there < 0 or before.digests[at] != now.digests[there]:
                    yield at, there
        yield from ((-1, there) for place, left in come.items() if place not in but for there in reversed(left))


def _of_block(where: tuple[int, int, int], was: str | None, says: str | None) -> list[Difference]:
    """Return how a block differs. A text is None if the page has no such block, and "" if it was not stored."""
    if says is None:
        return [Difference("removed", *where, old=was or "", was=was or "")]
    if was is None:
        return [Difference("added", *where, new=says, says=says)]
    place, number, n = where
    runs = token_runs(was, says) if was and says else []
    found = [Difference("replaced", place, number, n, *run, was, says) for run in runs]
    return found or [Difference("rest", *where, new=says, was=was, says=says)]


def _ranks(trace: Trace) -> tuple[list[int], dict[int, int]]:
    """Return how many blocks of the same place are before each block, and how many blocks each place has."""
    numbers = defaultdict[int, Iterator[int]](count)
    return [next(numbers[place]) for place in trace.places], Counter(trace.places)


def gaps_between(old: Sequence[Hashable], new: Sequence[Hashable], gap: Gap, times: int = 3) -> Iterator[Gap]:
    """Yield the gaps between the items that are the same on both sides, in the same order.

    Each gap is searched again, in `times` rounds altogether. More rounds would find almost no further items. For any
    contents, the time is that of sorting the items.

    References
    ----------
    .. [1] Cohen (2010), "Patience diff advantages".

    Examples
    --------
    >>> list(gaps_between("a cup of tea".split(), "a pot of hot tea".split(), (0, 4, 0, 5)))
    [(1, 2, 1, 2), (3, 3, 3, 4)]
    """
    i, j, k, m = gap = trimmed(old, new, gap)
    once = _once(old[i:j]) & _once(new[k:m]) if times and i < j and k < m else ()
    if not once:
        if i < j or k < m:
            yield gap
        return
    at = {one: number for number, one in enumerate(new[k:m], k) if one in once}
    pairs = [(number, at[one]) for number, one in enumerate(old[i:j], i) if one in at]
    for end, other in [*_rising(pairs), (j, m)]:
        if i < end or k < other:
            yield from gaps_between(old, new, (i, end, k, other), times - 1)
        i, k = end + 1, other + 1


def _once(items: Sequence[Hashable]) -> set[Hashable]:
    return {one for one, n in Counter(items).items() if n == 1} if len(items) > 1 else {*items}


def trimmed(old: Sequence[object], new: Sequence[object], gap: Gap) -> Gap:
    """Return a gap without the items at its beginning and end that are the same on both sides.

    Examples
    --------
    >>> trimmed("tea is hot", "tea was hot", (0, 10, 0, 11))
    (4, 5, 4, 6)
    """
    i, j, k, m = gap
    while i < j and k < m and old[i] == new[k]:
        i, k = i + 1, k + 1
    while i < j and k < m and old[j - 1] == new[m - 1]:
        j, m = j - 1, m - 1
    return i, j, k, m


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs in which both numbers rise."""
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


@lru_cache(maxsize=4_096)  # most tokens of pages are the same few thousand
def shape(token: str) -> str:
    """Return a token with "#" in the place of its digits.

    >>> shape("12 of 40 seats")
    '# of # seats'
    """
    return _DIGITS.sub("#", token)


def first_token(text: str, start: int) -> str:
    """Return the first token of a text from a position on; "" if there is none."""
    found = _TOKEN.search(text, start)
    return found[0] if found else ""


def token_runs(before: str, now: str) -> list[tuple[str, str, str, str, bool, tuple[str, ...]]]:
    """Return the runs of tokens that were replaced in a text; [] if the parts that differ are too long to compare.

    A run is a tuple of six values. These are the tokens before the run, the tokens after it, its old text, its new
    text, whether only digits differ, and the tokens that stayed in the text. Surrounding and staying tokens have "#"
    for digits. At an end of the text the surrounding tokens are "". If nearly all tokens were replaced, the whole text
    is one run.

    Examples
    --------
    >>> [run[:4] for run in token_runs("12 people look at this · € 99", "14 people look at this · € 98")]
    [('', 'people', '12', '14'), ('€', '', '99', '98')]
    >>> token_runs("Buy it for € 99", "Yours today for € 99")
    [('', 'for', 'Buy it', 'Yours today', False, ('for', '€', '#'))]
    >>> token_runs("Buy it now", "Order yours today")
    [('', '', 'Buy it now', 'Order yours today', False, ())]
    """
    if max(len(before), len(now)) > MOST_KEPT:
        return []
    olds, news = before, now
    if len(before) + len(now) > LONGEST_COMPARED:  # only 64 words before and after the part that differs are compared
        words, others = before.split(" "), now.split(" ")
        i, j, _, m = trimmed(words, others, (0, len(words), 0, len(others)))
        olds, news = (" ".join(one[max(i - DEEPEST, 0) : end + DEEPEST]) for one, end in ((words, j), (others, m)))
        if len(olds) + len(news) > LONGEST_COMPARED:
            return []
    olds_at, news_at = [*_TOKEN.finditer(olds)], [*_TOKEN.finditer(news)]
    old, new = ([match[0] for match in there] for there in (olds_at, news_at))
    old_shapes, new_shapes = ([shape(token) for token in tokens] for tokens in (old, new))
    changes: list[Gap] = []
    n_replaced = [0, 0]  # tokens that differ only in digits do not count
    for i, j, k, m in gaps_between(old, new, (0, len(old), 0, len(new))):
        if old_shapes[i:j] == new_shapes[k:m]:
            changes += [(i + n, i + n + 1, k + n, k + n + 1) for n in range(j - i) if old[i + n] != new[k + n]]
        else:
            changes.append((i, j, k, m))
            n_replaced = [n_replaced[0] + j - i, n_replaced[1] + m - k]
    replaced = {at for i, j, _, _ in changes for at in range(i, j)}
    kept = tuple([token for at, token in enumerate(old_shapes) if at not in replaced])
    # If nearly all words differ, the whole text counts as replaced.
    if any(n_replaced) and olds == before and len(kept) <= max(n_replaced):
        return [("", "", before, now, old_shapes == new_shapes, kept)]
    numbered = _numbered(old_shapes, replaced)
    return [
        (
            _left(numbered, old_shapes, i),
            old_shapes[j][-LONGEST_NAME:] if j < len(old) else "",
            _slice(olds, olds_at[i:j]),
            _slice(news, news_at[k:m]),
            old_shapes[i:j] == new_shapes[k:m],
            kept,
        )
        for i, j, k, m in changes
    ]


def _numbered(tokens: list[str], replaced: Collection[int]) -> list[str]:
    """Name tokens. If "by" occurs twice, as in "seen by ..., written by ...", the second "by" is named "by (2)"."""
    counts = Counter[str]()
    names = []
    for at, token in enumerate(tokens):
        counts[token] += at not in replaced
        names.append(token if counts[token] < 2 else f"{token} ({counts[token]})")
    return names


def _left(names: list[str], tokens: list[str], at: int) -> str:
    """Return the tokens before `at`, back to the last token that is no number."""
    start = at
    while start and tokens[start - 1][0] == "#":
        start -= 1
    return " ".join([*names[max(start - 1, 0) : start], *tokens[start:at]])[-LONGEST_NAME:]


def _slice(text: str, tokens: list[re.Match[str]]) -> str:
    return text[tokens[0].start() : tokens[-1].end()] if tokens else ""
