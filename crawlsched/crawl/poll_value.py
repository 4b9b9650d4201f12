"""Poll values: what reading a source again is worth, measured as crawl values are, learned from its past."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from crawlsched.crawl_value import elapsed_at_value, greedy

__all__ = ["Brought", "first_interval", "poll_interval"]

# Until it has shown its worth, a source is read once in so many rounds of the crawl; and all sources together take this
# share of the bandwidth at most.
_ROUNDS = 3.0
# However small the crawl is, a site is asked for its sitemap no sooner, seconds.
_SHORTEST_AT_FIRST = 10.0
_SHARE_OF_THE_BANDWIDTH = 1 / 20

# The prior of a source, before its first announcements, counts for this number of intervals set for sitemaps.
_INTERVALS_AT_FIRST = 8.0
# The pages of an unknown source would be crawled anyway within about this number of intervals.
_CRAWLED_ANYWAY = 4.0
# Polls that are remembered.
_REMEMBERED = 100.0
# The largest factors by which a source is polled more often than is set, and more rarely.
_MOST_OFTEN, _LEAST_OFTEN = 16.0, 64.0
_LONGEST = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Brought:
    """What the polls of a source have brought.

    Examples
    --------
    >>> brought = Brought().polled(3600.0, gain=900.0, loss=0.5)
    >>> brought.seconds, Brought.of(brought.plain()) == brought
    (3600.0, True)
    """

    # By how much announcements and new pages raised crawl values above the threshold, importance times seconds.
    gain: float = 0.0
    loss: float = 0.0  # what they would have cost for each second that they had been read later, importance
    seconds: float = 0.0  # time in which they came

    def polled(self, seconds: float, gain: float, loss: float) -> Brought:
        """Return the same with one more poll, some seconds after the last; older ones count less."""
        fading = 1.0 - 1.0 / _REMEMBERED
        return Brought(self.gain * fading + gain, self.loss * fading + loss, self.seconds * fading + seconds)

    def plain(self) -> dict[str, float]:
        """Return a dictionary that JSON can hold."""
        return asdict(self)

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Self:
        """Return it from what `plain` returned."""
        return cls(**{name: float(plain.get(name, 0.0)) for name in ("gain", "loss", "seconds")})


def first_interval(longest: float, n_pages: int, n_sources: int, bandwidth: float) -> float:
    """Return the seconds between polls of a new source; `longest` is what the settings say.

    Examples
    --------
    A crawl that comes to each of its 120 pages in twelve seconds, and one that takes weeks:

    >>> first_interval(3600.0, 120, 1, 10.0), first_interval(3600.0, 10**7, 1, 10.0)
    (36.0, 3600.0)
    """
    if bandwidth <= 0:
        return longest
    rounds, share = _ROUNDS * n_pages / bandwidth, n_sources / _SHARE_OF_THE_BANDWIDTH / bandwidth
    return min(longest, max(rounds, share, _SHORTEST_AT_FIRST))


def poll_interval(brought: Brought, threshold: float, interval: float) -> float:
    """Return after how many seconds a poll is worth as much as the crawl of a page.

    It is from a sixteenth of `interval`, which an unknown source has, to 64 of it (30 days at most).

    Notes
    -----
    Let the announcements of a source gain G a second (importance times seconds), and let an
    announcement read later lose its gain at the rate ρ, because its page is crawled anyway some time: exp(-ρ u) of it
    is left after u seconds. Then reading what has gathered in τ seconds is worth, as against waiting on,
    V(τ) = G/ρ (1 - (1 + ρτ) exp(-ρτ)): the crawl value GREEDY of a page of importance G and change rate ρ. The poll is
    due when that reaches the threshold, as any page is. See ``docs/explanation/change_signals.md``.

    Examples
    --------
    An unknown source is polled at the interval; one that never announced anything ever more rarely:

    >>> round(poll_interval(Brought(), 10.0, 3600.0))
    3600
    >>> round(poll_interval(Brought(seconds=30 * 86400.0), 10.0, 3600.0) / 3600)
    64
    """
    shortest = interval / _MOST_OFTEN
    longest = max(interval, min(interval * _LEAST_OFTEN, _LONGEST))
    if threshold <= 0:
        return interval
    # What is not known yet is taken to be such that a poll after one interval is worth the threshold.
    fading = 1.0 / (_CRAWLED_ANYWAY * interval)
    seconds = _INTERVALS_AT_FIRST * interval
    gain = threshold / float(greedy(interval, fading)) * seconds
    gains, losses = gain + brought.gain, gain * fading + brought.loss
    rate = gains / (seconds + brought.seconds)
    wanted = float(elapsed_at_value(threshold, losses / gains, importance=rate))
    return min(max(wanted, shortest), longest)
