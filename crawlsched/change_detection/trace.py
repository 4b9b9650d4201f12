"""Traces: what is left of a page's blocks when the page is gone, and how a page differs from one."""

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple
from zlib import crc32

from crawlsched.change_detection.blocks import PageBlocks

__all__ = [
    "MOST_ENTRIES",
    "Difference",
    "Kind",
    "Trace",
    "differences",
    "place_of",
    "text_of",
    "trace_of",
    "without_wrapped",
]

MOST_ENTRIES = 512
"""A page's blocks beyond these are kept as one entry for each path."""

_DIGITS = re.compile(r"\d+")
_PLACE_BITS, _WORDS_BITS, _TEXT_BITS = 24, 16, 24
_PLACE_SHIFT, _WORDS_SHIFT = _WORDS_BITS + _TEXT_BITS, _TEXT_BITS
_TEXT_MASK, _WORDS_MASK, _PLACE_MASK = (1 << _TEXT_BITS) - 1, (1 << _WORDS_BITS) - 1, (1 << _PLACE_BITS) - 1
_MOST_WRAPPED = 50
# Longer lists are compared by what they hold, not by the order.
_MOST_ALIGNED = 40_000

Trace = array
"""64-bit entries in the order of the page: 24 bits of the path, 16 of the text without its digits, 24 of the text."""


class Kind:
    """How a block differs."""

    REPLACED, ADDED, REMOVED, ORDER = "replaced", "added", "removed", "order"


class Difference(NamedTuple):
    """One block that differs.

    Attributes
    ----------
    kind : str
        REPLACED, ADDED, REMOVED, or ORDER: blocks of a path that are as they were, in another order.
    place : int
        24 bits of the path.
    number, n : int
        Which of the blocks with this path, and how many there are; -1 where it is gone, and for an order.
    old, new : int
        24 bits of the text before and now; 0 where there is none.
    is_digits : bool
        Whether only digits differ.
    key : int or None
        The key of the block in the page; None where it is gone.
    """

    kind: str
    place: int
    number: int
    n: int
    old: int
    new: int
    is_digits: bool
    key: int | None


def trace_of(page: PageBlocks) -> tuple["Trace[int]", list[int | None]]:
    """Return the trace of a page, and the keys of the blocks that its entries are of.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> one, two = (trace_of(page_blocks(f"<p>Tea<p class=n>{n} cups"))[0] for n in (1, 2))
    >>> len(one), one[0] == two[0], one[1] == two[1], one[1] >> 24 == two[1] >> 24
    (2, True, False, True)
    """
    path_of = page.path_of
    entries = [((path_of[key] & _PLACE_MASK) << _PLACE_SHIFT) | _hashes(text) for key, text in page.texts.items()]
    keys: list[int | None] = list(page.texts)
    if len(entries) > MOST_ENTRIES:
        entries, keys = _shortened(entries, keys)
    return array("Q", entries), keys


def place_of(entry: int) -> int:
    """Return the 24 bits of the path."""
    return entry >> _PLACE_SHIFT


def text_of(text: str) -> int:
    """Return the 24 bits by which a trace knows a text."""
    return crc32(text.encode("utf-8", "surrogatepass")) & _TEXT_MASK


def _hashes(text: str) -> int:
    full = crc32(text.encode("utf-8", "surrogatepass"))
    words = _DIGITS.sub("#", text)
    short = full if words == text else crc32(words.encode("utf-8", "surrogatepass"))
    return ((short & _WORDS_MASK) << _WORDS_SHIFT) | (full & _TEXT_MASK)


def _shortened(entries: list[int], keys: list[int | None]) -> tuple[list[int], list[int | None]]:
    """Make one entry of all blocks with one path, the paths with the most blocks first, until there are few enough."""
    counts = Counter(entry >> _PLACE_SHIFT for entry in entries)
    excess, merged = len(entries) - MOST_ENTRIES, set()
    for place, n in counts.most_common():
        if excess <= 0 or n < 2:
            break
        merged.add(place)
        excess -= n - 1
    sums: dict[int, int] = {}
    for entry in entries:
        place = entry >> _PLACE_SHIFT
        if place in merged:
            sums[place] = crc32(entry.to_bytes(8, "big"), sums.get(place, 0))
    made: list[int] = []
    made_keys: list[int | None] = []
    seen: set[int] = set()
    for entry, key in zip(entries, keys, strict=True):
        place = entry >> _PLACE_SHIFT
        if place not in merged:
            made.append(entry)
            made_keys.append(key)
        elif place not in seen:
            seen.add(place)
            made.append(place << _PLACE_SHIFT | (sums[place] & 0xFFFF) << _WORDS_SHIFT | (sums[place] & _TEXT_MASK))
            made_keys.append(None)
    rest = made[MOST_ENTRIES - 1 :]
    if len(rest) > 1:
        total = 0
        for entry in rest:
            total = crc32(entry.to_bytes(8, "big"), total)
        made[MOST_ENTRIES - 1 :] = [total & _TEXT_MASK]
        made_keys[MOST_ENTRIES - 1 :] = [None]
    return made, made_keys


