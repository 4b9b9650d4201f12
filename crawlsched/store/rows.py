"""Rows: values of Python and numpy made into what both databases take, and back."""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from crawlsched.exceptions import DamagedRow

__all__ = [
    "PLAIN",
    "clean",
    "column_values",
    "digest",
    "from_json",
    "json_like",
    "likelihood_rows",
    "plain",
    "to_json",
    "url_digest",
]


logger = logging.getLogger("crawlsched.store")

#: What needs no cleaning: nearly all values are such, and each visit writes three dozen.
PLAIN = frozenset({int, float, bytes, type(None)})


def clean(value: Any, cleaned: "Counter[str]") -> Any:
    r"""Make a value into what a database takes: JSON of what has parts, Python's numbers of numpy's.

    What PostgreSQL or UTF-8 cannot hold is taken out of a text, and counted.

    >>> count = Counter()
    >>> clean('W/"a\0b"', count), count["texts"]
    ('W/"ab"', 1)
    """
    if not isinstance(value, str):
        return to_json(value) if isinstance(value, (dict, list, tuple, Mapping)) else plain(value)
    sound = value.replace("\0", "").encode("utf-8", "replace").decode()
    cleaned["texts"] += sound != value
    return sound


def plain(value: Any) -> Any:
    """Make a number of numpy's into one of Python's, and a truth value into 0 or 1."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    return value


def to_json(value: Any) -> str:
    r"""Write JSON in ASCII, so that no text in it can trouble a database.

    >>> to_json({"a": np.float64(1.5), "b": np.arange(2), "c": "\0"})
    '{"a":1.5,"b":[0,1],"c":"\\u0000"}'
    """
    return json.dumps(value, separators=(",", ":"), default=_jsonable)


def _jsonable(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"A value of type {type(value).__name__} cannot be stored; give numbers, texts, lists and dicts.")


def from_json(value: str | None) -> Any:
    """Read JSON, or raise `DamagedRow`; None stays None."""
    if value is None:
        return None
    try:
        return json.loads(value)
    except (ValueError, TypeError, RecursionError) as error:
        shown = repr(value)
        raise DamagedRow(
            f"A row of the database is damaged: {shown[:60]}{'...' if len(shown) > 60 else ''} is no JSON ({error})."
        ) from error


def json_like(value: str | None, default: Any, what: str) -> Any:
    """Read JSON of the default's type; a damaged one costs a line in the log, and the default stands for it.

    >>> json_like('{"a": 1}', {}, "the host a"), json_like('[1]', {}, "the host a"), json_like(None, [], "it")
    ({'a': 1}, {}, [])
    """
    try:
        found = from_json(value)
    except DamagedRow as error:
        logger.warning("What is kept of %s is not used. %s", what, error)
        return default
    if found is not None and not isinstance(found, type(default)):
        logger.warning("What is kept of %s is damaged and not used: it is no %s.", what, type(default).__name__)
        return default
    return default if found is None else found


def digest(value: str) -> bytes:
    """Make a key of 16 bytes for a text of any length."""
    return hashlib.blake2b(value.encode("utf-8", "replace"), digest_size=16).digest()


def url_digest(url: str) -> int:
    """Make a signed 64-bit number for a URL, to find it by.

    >>> url_digest("https://example.com/")
    1493557592560457051
    """
    return int.from_bytes(hashlib.blake2b(url.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)


def column_values(column: np.ndarray) -> list[Any]:
    """Make a column into a list of Python's values; what is not finite (nan, never) becomes None."""
    values = np.asarray(column)
    if values.dtype.kind != "f":
        return values.tolist()  # type: ignore[no-any-return]
    listed: list[Any] = values.astype(np.float64).tolist()
    for index in np.nonzero(~np.isfinite(values))[0].tolist():
        listed[index] = None
    return listed


def likelihood_rows(log_likelihood: np.ndarray) -> list[bytes]:
    """Cut an array of uint16, shape (n, K), into n rows of bytes (little-endian)."""
    array = np.ascontiguousarray(log_likelihood, dtype="<u2")
    buffer, width = array.tobytes(), array.shape[1] * 2
    return [buffer[start : start + width] for start in range(0, len(buffer), width)] if width else [b""] * len(array)
