"""Evidence: a sequential test tells noise from edits that come between two fetches."""

from __future__ import annotations

from random import Random

import pytest

from crawlsched.change_detection.template_noise import Evidence


def known_after_each(rng: Random, share: float, n: int = 40) -> list[bool]:
    """Return what is known after each pair of fetches of pages that had changed, which differ in a share."""
    evidence, known = Evidence(), []
    for _ in range(n):
        evidence.probed(f"{rng.randrange(9)}", differed=rng.random() < share)
        known.append(evidence.is_noise)
    return known


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1])
def test_pages_that_are_edited_between_two_fetches_now_and_then_are_not_noise(share: float) -> None:
    """Of the moments of a thousand crawls hardly any take them for noise."""
    rng = Random(1)
    moments = [known for _ in range(1_000) for known in known_after_each(rng, share)]
    assert sum(moments) <= 0.02 * len(moments)


@pytest.mark.parametrize("share", [0.5, 0.75, 1.0])
def test_what_differs_in_half_of_the_fetches_or_more_is_found_and_stays_found(share: float) -> None:
    """Two states by turns, too: fetches that agree by chance are not taken for a place that stands still."""
    rng = Random(2)
    crawls = [known_after_each(rng, share) for _ in range(300)]
    assert sum(known[-1] for known in crawls) >= 0.97 * len(crawls)


def test_what_stands_still_from_now_on_is_no_noise_after_few_fetches() -> None:
    """A slot of random words that becomes a notice."""
    evidence = Evidence()
    for page in range(12):
        evidence.probed(f"{page}", differed=True)
    for page in range(6):
        assert evidence.is_noise or page >= 4
        evidence.probed(f"{page}", differed=False)
    assert not evidence.is_noise


def test_on_a_page_that_was_not_fetched_twice_it_is_noise_where_more_pages_show_it_than_stand_still() -> None:
    """And not where one alone shows it."""
    evidence = Evidence()
    for _ in range(5):
        evidence.probed("1", differed=True)
    assert [evidence.is_noise_of(page) for page in "19"] == [True, False]
    evidence = Evidence()
    for page, differed in [("3", False), ("4", False)] * 3 + [("1", True), ("2", True)] * 10:
        evidence.probed(page, differed=differed)
    assert [evidence.is_noise_of(page) for page in "139"] == [True, False, False]
    for _ in range(5):
        evidence.probed("5", differed=True)
    assert [evidence.is_noise_of(page) for page in "139"] == [True, False, True]