def differences(
    before: Sequence[int], now: Sequence[int], keys: Sequence[int | None], *, ordered: bool = True
) -> list[Difference]:
    """Return how a page differs from a trace.

    Parameters
    ----------
    before : sequence of int
        The entries that were kept.
    now : sequence of int
        Those of the page.
    keys : sequence of (int or None)
        Of the blocks that these are of.
    ordered : bool, default True
        Whether another order of the same texts is a difference.

    Returns
    -------
    list of Difference
        None where the same texts follow each other, whatever leads to them.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> before, _ = trace_of(page_blocks("<h1>Tea</h1><ul><li>a<li>b</ul>"))
    >>> def kinds(markup):
    ...     return [difference.kind for difference in differences(before, *trace_of(page_blocks(markup)))]
    >>> kinds("<h2>Tea</h2><ul><li>a<li>b</ul>"), kinds("<h1>Tea</h1><ul><li>b<li>a</ul>")
    ([], ['order'])
    >>> kinds("<h1>Tee</h1><ul><li>new<li>a<li>b</ul>")
    ['replaced', 'added']
    """
    mask = _TEXT_MASK
    if [entry & mask for entry in before] == [entry & mask for entry in now]:
        return []
    old_of, new_of = _by_place(before), _by_place(now)
    found: list[Difference] = []
    for place in {**old_of, **new_of}:
        old, new = old_of.get(place, []), new_of.get(place, [])
        if [before[at] & mask for at in old] != [now[at] & mask for at in new]:
            found += _of_place(place, [before[at] for at in old], [now[at] for at in new], [keys[at] for at in new])
    found = _without_moved(found)
    if found or not ordered:
        return [difference for difference in found if ordered or difference.kind != Kind.ORDER]
    moved = _moved(before, now)
    return [Difference(Kind.ORDER, moved, -1, -1, 0, 0, False, None)]


def _by_place(entries: Sequence[int]) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for at, entry in enumerate(entries):
        places.setdefault(entry >> _PLACE_SHIFT, []).append(at)
    return places


def _of_place(place: int, old: list[int], new: list[int], keys: list[int | None]) -> Iterator[Difference]:
    mask, n = _TEXT_MASK, len(new)
    old_texts, new_texts = [entry & mask for entry in old], [entry & mask for entry in new]
    if len(old) == len(new) and sorted(old_texts) == sorted(new_texts):
        yield Difference(Kind.ORDER, place, -1, -1, 0, 0, False, None)
        return
    if len(old) == len(new) == 1 or len(old) * len(new) > _MOST_ALIGNED:
        codes: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(old), 0, len(new))]
    else:
        codes = SequenceMatcher(None, old_texts, new_texts, autojunk=False).get_opcodes()
    for tag, i, j, k, m in codes:
        if tag == "equal":
            continue
        both = min(j - i, m - k)
        for step in range(both):
            one, two = old[i + step], new[k + step]
            if one & mask != two & mask:
                is_digits = (one ^ two) >> _WORDS_SHIFT & _WORDS_MASK == 0
                number = k + step
                yield Difference(Kind.REPLACED, place, number, n, one & mask, two & mask, is_digits, keys[number])
        for at in range(i + both, j):
            yield Difference(Kind.REMOVED, place, -1, n, old[at] & mask, 0, False, None)
        for at in range(k + both, m):
            yield Difference(Kind.ADDED, place, at, n, 0, new[at] & mask, False, keys[at])


def _without_moved(found: list[Difference]) -> list[Difference]:
    """Leave out texts that only stand at another place of the markup."""
    gone = Counter(one.old for one in found if one.kind == Kind.REMOVED)
    come = Counter(one.new for one in found if one.kind == Kind.ADDED)
    both = gone & come
    if not both:
        return found
    left = {Kind.REMOVED: Counter(both), Kind.ADDED: Counter(both)}
    kept = []
    for one in found:
        text = one.old if one.kind == Kind.REMOVED else one.new
        if one.kind in left and left[one.kind][text]:
            left[one.kind][text] -= 1
        else:
            kept.append(one)
    return kept


def without_wrapped(found: list[Difference], page: PageBlocks) -> list[Difference]:
    """Leave out words that only have another element around them now, in the element in which they were.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> before, _ = trace_of(page_blocks("<h1>Tea</h1><a class=m href=/>Cups</a>"))
    >>> now = page_blocks("<h1>Tea</h1><a class=m href=/><span class=e>Cups</span></a>")
    >>> found = differences(before, *trace_of(now))
    >>> [one.kind for one in found], without_wrapped(found, now)
    (['replaced', 'added'], [])
    """
    replaced = [one for one in found if one.kind == Kind.REPLACED and one.key is not None]
    added: dict[int, list[Difference]] = {}
    for one in found:
        if replaced and one.kind == Kind.ADDED and one.key is not None:
            above = page.steps.get(page.path_of[one.key], (0, ""))[0] & _PLACE_MASK
            added.setdefault(above, []).append(one)
    gone: set[int | None] = set()
    for one in replaced:
        candidates = [inner for inner in added.get(one.place, ()) if inner.key not in gone][:_MOST_WRAPPED]
        for inner in candidates:
            if text_of(f"{page.texts[one.key]} {page.texts[inner.key]}") == one.old:  # type: ignore[index]
                gone |= {one.key, inner.key}
                break
    return [one for one in found if one.key is None or one.key not in gone] if gone else found


def _moved(before: Sequence[int], now: Sequence[int]) -> int:
    """Return the place of the first block that has changed places with others."""
    one, two = ([entry & _TEXT_MASK for entry in entries] for entries in (before, now))
    at = next((at for at, (old, new) in enumerate(zip(one, two, strict=False)) if old != new), 0)
    # What was put in before is what moved, as a rule: a row that rose.
    return now[at] >> _PLACE_SHIFT if at < len(now) else 0
