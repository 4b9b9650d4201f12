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


@pytest.mark.parametrize(
    ("n", "etag_moves", "changed", "standing", "doubt"),
    [
        (3, True, True, "honest", 0.0),  # its 304s are believed without doubt
        (2, False, True, "lying", None),  # it is neither sent nor believed; Last-Modified still is
        (100, False, False, "unknown", 0.2),  # it may be a constant: 304s count with doubt
    ],
)
def test_an_etag_is_what_it_does_when_pages_change(n, etag_moves, changed, standing, doubt) -> None:
    """One that stays while nothing changes proves nothing."""
    on_trial = trials(share=0.0)
    compared(on_trial, n, etag_moves=etag_moves, changed=changed)
    assert on_trial.of(0)[0].standing == standing
    assert on_trial.doubt(0, '"always"', None) == (doubt and pytest.approx(doubt))
    assert standing != "lying" or {on_trial.to_send(0, '"always"', "Sat") for _ in range(100)} == {(None, "Sat")}


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
    assert not on_trial.of(0)[1].tells_time
    assert on_trial.of(1)[1].tells_time
    assert not on_trial.of(2)[1].tells_time
