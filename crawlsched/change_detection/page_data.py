"""Page data: JSON in the scripts of a page, and JSON as keys with values."""

import json
import re
from collections.abc import Callable
from typing import Any

from crawlsched.change_detection.html_scan import Tag
from crawlsched.change_detection.limits import LONGEST_NAME, MOST_DENSE

__all__ = ["ASSET", "KEY_OF_A_ROW", "canonical_json", "parsed_json", "script_data"]

_ASSIGNED = re.compile(r"""\s*(?:(?:window|self|globalThis)[.\[]|var\s|let\s|const\s)[^={;(]{1,100}=\s*(?=[{\[])""")
#: What ends so names a file of the site's, as links and sources of images do, and counts no more than these.
ASSET = re.compile(r"\.(?:js|mjs|css|png|jpe?g|gif|svg|webp|avif|ico|woff2?|map)(?:\?\S*)?\Z", re.IGNORECASE)

# Keys of frameworks for themselves: what was built, and what a request was.
_OF_FRAMEWORKS = frozenset({"buildId", "nonce", "csrfToken", "csrf_token", "sentryTrace", "sentry-trace", "baggage"})
#: Keys that are made up or numbers are those of a table, and its rows are alike.
KEY_OF_A_ROW = re.compile(rf"\d|\W{{2,}}|.{{{LONGEST_NAME + 1}}}")


def script_data(tag: Tag, text: str, ignored: frozenset[str] = frozenset()) -> Any:
    r"""Return the data that a script holds, or assigns to a variable; None if it is a program.

    Of data with too many values it is the text.

    >>> script_data(Tag('script type="application/ld+json"'), '{"price": 5}'), script_data(Tag("script"), "go()")
    ({'price': '5'}, None)
    >>> script_data(Tag("script"), "window.__STATE__ = {\"price\": 5.0, \"buildId\": 7}; go()")
    {'price': '5.0'}
    """
    ignored |= _OF_FRAMEWORKS
    is_json = "json" in tag.attributes.lower()
    match = None if is_json else _ASSIGNED.match(text)
    if match is None and not is_json:
        return None
    return parsed_json(text, match and match.end(), ignored)


def parsed_json(text: str, start: int | None = None, ignored: frozenset[str] = frozenset()) -> Any:
    """Parse JSON, numbers as they are written, without some keys; None where it is none.

    From a start on, what follows does not matter. Of data with too many values it is the text.
    """
    # With more values than one in 25 of its characters it is no data that anybody wrote.
    if sum(map(text.count, ",[{")) > MOST_DENSE + len(text) // 25:
        return text
    try:
        text = text if start is not None else text.strip().removeprefix("\ufeff")
        value, end = _decoder(ignored, str).raw_decode(text, start or 0)
    except (ValueError, RecursionError):
        return None
    if start is None and text[end:].strip():
        return None
    return value if isinstance(value, dict | list) else None


def canonical_json(text: str, ignored: frozenset[str]) -> str | None:
    r"""Write JSON in one form, keys in order and without some; None if it is none, or nested too deeply for Python.

    >>> canonical_json('{"b": 1.50, "a": [true, null], "now": 12}', frozenset({"now"}))
    '{"a":[true,null],"b":"\\u00001.50"}'
    """
    try:
        # Numbers become marked texts: as Python's numbers 1e400 and 2e400 would be equal, and one of 5,000 digits an
        # error.
        value = _decoder(ignored, "\0{}".format).decode(text)
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return None


def _decoder(ignored: frozenset[str], of_number: Callable[[str], str]) -> json.JSONDecoder:
    def counted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in pairs if key not in ignored}

    return json.JSONDecoder(parse_int=of_number, parse_float=of_number, object_pairs_hook=counted if ignored else None)
