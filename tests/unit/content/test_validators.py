"""Validators on trial: honest, lying or unknown, by what visits without them find."""

from random import Random

import pytest

from crawlsched.crawl.validators import ValidatorTrials


def trials(share: float = 0.1, seed: int = 1) -> ValidatorTrials:
    return ValidatorTrials(Random(seed), share)


def compared(trials: ValidatorTrials, n: int, *, etag_moves: bool, changed: bool) -> None:
    for number in range(n):
        now = f'"{number}"' if etag_moves else '"always"'
        trials.compared(0, ('"always"', None), (now, None), changed=changed)


def test_an_etag_that_moves_with_three_changes_is_honest() -> None:
    """Its 304s are then believed without doubt."""
    on_trial = trials()
    compared(on_trial, 3, etag_moves=True, changed=True)
    assert on_trial.of(0)[0].standing == "honest"
    assert on_trial.doubt(0, '"a"', None) == 0.0


def test_an_etag_that_stays_at_two_changes_lies() -> None:
    """It is neither sent nor believed; Last-Modified still is."""
    on_trial = trials(share=0.0)
    compared(on_trial, 2, etag_moves=False, changed=True)
    assert on_trial.of(0)[0].standing == "lying"
    assert on_trial.to_send(0, '"always"', "Sat") == (None, "Sat")
    assert on_trial.doubt(0, '"always"', None) is None


def test_pages_that_never_change_prove_nothing() -> None:
    """An ETag that stays while nothing changes may be a constant: it is unknown, and 304s count with doubt."""
    on_trial = trials()
    compared(on_trial, 100, etag_moves=False, changed=False)
    assert on_trial.of(0)[0].standing == "unknown"
    assert on_trial.doubt(0, '"always"', None) == pytest.approx(0.2)


def test_a_server_that_mends_its_ways_is_believed_again() -> None:
    """After ten lies, a bounded number of honest changes makes it honest."""
    on_trial = trials()
    compared(on_trial, 10, etag_moves=False, changed=True)
    needed = 0
    while on_trial.of(0)[0].standing != "honest":
        compared(on_trial, 1, etag_moves=True, changed=True)
        needed += 1
        assert needed <= 200


def test_the_share_of_trials_is_kept() -> None:
    """One visit in ten to an honest host, every second to an unknown one, none with a share of 0."""
    on_trial = trials(share=0.1)
    n = 4_000

    def share_without() -> float:
        return sum(on_trial.to_send(0, '"a"', None) == (None, None) for _ in range(n)) / n

    assert share_without() == pytest.approx(0.5, abs=4 * 0.5 / n**0.5)
    compared(on_trial, 3, etag_moves=True, changed=True)
    assert share_without() == pytest.approx(0.1, abs=4 * 0.3 / n**0.5)
    never = trials(share=0.0)
    assert all(never.to_send(0, '"a"', None) == ('"a"', None) for _ in range(100))


def test_last_modified_tells_the_time_only_if_it_rests_when_the_page_does() -> None:
    """A page that says "modified now" at every fetch moves with each change, and tells nothing."""
    on_trial = trials()
    for number in range(20):
        now = f"Sat, {number}"
        on_trial.compared(0, (None, "Fri"), (None, now), changed=number % 2 == 0)  # moves always
        on_trial.compared(1, (None, "Fri"), (None, now if number % 2 == 0 else "Fri"), changed=number % 2 == 0)
    assert on_trial.of(0)[1].standing == on_trial.of(1)[1].standing == "honest"
    assert not on_trial.tells_time(0)
    assert on_trial.tells_time(1)
    assert not on_trial.tells_time(2)
