"""An explanation: why a page is crawled when it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Explanation"]


@dataclass(frozen=True)
class Explanation:
    """Why a page is crawled when it is.

    Attributes
    ----------
    page : int
    state : str
        One of `crawlsched.pages.STATE_NAMES`.
    importance : float
        Weight of a fresh copy.
    change_rate : float
        Expected changes per second, announced or not.
    change_rate_interval : tuple of float
        The rate is between these with 90 % probability.
    unsignalled_change_rate : float
        Changes per second that are not announced.
    signal_rate : float
        Announcements per second.
    signal_weight : float
        Nats per announcement.
    precision : float
        Probability that an announcement is true.
    precision_of : str
        What that was learned from: ``source``, or ``site`` where that has evidence; for a page that several sources
        cover, of its first one.
    recall : float
        Probability that a change is announced.
    elapsed : float
        Seconds since the last crawl; inf if there was none.
    n_signals : int
        Announcements since the last crawl.
    expected_freshness : float
        Probability that the copy equals the page now; 0 without a copy.
    crawl_value : float
        Now; importance times seconds.
    threshold : float
        Crawl value at which pages are being picked.
    wake_time : float
        When the crawl value reaches the threshold if nothing is announced, POSIX seconds; inf: never.
    likely_time : float
        The time such that the next visit is likeliest to take 0.3 to 3 times as long, limits aside, if announcements
        come as often as they have; at most `wake_time`, and that where it is as good as any other.
    next_allowed : float
        The page may not be crawled earlier, POSIX seconds.
    deadline : float
        The page goes first from then on, POSIX seconds; inf without a longest interval.
    binds : str
        What decides: one of ``value``, ``overdue``, ``forced``, ``min_interval``, ``not_before``, ``host``,
        ``in_flight``.
    """

    page: int
    state: str
    importance: float
    change_rate: float
    change_rate_interval: tuple[float, float]
    unsignalled_change_rate: float
    signal_rate: float
    signal_weight: float
    precision: float
    precision_of: str
    recall: float
    elapsed: float
    n_signals: int
    expected_freshness: float
    crawl_value: float
    threshold: float
    wake_time: float
    likely_time: float
    next_allowed: float
    deadline: float
    binds: str

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes by name."""
        return asdict(self)
