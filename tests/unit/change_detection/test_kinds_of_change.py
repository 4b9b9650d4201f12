"""The corpus: each kind of noise and of edits on 12 pages, visited 40 times, through the production's detector."""

from __future__ import annotations

import logging

import pytest

from tests.kinds_of_change import BY_CLASS, KINDS, PASSING, SLOW, Result, run

_PROVED = [name for name in KINDS if name not in SLOW]
_GROUPS = [_PROVED[start::8] for start in range(8)]

pytestmark = pytest.mark.statistics


@pytest.mark.parametrize("names", _GROUPS, ids=lambda names: names[0])
def test_no_edit_is_missed_and_hardly_a_change_made_up(names: list[str]) -> None:
    """Where two fetches or other pages prove what is noise: 1 % are made up, and of no kind more than 3 %.

    One edit of a hundred may go as the site's: the same word on three pages at once, before any other was asked for.
    """
    total = Result()
    for name in names:
        result = run(name)
        assert result.edits >= 30, name
        assert result.missed <= 0.02 * result.edits, (name, result.errors)
        assert result.false_share <= 0.03, (name, result.errors)
        assert result.probes <= 0.05 * result.visits + 6 + (20 if name in PASSING else 2 * 12), (name, result.probes)
        total.quiet += result.quiet
        total.false += result.false
    assert total.false_share <= 0.01, total


@pytest.mark.parametrize("name", SLOW)
def test_what_changes_slowly_is_told_and_suggested_to_be_left_out(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A counter that differs at each visit, and in no two fetches made at once, may be what the page is about."""
    with caplog.at_level(logging.INFO, "crawlsched.crawl.learned"):
        result = run(name)
    assert not result.missed, (name, result.errors)
    said = [record.getMessage() for record in caplog.records if "is delivered each time" in record.getMessage()]
    assert bool(said) == SLOW[name], said
    assert all("CRAWLSCHED_FINGERPRINT_DROP = [" in text for text in said)


@pytest.mark.parametrize("name", [name for name in _PROVED if name not in BY_CLASS][::6])
def test_names_of_classes_and_ids_change_no_judgement(name: str) -> None:
    """A site whose classes and ids are other words throughout is judged alike, visit by visit."""
    one, two = run(name, visits=16), run(name, visits=16, renames=True)
    assert (one.missed, one.false, one.templates, one.probes) == (two.missed, two.false, two.templates, two.probes)
