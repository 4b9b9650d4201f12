"""Work in parts: generators that stop after each part of what they do, so that something else may go on in between."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

__all__ = ["done_at_once"]

Result = TypeVar("Result")


def done_at_once(parts: Generator[None, None, Result]) -> Result:
    """Do all parts, one after the other, and return what the generator returns.

    Parameters
    ----------
    parts : generator
        Yields after each part.

    Returns
    -------
    object
        What it returned.

    Examples
    --------
    >>> def counted(limit):
    ...     for number in range(limit):
    ...         yield
    ...     return limit
    >>> done_at_once(counted(3))
    3
    """
    while True:
        try:
            next(parts)
        except StopIteration as end:
            result: Result = end.value
            return result
