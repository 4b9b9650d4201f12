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
    is_digits: bool  # whether only digits differ
    kept: tuple[str, ...]  # the tokens of the text that stayed, digits as "#"


@lru_cache(maxsize=4_096)  # most tokens of pages are the same few thousand
def shape(token: str) -> str:
    """Return a token without what its digits are.

    >>> shape("12 of 40 seats")
    '# of # seats'
    """
    return _DIGITS.sub("#", token)


def token_runs(before: str, now: str) -> list[Run]:
    """Return what of a text was replaced; nothing where the parts that differ are too long to tell.

    Examples
    --------
    >>> [run[:4] for run in token_runs("12 people look at this · € 99", "14 people look at this · € 98")]
    [('', 'people', '12', '14'), ('€', '', '99', '98')]
    >>> token_runs("Buy it for € 99", "Yours today for € 99")
    [Run(left='', right='for', old='Buy it', new='Yours today', is_digits=False, kept=('for', '€', '#'))]
    >>> token_runs("Buy it now", "Order yours today")
    [Run(left='', right='', old='Buy it now', new='Order yours today', is_digits=False, kept=())]
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
        return [Run("", "", before, now, old_shapes == new_shapes, kept)]
    return [
        Run(
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
