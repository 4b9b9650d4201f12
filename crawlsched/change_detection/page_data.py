"""Page data: JSON in the scripts of a page, and JSON as keys with values."""

import json
import re
from collections.abc import Iterator
from typing import Any

from crawlsched.change_detection.html_scan import Tag

__all__ = ["ASSET", "leaves_of", "parsed_json", "script_data"]

_ASSIGNED = re.compile(r"""\s*(?:(?:window|self|globalThis)[.\[]|var\s|let\s|const\s)[^={;(]{1,100}=\s*(?=[{\[])""")
ASSET = re.compile(r"\.(?:js|mjs|css|png|jpe?g|gif|svg|webp|avif|ico|woff2?|map)(?:\?\S*)?\Z", re.IGNORECASE)
"""What ends so names a file of the site's, as links and sources of images do, and counts no more than these."""

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_MOST_LEAVES = 2_000
_MOST_KEYS = 20
# Keys that are made up or numbers are those of a table, and its rows are alike.
_KEY_OF_A_ROW = re.compile(r"\d|\W{2,}|.{41,}")


def script_data(tag: Tag, text: str) -> Any:
    r"""Return the data that a script holds, or assigns to a variable; None if it is a program.

    Examples
    --------
    >>> script_data(Tag('script type="application/ld+json"'), '{"price": 5}'), script_data(Tag("script"), "go()")
    ({'price': '5'}, None)
    >>> script_data(Tag("script"), "window.__STATE__ = {\"price\": 5.0}; go()")
    {'price': '5.0'}
    """
    if "json" in tag.attributes.lower():
        return parsed_json(text)
    match = _ASSIGNED.match(text)
    return parsed_json(text, match.end()) if match else None


def parsed_json(text: str, start: int | None = None) -> Any:
    """Parse JSON, numbers as they are written; None where it is none. From a start on, what follows does not matter."""
    try:
        text = text if start is not None else text.strip().removeprefix("\ufeff")
        value, end = _DECODER.raw_decode(text, start or 0)
    except (ValueError, RecursionError):
        return None
    if start is None and text[end:].strip():
        return None
    return value if isinstance(value, dict | list) else None


def leaves_of(value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the keys that lead to each value of a JSON document, and the value; at most 2,000, the rest as one.

    Places in lists do not count as keys, nor do keys that look made up; keys are read in order.

    Examples
    --------
    >>> list(leaves_of({"b": [1, {"c": None}], "a": "Tea"}))
    [(('a',), 'Tea'), (('b',), '1'), (('b', 'c'), 'null')]
    """
    open_values: list[tuple[tuple[str, ...], Any]] = [((), value)]
    n = 0
    while open_values:
        keys, value = open_values.pop()
        if isinstance(value, dict | list) and (n >= _MOST_LEAVES or len(keys) >= _MOST_KEYS):
            yield keys, json.dumps(value, sort_keys=True)
        elif value == {} or value == []:
            yield keys, json.dumps(value)
        elif isinstance(value, dict):
            for key in sorted(value, reverse=True):
                open_values.append(((*keys, "#" if _KEY_OF_A_ROW.search(key) else key), value[key]))
        elif isinstance(value, list):
            open_values.extend((keys, inner) for inner in reversed(value))
        else:
            n += 1
            yield keys, value if isinstance(value, str) else json.dumps(value)
