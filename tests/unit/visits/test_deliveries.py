"""Deliveries: complete when the callback, its items and its further requests have ended, in whatever order."""

from hypothesis import given
from hypothesis import strategies as st

from crawlsched.crawl.deliveries import Deliveries


class _Ends:
    """Deliveries, and how those of pages have ended."""

    def __init__(self) -> None:
        self.delivered: list[int] = []
        self.failed: list[int] = []
        self.given_up: list[int] = []
        self.deliveries = Deliveries(
            delivered=lambda delivery, now: self.delivered.append(delivery.page),
            failed=lambda delivery, now: self.failed.append(delivery.page),
            given_up=lambda delivery, now: self.given_up.append(delivery.page),
        )


def test_a_failure_leaves_the_page_undelivered() -> None:
    """A pipeline that raised ends the delivery; items that finish later change nothing."""
    ends = _Ends()
    ends.deliveries.begin(1, page=7, now=0.0)
    ends.deliveries.yielded(1)
    ends.deliveries.failed(1, now=0.5)
    ends.deliveries.called_back(1, now=1.0)
    ends.deliveries.output_ended(1, now=2.0)
    assert (ends.delivered, ends.failed, len(ends.deliveries)) == ([], [7], 0)


def test_deliveries_whose_end_is_never_announced_are_given_up() -> None:
    """A response that another component swallowed does not wait for ever."""
    ends = _Ends()
    ends.deliveries.begin(1, page=7, now=0.0)
    ends.deliveries.begin(2, page=8, now=10.0)
    assert ends.deliveries.give_up(started_before=5.0, now=20.0) == 1
    assert (ends.delivered, ends.given_up, len(ends.deliveries)) == ([], [7], 1)


def test_a_request_that_is_no_page_is_known_until_its_callback_and_items_have_ended() -> None:
    """Its end is no page's delivery, nor is its failure one that is counted."""
    ends = _Ends()
    deliveries = ends.deliveries
    for token in (2, 3):
        deliveries.untracked_sent(token, now=1.0)
    deliveries.yielded(2)
    deliveries.called_back(2, now=2.0)
    assert deliveries.n_untracked == 2
    deliveries.output_ended(2, now=3.0)
    deliveries.failed(3, now=3.0)
    assert (deliveries.n_untracked, ends.delivered, ends.failed) == (0, [], [])


def test_the_same_content_is_known_to_be_on_its_way() -> None:
    """Until its delivery ends; other content of the page is not."""
    ends = _Ends()
    ends.deliveries.begin(1, page=7, now=0.0, digest=b"a", owed=2)
    assert ends.deliveries.is_open(7)
    assert ends.deliveries.under_way(7) == ([b"a"], 2)
    ends.deliveries.called_back(1, now=1.0)
    assert not ends.deliveries.is_open(7)


@given(st.integers(0, 6), st.randoms())
def test_it_ends_once_whatever_the_order(n_yielded: int, random: object) -> None:
    """Items and requests end in any order, before or after the callback; then the page is delivered, exactly once."""
    ends = _Ends()
    deliveries = ends.deliveries
    deliveries.begin(0, page=7, now=0.0)
    events = [lambda: deliveries.called_back(0, now=1.0)]
    for _ in range(n_yielded):
        deliveries.yielded(0)
        events.append(lambda: deliveries.output_ended(0, now=1.0))
    random.shuffle(events)  # type: ignore[attr-defined]
    for n, event in enumerate(events):
        assert ends.delivered == ([] if n < len(events) else [7])
        event()
    assert (ends.delivered, len(deliveries)) == ([7], 0)
