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


def test_a_delivery_waits_for_requests_that_are_no_pages_however_long() -> None:
    """It is complete when such a request's own callback and items have ended; it waits for its slot without a limit."""
    ends = _Ends()
    deliveries = ends.deliveries
    deliveries.begin(1, page=7, now=0.0)
    deliveries.untracked_waits(1)
    deliveries.called_back(1, now=1.0)
    assert deliveries.give_up(started_before=1000.0, now=1000.0) == 0
    deliveries.untracked_sent(2, 1, now=1000.0)
    deliveries.yielded(2)
    deliveries.called_back(2, now=1001.0)
    assert ends.delivered == []
    deliveries.output_ended(2, now=1002.0)
    assert (ends.delivered, len(deliveries)) == ([7], 0)


def test_an_error_of_such_a_request_ends_it_and_its_descendants_are_not_waited_for() -> None:
    """Direct requests count; what their callbacks ask for is no business of the page."""
    ends = _Ends()
    deliveries = ends.deliveries
    deliveries.begin(1, page=7, now=0.0)
    for _ in range(2):
        deliveries.untracked_waits(1)
    deliveries.called_back(1, now=1.0)
    deliveries.untracked_sent(2, 1, now=2.0)
    deliveries.untracked_sent(3, 1, now=2.0)
    deliveries.failed(2, now=3.0)
    deliveries.untracked_waits(3)
    deliveries.called_back(3, now=4.0)
    deliveries.untracked_sent(4, 3, now=5.0)
    assert ends.delivered == []
    deliveries.called_back(4, now=6.0)
    assert (ends.delivered, ends.failed) == ([7], [])


def test_the_same_content_is_known_to_be_on_its_way() -> None:
    """Until its delivery ends; other content of the page is not."""
    ends = _Ends()
    ends.deliveries.begin(1, page=7, now=0.0, digest=b"a", owed=2)
    assert ends.deliveries.is_open(7)
    assert ends.deliveries.under_way(7) == ([b"a"], 2)
    ends.deliveries.called_back(1, now=1.0)
    assert not ends.deliveries.is_open(7)


@given(st.lists(st.sampled_from(["item", "request"]), max_size=6), st.randoms())
def test_it_ends_once_whatever_the_order(kinds: list[str], random: object) -> None:
    """Items and requests end in any order, before or after the callback; then the page is delivered, exactly once."""
    ends = _Ends()
    deliveries = ends.deliveries
    deliveries.begin(0, page=7, now=0.0)
    events = [lambda: deliveries.called_back(0, now=1.0)]
    for number, kind in enumerate(kinds, 1):
        if kind == "item":
            deliveries.yielded(0)
            events.append(lambda: deliveries.output_ended(0, now=1.0))
        else:
            deliveries.untracked_waits(0)
            deliveries.untracked_sent(number, 0, now=0.0)
            events.append(lambda token=number: deliveries.called_back(token, now=1.0))  # type: ignore[misc]
    random.shuffle(events)  # type: ignore[attr-defined]
    for n, event in enumerate(events):
        assert ends.delivered == ([] if n < len(events) else [7])
        event()
    assert (ends.delivered, len(deliveries)) == ([7], 0)
