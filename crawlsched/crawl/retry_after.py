"""Retry-After: until when a host asks to be left alone."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

__all__ = ["retry_after"]

# A server that says "in a year" has made a mistake; after a day it is asked again.
_LONGEST_REST = 86_400.0


def retry_after(value: str | None, now: float) -> float | None:
    """Read a Retry-After header.

    Parameters
    ----------
    value : str or None
        Seconds, or an HTTP date.
    now : float
        POSIX seconds.

    Returns
    -------
    float or None
        POSIX seconds, at most a day from now; None if there is nothing to read.

    Examples
    --------
    >>> retry_after("120", now=1000.0)
    1120.0
    >>> retry_after("Thu, 01 Jan 1970 00:20:00 GMT", now=1000.0)
    1200.0
    >>> retry_after("soon", now=1000.0) is None
    True
    """
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        # More digits than a day has seconds need not be read as a number.
        until = now + (float(text) if len(text) < 10 else _LONGEST_REST)
    else:
        try:
            until = parsedate_to_datetime(text).timestamp()
        except (ValueError, OverflowError, TypeError):
            return None
    return max(now, min(until, now + _LONGEST_REST))
