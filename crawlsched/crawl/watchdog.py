"""The watchdog: notices a crawl in which nothing goes out, although slots pass, pages wait and hosts are free."""

__all__ = ["Watchdog"]

# So long may nothing go out; where slots are rarer, so many of them pass.
_LONGEST_SILENCE = 60.0
_LONGEST_SLOTS = 3.0


class Watchdog:
    """Compare what went out with what could have.

    Parameters
    ----------
    now : float
        When the crawl began, in seconds.

    Examples
    --------
    >>> dog = Watchdog(now=0.0)
    >>> dog.look(50.0, dispatched=7, may=True, distance=0.1)
    >>> dog.look(90.0, dispatched=7, may=True, distance=0.1)
    >>> dog.look(111.0, dispatched=7, may=True, distance=0.1)
    'Nothing has gone out for 61 s although pages wait and hosts are free, so this crawl ends; start it again.'
    """

    def __init__(self, now: float) -> None:
        self._since = now
        self._dispatched = -1
        #: For how many seconds nothing had gone out although something could, when it was looked last.
        self.silence = 0.0

    def look(self, now: float, *, dispatched: int, may: bool, distance: float) -> str | None:
        """Look at a crawl, every few seconds.

        Parameters
        ----------
        now : float
            In seconds.
        dispatched : int
            How many requests have gone out so far.
        may : bool
            Whether one could go out now: no pause, nothing to wait for, a page whose time has come, a free host.
        distance : float
            Seconds between two slots.

        Returns
        -------
        str or None
            Why the crawl has to end; None while all is well.
        """
        if dispatched != self._dispatched or not may:
            self._since, self._dispatched, self.silence = now, dispatched, 0.0
            return None
        self.silence = silence = now - self._since
        if silence < max(_LONGEST_SILENCE, _LONGEST_SLOTS * distance):
            return None
        return (
            f"Nothing has gone out for {silence:.0f} s although pages wait and hosts are free, so this crawl ends; "
            "start it again."
        )
