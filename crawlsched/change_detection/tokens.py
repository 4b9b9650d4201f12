"""Tokens: what of a text was replaced, as small as it can be told."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

__all__ = ["Run", "shape", "token_runs"]

# A number with its decimals, a word of Latin letters and digits such as a hash, a word of other letters, a sign.
_TOKEN = re.compile(r"\d++(?:[.,:]\d++)*+(?![A-Za-z_])|[A-Za-z_\d]++|[^\W\d_]++|\S")
_DIGITS = re.compile(r"\d+")
# Tokens that are compared with each other at most, in pairs: 5 ms. Beyond that they are one run.
_MOST_PAIRS = 10_000
# Characters in which tokens are looked for: 1 ms. Beyond that they are one run.
_MOST_CHARACTERS = 8_000
_LONGEST_CONTEXT = 24


class Run(NamedTuple):
    """Tokens that were replaced by others.

    Attributes
    ----------
    left, right : str
        The tokens before and behind them, digits as "#"; "" at the ends of the text. Both are "" if hardly a token of
        the text is left.
    old, new : str
    """

    left: str
    right: str
    old: str
    new: str


def shape(text: str) -> str:
    """Return a text without what its digits are.

    Examples
    --------
    >>> shape("12 of 40 seats")
    '# of # seats'
    """
    return _DIGITS.sub("#", text)


def token_runs(before: str, now: str) -> list[Run]:
    """Return what of a text was replaced.

    Examples
    --------
    >>> token_runs("12 people look at this · € 99", "14 people look at this · € 98")
    [Run(left='', right='people', old='12', new='14'), Run(left='€', right='', old='99', new='98')]
    >>> token_runs("Buy it now", "Order yours today")
    [Run(left='', right='', old='Buy it now', new='Order yours today')]
    """
    start = _n_common(before, now)
    start = before.rfind(" ", 0, start) + 1
    end = _n_common_at_end(before[start:], now[start:])
    space = before.find(" ", len(before) - end) if end else -1
    end = len(before) - space if space >= 0 else 0
    olds, news = before[start : len(before) - end], now[start : len(now) - end]
    whole = [Run("", "", before, now)]
    if len(olds) + len(news) > _MOST_CHARACTERS:
        return whole
    olds_at, news_at = ([match.span() for match in _TOKEN.finditer(text)] for text in (olds, news))
    old, new = [olds[i:j] for i, j in olds_at], [news[i:j] for i, j in news_at]
    around = _last_token(before[max(start - _MOST_CHARACTERS, 0) : start]), _first_token(before[len(before) - end :])
    kept = before.count(" ", 0, start) + before.count(" ", len(before) - end)
    if len(old) * len(new) > _MOST_PAIRS:
        return [Run(_context(around[0]), _context(around[1]), olds, news)] if kept > len(old) else whole
    runs = []
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            kept += j - i
            continue
        left = old[i - 1] if i else around[0]
        right = old[j] if j < len(old) else around[1]
        runs.append(Run(_context(left), _context(right), _slice(olds, olds_at[i:j]), _slice(news, news_at[k:m])))
    words = [run for run in runs if shape(run.old) != shape(run.new)]  # digits stand where they stood
    n_replaced = max(sum(len(run.old.split()) for run in words), sum(len(run.new.split()) for run in words))
    return runs if kept > n_replaced or not words else whole


def _slice(text: str, spans: list[tuple[int, int]]) -> str:
    return text[spans[0][0] : spans[-1][1]] if spans else ""


def _n_common(one: str, two: str) -> int:
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _n_common_at_end(one: str, two: str) -> int:
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == two[len(two) - middle : len(two) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _last_token(text: str) -> str:
    tokens = _TOKEN.findall(text.rpartition(" ")[0].rpartition(" ")[2] if text.endswith(" ") else text)
    return tokens[-1] if tokens else ""


def _first_token(text: str) -> str:
    match = _TOKEN.search(text)
    return match[0] if match else ""


def _context(token: str) -> str:
    return shape(token)[:_LONGEST_CONTEXT]
