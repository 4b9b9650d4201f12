"""Evidence from two fetches at once: edits that fall between them are told from noise by how often they do."""

from __future__ import annotations

from random import Random

import pytest

from crawlsched.change_detection.blocks import page_blocks
from crawlsched.change_detection.evidence import Evidence
from crawlsched.change_detection.template_noise import TemplateNoise
from crawlsched.change_detection.trace import differences, trace_of


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


_POST = "We met {} by the harbour today and talked about the boats of the other villages, late by wind"
_POST_WITH_DATE = "On day {} we met at the harbour and talked about the boats of other villages, late again"


@pytest.mark.parametrize(
    ("text", "fetched", "is_known"),
    [
        (_POST, [("here", "again"), ("once", "twice")], False),
        (_POST_WITH_DATE + ", at 12:30", [("1", "2"), ("3", "4")], True),
        ("It is {} at 12:30 now", [("sunny", "cold"), ("dry", "wet")], True),
    ],
    ids=["a post that mentions a time", "digits of a text that tells the time", "a line that tells the time"],
)
def test_a_text_that_mentions_a_time_is_no_clock(text: str, fetched: list[tuple[str, str]], is_known: bool) -> None:
    """Two second fetches of two that differed are enough where what differs is a time, and not in a post about one."""
    noise = TemplateNoise()
    for page, (first, second) in enumerate(fetched):
        one, two = (page_blocks(f"<h1>Tea</h1><p>{text.format(word)}</p>") for word in (first, second))
        trace, keys = trace_of(two)
        found = differences(trace_of(one)[0], trace, keys)
        noise.learn_at_once(page, found, found, trace, two, 0.0)
    assert bool(noise.known()) == is_known
