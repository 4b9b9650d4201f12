"""Evidence from two fetches at once: edits that fall between them are told from noise by how often they do."""

from __future__ import annotations

from random import Random

import pytest

from crawlsched.change_detection.evidence import Evidence


def _probed(share: float, n_probes: int, rng: Random, n_pages: int = 2) -> list[Evidence]:
    """Return what is known after each probe of pages that had changed at a place, which differs at once in a share."""
    evidence, after = Evidence(), []
    for number in range(n_probes):
        evidence.probed(number % n_pages, differed=rng.random() < share, had_changed=True)
        after.append(Evidence.from_list(evidence.to_list()))
    return after


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_pages_that_are_edited_between_two_fetches_now_and_then_are_not_noise(share: float) -> None:
    """Two pages that change every few seconds: of the moments of a thousand crawls hardly any take them for noise."""
    rng = Random(1)
    known = [one.is_noise_at_once for _ in range(1000) for one in _probed(share, 30, rng)]
    assert sum(known) <= share * share * len(known)


@pytest.mark.parametrize("share", [0.5, 0.75, 1.0])
def test_what_differs_in_half_of_the_fetches_or_more_is_found_and_stays_found(share: float) -> None:
    """It is known in the end, be the first fetches what they may, or a second fetch is asked for still."""
    rng = Random(2)
    crawls = [_probed(share, 60, rng) for _ in range(500)]
    assert sum(crawl[-1].is_noise_at_once or crawl[-1].is_suspect for crawl in crawls) >= 0.98 * len(crawls)
    assert sum(crawl[-1].is_noise_at_once for crawl in crawls) >= 0.95 * len(crawls)


def test_two_of_five_are_no_evidence_of_noise() -> None:
    """As of pages that are edited every few seconds; a second fetch is asked for until more is known."""
    evidence = Evidence()
    for page, differed in enumerate([True, True, False, False, False]):
        evidence.probed(page % 2, differed=differed, had_changed=True)
    assert not evidence.is_noise_at_once
    assert evidence.is_suspect
