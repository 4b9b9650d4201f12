"""Pages are counted some at a time, and come to what counting them one by one does."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from crawlsched.pages import FREE, STATE_NAMES, Pages
from crawlsched.pages import pages as columns
from crawlsched.pages.pages import counted


@pytest.mark.parametrize("at_once", [7, 2**16])
@pytest.mark.parametrize("n", [0, 1, 7, 100])
def test_counts_in_parts_are_those_of_all_pages_one_by_one(
    n: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgotten pages are left out: they have no state, no source, and their hosts no page."""
    monkeypatch.setattr(columns, "_AT_ONCE", at_once)
    rng, pages = np.random.default_rng(n), Pages()
    added = pages.add(host=rng.integers(0, 50, n), now=0.0)
    pages.state[added] = rng.integers(0, len(STATE_NAMES), n)
    pages.source[added] = rng.integers(-1, 4, n)
    rows = [(pages.state.item(p), pages.source.item(p), pages.host.item(p)) for p in range(n)]
    rows = [row for row in rows if row[0] != FREE]
    found = counted(pages)
    states = {name: count for name, count in found["states"].items() if count}
    assert states == Counter(STATE_NAMES[state] for state, _, _ in rows)
    assert found["sources"] == Counter(source for _, source, _ in rows)
    assert found["hosts"] == len({host for _, _, host in rows})
