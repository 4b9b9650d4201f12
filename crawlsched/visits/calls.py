"""Calls: what one call of a callback, or one run of start(), has asked for so far."""

from __future__ import annotations

__all__ = ["CALL_META", "Call"]

#: Under this key a request carries its call from the spider middleware to the scheduler, which takes it out.
CALL_META = "crawlsched_call"


class Call:
    """One call of a callback.

    Attributes
    ----------
    token : int
        Of the visit whose response it was called with; -1: none that is known.
    page : int
        The page that was visited; -1: none.
    from_start : bool
        Whether a start request led to it over untracked requests only.
    claims : dict of bytes to int
        The pages that it has asked for, each with what named its first request.
    """

    __slots__ = ("claims", "from_start", "page", "token")

    def __init__(self, token: int = -1, page: int = -1, *, from_start: bool = False) -> None:
        self.token = token
        self.page = page
        self.from_start = from_start
        self.claims: dict[bytes, int] = {}
