"""Alignment: what of two sequences stays, what stands between that, and which tokens of a text were replaced."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache

from crawlsched.change_detection.limits import MOST_KEPT

__all__ = ["LONGEST_COMPARED", "Gap", "gaps_between", "shape", "token_runs"]

Gap = tuple[int, int, int, int]
"""From and to, before and now."""

# What is between two that stayed is looked at so often: more finds next to nothing, and each time is linear.
_TIMES = 3
_STRIDE = 256  # so many are compared at once

LONGEST_COMPARED = 8_000
"""Characters of a text, before and now, in which tokens are looked for: 2 ms. A difference in more is never noise."""

# What a tag says, a number with its decimals, a word of Latin letters and digits such as a hash, a word of other
# letters, a sign.
_TOKEN = re.compile(r"\[[a-z][a-z -]*+\]|\d++(?:[.,:]\d++)*+(?![A-Za-z_])|[A-Za-z_\d]++|[^\W\d_]++|\S")
_DIGITS = re.compile(r"\d+")
_AROUND = 200  # characters of it that are looked at on both sides of what differs in a longer text
_LONGEST_CONTEXT = 24


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


@lru_cache(maxsize=4_096)  # most tokens of pages are the same few thousand
def shape(token: str) -> str:
    """Return a token without what its digits are.

    >>> shape("12 of 40 seats")
    '# of # seats'
    """
    return _DIGITS.sub("#", token)


def token_runs(before: str, now: str) -> list[tuple[str, str, str, str, bool, tuple[str, ...]]]:
    """Return what of a text was replaced; nothing where the parts that differ are too long to tell.

    Of each run of tokens these are the tokens before and behind it, digits as "#", "" at the ends of the text, and both
    "" where hardly a token is left; the run before and now; whether only digits differ; and the tokens that stayed.

    Examples
    --------
    >>> [run[:4] for run in token_runs("12 people look at this · € 99", "14 people look at this · € 98")]
    [('', 'people', '12', '14'), ('€', '', '99', '98')]
    >>> token_runs("Buy it for € 99", "Yours today for € 99")
    [('', 'for', 'Buy it', 'Yours today', False, ('for', '€', '#'))]
    >>> token_runs("Buy it now", "Order yours today")
    [('', '', 'Buy it now', 'Order yours today', False, ())]
    """
    start = end = 0
    if max(len(before), len(now)) > MOST_KEPT:
        return []
    if len(before) + len(now) > LONGEST_COMPARED:  # most of it is as it was: what is around the rest is looked at
        first, last, *_ = trimmed(before, now, (0, len(before), 0, len(now)))
        start = before.rfind(" ", 0, max(first - _AROUND, 0)) + 1
        stop = before.find(" ", last + _AROUND)
        end = len(before) - stop if stop >= 0 else 0
    olds, news = before[start : len(before) - end], now[start : len(now) - end]
    if len(olds) + len(news) > LONGEST_COMPARED:
        return []
    olds_at, news_at = [*_TOKEN.finditer(olds)], [*_TOKEN.finditer(news)]
    old, new = ([match[0] for match in there] for there in (olds_at, news_at))
    old_shapes, new_shapes = ([shape(token) for token in tokens] for tokens in (old, new))
    changes: list[Gap] = []
    n_replaced = [0, 0]  # but for digits, which stand where they stood
    for i, j, k, m in gaps_between(old, new, (0, len(old), 0, len(new))):
        if old_shapes[i:j] == new_shapes[k:m]:
            changes += [(i + n, i + n + 1, k + n, k + n + 1) for n in range(j - i) if old[i + n] != new[k + n]]
        else:
            changes.append((i, j, k, m))
            n_replaced = [n_replaced[0] + j - i, n_replaced[1] + m - k]
    replaced = {at for i, j, _, _ in changes for at in range(i, j)}
    kept = tuple([token for at, token in enumerate(old_shapes) if at not in replaced])
    # Of words hardly one may be left.
    if any(n_replaced) and not start and not end and len(kept) <= max(n_replaced):
        return [("", "", before, now, old_shapes == new_shapes, kept)]
    return [
        (
            _left(old, i),
            _context(old[j]) if j < len(old) else "",
            _slice(olds, olds_at[i:j]),
            _slice(news, news_at[k:m]),
            old_shapes[i:j] == new_shapes[k:m],
            kept,
        )
        for i, j, k, m in changes
    ]


def _left(tokens: list[str], at: int) -> str:
    """Return the tokens before one, back to the first that is no number: numbers side by side stay apart."""
    start = at
    while start and tokens[start - 1][0].isdigit():
        start -= 1
    return _context(" ".join(tokens[max(start - 1, 0) : at]))


def _slice(text: str, tokens: list[re.Match[str]]) -> str:
    return text[tokens[0].start() : tokens[-1].end()] if tokens else ""


def _context(token: str) -> str:
    return shape(token)[-_LONGEST_CONTEXT:]
