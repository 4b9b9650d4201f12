"""Tokens: what of a text was replaced, as small as it can be told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from crawlsched.change_detection.limits import MOST_KEPT, MOST_PAIRS

__all__ = ["Gap", "Run", "shape", "token_runs", "trimmed"]

# Characters in which tokens are looked for: 1 ms. What differs in more is told, and never noise.
_MOST_CHARACTERS = 8_000

# What a tag says, a number with its decimals, a word of Latin letters and digits such as a hash, a word of other
# letters, a sign.
_TOKEN = re.compile(r"\[[a-z][a-z -]*+\]|\d++(?:[.,:]\d++)*+(?![A-Za-z_])|[A-Za-z_\d]++|[^\W\d_]++|\S")
_DIGITS = re.compile(r"\d+")
_AROUND = 200  # characters of it that are looked at on both sides of what differs in a longer text
_LONGEST_CONTEXT = 24


Gap = tuple[int, int, int, int]
"""From and to, before and now."""


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
    kept: tuple[str, ...] = ()  # of a text of which hardly a token is left, those that are, digits as "#"


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
    if len(before) + len(now) > _MOST_CHARACTERS:  # most of it is as it was: what is around the rest is looked at
        first, last, *_ = trimmed(before, now, (0, len(before), 0, len(now)))
        start = before.rfind(" ", 0, max(first - _AROUND, 0)) + 1
        stop = before.find(" ", last + _AROUND)
        end = len(before) - stop if stop >= 0 else 0
    olds, news = before[start : len(before) - end], now[start : len(now) - end]
    if len(olds) + len(news) > _MOST_CHARACTERS:
        return []
    olds_at, news_at = ([match.span() for match in _TOKEN.finditer(text)] for text in (olds, news))
    old, new = [olds[i:j] for i, j in olds_at], [news[i:j] for i, j in news_at]
    changes = _changes(old, new)
    replaced = {at for i, j, _, _ in changes for at in range(i, j)}
    kept = tuple([_shape_of(token) for at, token in enumerate(old) if at not in replaced])
    # Digits stand where they stood; of words hardly one may be left.
    words = [(j - i, m - k) for i, j, k, m in changes if [*map(_shape_of, old[i:j])] != [*map(_shape_of, new[k:m])]]
    if words and not start and not end and len(kept) <= max(map(sum, zip(*words, strict=True))):
        return [Run("", "", before, now, kept)]
    runs = []
    for i, j, k, m in changes:
        right = _context(old[j]) if j < len(old) else ""
        runs.append(Run(_left(old, i), right, _slice(olds, olds_at[i:j]), _slice(news, news_at[k:m]), kept))
    return runs


def _changes(old: list[str], new: list[str]) -> list[Gap]:
    """Return which tokens were replaced by which; where but digits differ, one by one."""
    i, j, k, m = trimmed(old, new, (0, len(old), 0, len(new)))
    if [*map(_shape_of, old[i:j])] == [*map(_shape_of, new[k:m])]:
        return [(at, at + 1, at, at + 1) for at in range(i, j) if old[at] != new[at]]
    if (j - i) * (m - k) > MOST_PAIRS or {*old[i:j]}.isdisjoint(new[k:m]):
        return [(i, j, k, m)]
    found: list[Gap] = []
    for tag, a, b, c, d in SequenceMatcher(None, old[i:j], new[k:m], autojunk=False).get_opcodes():
        if tag == "replace" and [*map(_shape_of, old[i + a : i + b])] == [*map(_shape_of, new[k + c : k + d])]:
            found += [(i + a + n, i + a + n + 1, k + c + n, k + c + n + 1) for n in range(b - a)]
        elif tag != "equal":
            found.append((i + a, i + b, k + c, k + d))
    return found


def trimmed(old: Sequence[object], new: Sequence[object], gap: Gap) -> Gap:
    """Return what is left between two positions on both sides without what is the same at the beginning and end.

    >>> trimmed("tea is hot", "tea was hot", (0, 10, 0, 11))
    (4, 5, 4, 6)
    """
    i, j, k, m = gap
    while i < j and k < m and old[i] == new[k]:
        i, k = i + 1, k + 1
    while i < j and k < m and old[j - 1] == new[m - 1]:
        j, m = j - 1, m - 1
    return i, j, k, m


def _left(tokens: list[str], at: int) -> str:
    """Return the tokens before one, back to the first that is no number: numbers side by side are told apart."""
    start = at
    while start and tokens[start - 1][0].isdigit():
        start -= 1
    return _context(" ".join(tokens[max(start - 1, 0) : at]))


def _slice(text: str, spans: list[tuple[int, int]]) -> str:
    return text[spans[0][0] : spans[-1][1]] if spans else ""


def _context(token: str) -> str:
    return shape(token)[-_LONGEST_CONTEXT:]
