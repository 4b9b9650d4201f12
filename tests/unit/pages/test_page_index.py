"""The page index agrees with a dictionary."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.pages.page_index import PageIndex


def _name(number: int) -> bytes:
    return hashlib.sha1(str(number).encode()).digest()


def _loaded(numbers: range, block: int = 700) -> PageIndex:
    index = PageIndex()
    blocks = [numbers[start : start + block] for start in range(0, len(numbers), block)]
    for part in blocks:
        index.add_many(_keys(part), np.array(part))
    return index


def _keys(numbers: range) -> np.ndarray:
    return PageIndex.keys(np.frombuffer(b"".join(map(_name, numbers)), np.uint8).reshape(-1, 20))


@given(st.integers(0, 20), st.lists(st.tuples(st.sampled_from(["add", "discard"]), st.integers(0, 30)), max_size=40))
def test_any_history_agrees_with_a_dictionary(n_loaded: int, steps: list[tuple[str, int]]) -> None:
    """Loaded, added, discarded, added again: the index says what a dictionary says."""
    index, known = _loaded(range(n_loaded)), {number: number for number in range(n_loaded)}
    for page, (action, number) in enumerate(steps, n_loaded):
        if action == "discard":
            index.discard(np.array([known.pop(number, 1000 + page)]))
        else:
            index.add(_name(number), page)
            known[number] = page
        for asked in range(31):
            assert index.page(_name(asked)) == known.get(asked, -1)
        assert len(index) == len(known)


def test_fingerprints_that_differ_in_the_last_bit_kept_are_two() -> None:
    """Their first 8 bytes count; what differs only behind them is one page."""
    index = PageIndex()
    base = bytes.fromhex("00112233445566778899")
    index.add(base, 0)
    for bit in range(64):
        other = (int.from_bytes(base, "big") ^ 1 << 79 - bit).to_bytes(10, "big")
        assert index.page(other) == -1
        index.add(other, bit + 1)
    assert index.page(base) == 0
    assert index.page(base[:8] + b"\xff\xff") == 0


@pytest.mark.parametrize("n_first_bytes", [1, 3, 256])
def test_loaded_keys_need_not_be_spread_evenly(n_first_bytes: int) -> None:
    """Of a project's own fingerprinter all may begin alike; each page is found, and nothing else."""
    rng = np.random.default_rng(n_first_bytes)
    fingerprints = rng.integers(0, 256, (300_000, 20), np.uint8)
    fingerprints[:, 0] = rng.integers(0, n_first_bytes, 300_000)
    index, numbers = PageIndex(), rng.permutation(300_000)
    blocks = np.array_split(np.arange(300_000), 7)
    for rows in blocks:
        index.add_many(PageIndex.keys(fingerprints[rows]), numbers[rows])
    assert len(index) == 300_000
    some = range(0, 300_000, 997)
    assert [index.page(fingerprints[row].tobytes()) for row in some] == numbers[list(some)].tolist()
    assert {index.page(rng.bytes(20)) for _ in range(300)} == {-1}
