"""Starts: who goes first in a run, and how long the others wait."""

from crawlsched.crawl.run import Starts


def _starts(first: int = 100, bandwidth: float = 10.0) -> Starts:
    starts = Starts(first)
    starts.begin(0.0, bandwidth)
    return starts


def _look(starts: Starts, now: float, under_way: tuple[int, ...] = (), has_untracked: bool = False) -> bool:
    return starts.look(now, under_way.__contains__, has_untracked)


def test_nobody_waits_longer_than_sixty_seconds_or_a_hundred_slots() -> None:
    """Whichever is longer; what is still in line goes by its value then."""
    for bandwidth, until in ((10.0, 60.0), (0.5, 200.0)):
        starts = _starts(bandwidth=bandwidth)
        starts.asked(page=1)
        assert not _look(starts, until - 1.0)
        assert _look(starts, until)
        assert not starts.line
