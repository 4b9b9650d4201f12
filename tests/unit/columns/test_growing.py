"""Columns that grow hold what they held, and large ones stay where they are."""

import mmap

import numpy as np
import pytest

from crawlsched.columns import growing
from crawlsched.columns.growing import grown, zeros


@pytest.mark.parametrize("shape", [(10,), (3, 4), (2_000_000,), (100_000, 32)])
def test_a_longer_column_begins_with_what_there_was_and_ends_in_zeros(shape: tuple[int, ...]) -> None:
    """Small or large, of one dimension or two."""
    column = zeros(shape, np.float32)
    assert column.shape == shape
    assert not column.any()
    column[:] = values = np.random.default_rng(1).random(shape, np.float32)
    longer = grown(column, 2 * shape[0])
    assert (longer.shape, longer.dtype) == ((2 * shape[0], *shape[1:]), np.float32)
    assert (longer[: shape[0]] == values).all()
    assert not longer[shape[0] :].any()


def test_a_column_that_has_grown_already_does_not_share_what_came_with_that() -> None:
    """Of two that grow from the same column only the first stays."""
    column = zeros((1_000_000,), np.float64)
    first, second = grown(column, 1_200_000), grown(column, 1_200_000)
    first[1_100_000] = 5.0
    assert second[1_100_000] == 0.0


def test_where_no_addresses_are_left_columns_are_ordinary_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on addresses, as some machines have one, costs only copying."""

    class Refused(mmap.mmap):
        def __new__(cls, *arguments: object, **named: object) -> "Refused":
            raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(growing, "_Room", Refused)
    column = grown(zeros((200_000,), np.float64), 400_000)
    assert column.base is None
    assert column.size == 400_000
