"""Starts: who goes first in a run, and how long the others wait."""

from crawlsched.crawl.run import Starts


def _starts(first: int = 100, bandwidth: float = 10.0) -> Starts:
    starts = Starts(first)
    starts.begin(0.0, bandwidth)
    return starts


def _look(starts: Starts, now: float, under_way: tuple[int, ...] = (), open_tokens: tuple[int, ...] = ()) -> bool:
    return starts.look(now, under_way.__contains__, open_tokens.__contains__)


def test_the_others_wait_until_the_first_and_what_they_led_to_have_ended() -> None:
    """A start page, the POST behind it, and start() itself."""
    starts = _starts()
    assert starts.asked(page=3)
    assert not _look(starts, 1.0)
    assert starts.line.popleft() == 3
    assert starts.leads(3, None)
    starts.has_ended = True
    assert not _look(starts, 2.0, under_way=(3,))
    starts.untracked_waits()
    assert not _look(starts, 3.0)
    starts.untracked_sent(7)
    assert starts.leads(-1, 7)
    assert not _look(starts, 4.0, open_tokens=(7,))
    assert _look(starts, 5.0)
    assert not starts.leads(3, 7)


def test_nobody_waits_longer_than_sixty_seconds_or_a_hundred_slots() -> None:
    """Whichever is longer; what is still in line goes by its value then."""
    for bandwidth, until in ((10.0, 60.0), (0.5, 200.0)):
        starts = _starts(bandwidth=bandwidth)
        starts.asked(page=1)
        assert not _look(starts, until - 1.0)
        assert _look(starts, until)
        assert not starts.line


def test_nobody_waits_where_none_goes_first() -> None:
    """CRAWLSCHED_STARTS_FIRST = 0."""
    starts = _starts(first=0)
    assert not starts.asked(page=1)
    assert _look(starts, 0.0)
