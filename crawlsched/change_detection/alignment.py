"""Alignment: what of two sequences stays, and what stands between that."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

__all__ = ["Gap", "gaps_between", "trimmed"]

Gap = tuple[int, int, int, int]
"""From and to, before and now."""

# What is between two that stayed is looked at so often: more finds next to nothing, and each time is linear.
_TIMES = 3
_STRIDE = 256  # so many are compared at once


def gaps_between(old: Sequence[Hashable], new: Sequence[Hashable], gap: Gap, times: int = _TIMES) -> Iterator[Gap]:
    """Yield what differs between what stays: what stands once on either side does, as much as keeps its order.

    Between two that stay the same is done anew. The time is that of sorting, whatever is compared.

    References
    ----------
    .. [1] Cohen (2010), "Patience diff advantages".

    Examples
    --------
    >>> list(gaps_between("a cup of tea".split(), "a pot of hot tea".split(), (0, 4, 0, 5)))
    [(1, 2, 1, 2), (3, 3, 3, 4)]
    """
    i, j, k, m = gap
    if j - i == 1 == m - k and old[i] != new[k]:  # of thousands of gaps most are so
        yield gap
        return
    i, j, k, m = gap = trimmed(old, new, gap)
    if i == j and k == m:
        return
    once = _once(old[i:j]) & _once(new[k:m]) if times and i < j and k < m else ()
    if not once:
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
    """Return what is left between two positions on both sides without what is the same at the beginning and end.

    Examples
    --------
    >>> trimmed("tea is hot", "tea was hot", (0, 10, 0, 11))
    (4, 5, 4, 6)
    """
    i, j, k, m = gap
    while min(j - i, m - k) > _STRIDE and old[i : i + _STRIDE] == new[k : k + _STRIDE]:
        i, k = i + _STRIDE, k + _STRIDE
    while min(j - i, m - k) > _STRIDE and old[j - _STRIDE : j] == new[m - _STRIDE : m]:
        j, m = j - _STRIDE, m - _STRIDE
    while i < j and k < m and old[i] == new[k]:
        i, k = i + 1, k + 1
    while i < j and k < m and old[j - 1] == new[m - 1]:
        j, m = j - 1, m - 1
    return i, j, k, m


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
