"""Columns that grow hold what they held, and large ones stay where they are."""

import mmap

import numpy as np
import pytest

from crawlsched.columns import growing
from crawlsched.columns.growing import grown, zeros


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
