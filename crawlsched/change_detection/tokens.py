"""Tokens: the smallest parts of a text that were replaced."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from crawlsched.change_detection.alignment import Gap, gaps_between, trimmed
from crawlsched.change_detection.limits import MOST_KEPT

__all__ = ["LONGEST_COMPARED", "Run", "shape", "token_runs"]

LONGEST_COMPARED = 8_000
"""Characters of a text, before and now, in which tokens are looked for: 2 ms. A difference in more is never noise."""

# What a tag says, a number with its decimals, a word of Latin letters and digits such as a hash, a word of other
# letters, a sign.
_TOKEN = re.compile(r"\[[a-z][a-z -]*+\]|\d++(?:[.,:]\d++)*+(?![A-Za-z_])|[A-Za-z_\d]++|[^\W\d_]++|\S")
_DIGITS = re.compile(r"\d+")
_AROUND = 200  # characters of it that are looked at on both sides of what differs in a longer text
_LONGEST_CONTEXT = 24


class Run(NamedTuple):
    """Tokens that were replaced by others.

    Attributes
    ----------
    left, right : str
        The tokens before and behind them, digits as "#"; "" at the ends of the text. Both are "" if hardly a token of
        the text is left.
    """

    left: str
    right: str
    old: str
    new: str
    kept: tuple[str, ...] = ()  # where hardly a token of a text is left: these tokens, digits as "#"


def shape(text: str) -> str:
    """Return a text without what its digits are.

    >>> shape("12 of 40 seats")
    '# of # seats'
    """
    return _DIGITS.sub("#", text)


# Most tokens of pages are the same few thousand.
_shape_of = lru_cache(maxsize=4_096)(shape)


def token_runs(before: str, now: str) -> list[Run]:
    """Return what of a text was replaced; nothing where the parts that differ are too long to tell.

    Examples
    --------
    >>> [run[:4] for run in token_runs("12 people look at this · € 99", "14 people look at this · € 98")]
    [('', 'people', '12', '14'), ('€', '', '99', '98')]
    >>> token_runs("Buy it for € 99", "Yours today for € 99")
    [Run(left='', right='for', old='Buy it', new='Yours today', kept=('for', '€', '#'))]
    >>> token_runs("Buy it now", "Order yours today")
    [Run(left='', right='', old='Buy it now', new='Order yours today', kept=())]
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
    old, new = _TOKEN.findall(olds), _TOKEN.findall(news)
    changes = _changes(old, new)
    replaced = {at for i, j, _, _ in changes for at in range(i, j)}
    kept = tuple([_shape_of(token) for at, token in enumerate(old) if at not in replaced])
    # Digits stand where they stood; of words hardly one may be left.
    words = [(j - i, m - k) for i, j, k, m in changes if [*map(_shape_of, old[i:j])] != [*map(_shape_of, new[k:m])]]
    if words and not start and not end and len(kept) <= max(map(sum, zip(*words, strict=True))):
        return [Run("", "", before, now, kept)]
    runs = []
    olds_at, news_at = ([match.span() for match in _TOKEN.finditer(text)] for text in (olds, news))
    for i, j, k, m in changes:
        right = _context(old[j]) if j < len(old) else ""
        runs.append(Run(_left(old, i), right, _slice(olds, olds_at[i:j]), _slice(news, news_at[k:m]), kept))
    return runs


def _changes(old: list[str], new: list[str]) -> list[Gap]:
    """Return which tokens were replaced by which; where but digits differ, one by one."""
    found: list[Gap] = []
    for i, j, k, m in gaps_between(old, new, (0, len(old), 0, len(new))):
        if [*map(_shape_of, old[i:j])] == [*map(_shape_of, new[k:m])]:
            found += [(i + n, i + n + 1, k + n, k + n + 1) for n in range(j - i) if old[i + n] != new[k + n]]
        else:
            found.append((i, j, k, m))
    return found


def _left(tokens: list[str], at: int) -> str:
    """Return the tokens before one, back to the first that is no number: numbers side by side stay apart."""
    start = at
    while start and tokens[start - 1][0].isdigit():
        start -= 1
    return _context(" ".join(tokens[max(start - 1, 0) : at]))


def _slice(text: str, spans: list[tuple[int, int]]) -> str:
    return text[spans[0][0] : spans[-1][1]] if spans else ""


def _context(token: str) -> str:
    return shape(token)[-_LONGEST_CONTEXT:]
