"""The corpus: each kind of noise and of edits on 12 pages, visited 40 times, through the production's detector."""

from __future__ import annotations

import pytest

from tests.kinds_of_change import KINDS, PASSING, Result, run

#: At some of their visits another page is served, and that is all that can be seen; or it is told until it is known.
_GROUPS = [list(KINDS)[start::8] for start in range(8)]
_MOST_FALSE = 0.06

pytestmark = pytest.mark.statistics


@pytest.mark.parametrize("names", _GROUPS, ids=lambda names: names[0])
def test_hardly_an_edit_is_missed_and_hardly_a_change_made_up(names: list[str]) -> None:
    """At most 2 % of the edits and 3 % of the other visits together; of no kind more than 6 % of either."""
    total = Result()
    for name in names:
        result = run(name)
        assert result.edits >= 30, name
        assert result.missed_share <= 0.06, (name, result.errors)
        assert result.false_share <= _MOST_FALSE, (name, result.errors)
        assert result.probes <= 0.05 * result.visits + 6 + (20 if name in PASSING else 2 * 12), (name, result.probes)
        total.edits += result.edits
        total.missed += result.missed
        total.quiet += result.quiet
        total.false += result.false
    assert total.missed_share <= 0.02, total
    assert total.false_share <= 0.03, total


def test_there_are_enough_kinds() -> None:
    """Sixty at least."""
    assert len(KINDS) >= 60
