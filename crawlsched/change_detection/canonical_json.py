"""JSON in one form, whatever the order of its keys and its white space."""

import json
from collections.abc import Collection
from typing import Any

__all__ = ["canonical_json"]


def canonical_json(text: str, ignore_keys: Collection[str] = ()) -> str | None:
    r"""Write a JSON document in one form.

    Parameters
    ----------
    text : str
        The document.
    ignore_keys : collection of str
        Names of keys that do not count, wherever in the document they stand.

    Returns
    -------
    str or None
        Keys in order, without white space; numbers as they were written, so that no digit is lost. None if the text
        is not JSON, or nested more deeply than Python reads.

    Examples
    --------
    >>> canonical_json('{"b": 1.50, "a": [true, null], "now": 12}', ignore_keys=["now"])
    '{"a":[true,null],"b":"\\u00001.50"}'
    """
    ignored = frozenset(ignore_keys)

    def counted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in pairs if key not in ignored}

    try:
        # Numbers become marked texts: as Python's numbers 1e400 and 2e400 would be equal, and one of 5,000 digits an
        # error.
        value = json.loads(text, object_pairs_hook=counted, parse_int=_marked, parse_float=_marked)
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return None


def _marked(number: str) -> str:
    return f"\0{number}"
