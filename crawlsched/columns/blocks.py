"""Blocks: divide work on a long array into some thousand rows at a time."""

from collections.abc import Iterator

__all__ = ["ROWS_AT_ONCE", "blocks"]

#: Between two picks, at most this number of rows of a column is searched. That takes a millisecond.
ROWS_AT_ONCE = 2**20


def blocks(n_rows: int, width: int = 8) -> Iterator[slice]:
    """Yield slices that together cover all rows; the numbers of one slice fill a megabyte.

    The intermediate arrays of a slice stay in the processor's cache, so this is faster than work on all rows together.

    Parameters
    ----------
    width : int, default 8
        Numbers that a formula needs for each row, in all its arrays together: about eight if each array has one number
        a row.

    Examples
    --------
    >>> list(blocks(20_000))
    [slice(0, 16384, None), slice(16384, 20000, None)]
    """
    at_once = max(2**17 // width, 1)
    for start in range(0, n_rows, at_once):
        yield slice(start, min(start + at_once, n_rows))
