"""The page index agrees with a dictionary."""

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crawlsched import page_index
from crawlsched.page_index import PageIndex


def _name(number: int) -> bytes:
    return hashlib.sha1(str(number).encode()).digest()


@given(st.lists(st.tuples(st.sampled_from(["load", "add", "discard"]), st.integers(0, 30)), max_size=40))
def test_any_history_agrees_with_a_dictionary(steps: list[tuple[str, int]]) -> None:
    """Loaded, added, discarded and added again: the index says what a dictionary says."""
    index, known = PageIndex(), {}
    for page, (action, number) in enumerate(steps):
        if action == "discard":
            gone = known.pop(number, -5)
            index.discard(np.array([gone]))
        elif action == "add" or number in known:
            index.add(_name(number), page)
            known[number] = page
        else:
            keys = PageIndex.keys(np.frombuffer(_name(number), np.uint8).reshape(1, 20))
            index.load(keys, np.array([page], np.int32))
            known[number] = page
        for asked in range(31):
            assert index.page(_name(asked)) == known.get(asked, -1)
    assert len(index) == len(known)


def test_many_new_pages_join_the_arrays(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """The dictionary of new pages never grows beyond its bound."""
    monkeypatch.setattr(page_index, "_MERGE_AT_LEAST", 10)
    index = PageIndex()
    for number in range(1000):
        index.add(_name(number), number)
        assert len(index._new) <= max(10, 0.05 * number + 1)
    assert list(range(1000)) == [index.page(_name(number)) for number in range(1000)]
