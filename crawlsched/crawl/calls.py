"""Calls: what one call of a callback, or one run of start(), has asked for so far."""

from __future__ import annotations

__all__ = ["AGAIN_META", "CALL_META", "Call"]

#: Under this key a request carries its call from the spider middleware to the scheduler, which takes it out.
CALL_META = "crawlsched_call"
#: Under this key a request that is no page carries which re-delivery it belongs to.
AGAIN_META = "crawlsched_again"


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
    again : int or None
        Token of the visit whose page was delivered once more, so that requests behind it are made once more, too; this
        call is of that visit or descends from it over untracked requests. None: it is of no such visit.
    """

    __slots__ = ("again", "from_start", "page", "token")

    def __init__(self, token: int = -1, page: int = -1, *, from_start: bool = False, again: int | None = None) -> None:
        self.again = again
        self.token = token
        self.page = page
        self.from_start = from_start
