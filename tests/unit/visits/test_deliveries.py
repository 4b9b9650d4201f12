"""Deliveries: complete when the callback and the pipelines have finished, in whatever order."""

from hypothesis import given
from hypothesis import strategies as st

from crawlsched.visits.deliveries import Deliveries


def _deliveries() -> tuple[Deliveries, list[int], list[int]]:
    delivered: list[int] = []
    failed: list[int] = []
    return Deliveries(delivered=lambda page, now: delivered.append(page), failed=failed.append), delivered, failed


def test_a_callback_without_items_completes_its_delivery() -> None:
    """Nothing to wait for."""
    deliveries, delivered, _ = _deliveries()
    deliveries.begin(1, page=7, now=0.0)
    deliveries.called_back(1, items=0, now=1.0)
    assert delivered == [7]


def test_a_failure_leaves_the_page_undelivered() -> None:
    """A pipeline that raised ends the delivery; items that finish later change nothing."""
    deliveries, delivered, failed = _deliveries()
    deliveries.begin(1, page=7, now=0.0)
    deliveries.failed(1)
    deliveries.called_back(1, items=1, now=1.0)
    deliveries.item_finished(1, now=2.0)
    assert (delivered, failed) == ([], [7])


def test_deliveries_whose_end_is_never_announced_are_given_up() -> None:
    """A response that another component swallowed does not wait for ever."""
    deliveries, delivered, failed = _deliveries()
    deliveries.begin(1, page=7, now=0.0)
    deliveries.begin(2, page=8, now=10.0)
    assert deliveries.give_up(started_before=5.0) == 1
    assert (delivered, failed, len(deliveries)) == ([], [7], 1)


@given(st.integers(0, 5), st.randoms(use_true_random=False))
def test_the_order_of_items_and_callback_does_not_matter(items: int, random) -> None:  # type: ignore[no-untyped-def]
    """Delivered exactly once, and only at the last event."""
    deliveries, delivered, _ = _deliveries()
    deliveries.begin(1, page=7, now=0.0)
    events = ["item"] * items + ["callback"]
    random.shuffle(events)
    for event in events:
        assert delivered == []
        if event == "item":
            deliveries.item_finished(1, now=1.0)
        else:
            deliveries.called_back(1, items, now=1.0)
    assert delivered == [7]
