"""Tag data: the contents of tags that a reader sees, or that a program reads for people."""

import json
import re
from collections.abc import Callable
from typing import Any

from crawlsched.change_detection.html_scan import Tag, normalised, visible_text
from crawlsched.change_detection.limits import DEEPEST, DENSE, LONGEST_NAME, MOST_DENSE

__all__ = ["ASSET", "KEY_OF_A_ROW", "canonical_json", "data_of", "parsed_json", "script_data", "states_of", "told_by"]

_ASSIGNED = re.compile(r"""\s*(?:(?:window|self|globalThis)[.\[]|var\s|let\s|const\s)[^={;(]{1,100}=\s*(?=[{\[])""")
#: A value that ends like this names a file of the site. Such values do not count, and neither do links and sources of
#: images.
ASSET = re.compile(
    r"(?:/|\A(?=\S*\d))[^\s/]*\.(?:js|mjs|css|png|jpe?g|gif|svg|webp|avif|ico|woff2?|map)(?:\?[^\s/?]*+)?\Z",
    re.IGNORECASE,
)

# Keys with values that a framework uses itself, such as the id of a build or of a request.
_OF_FRAMEWORKS = frozenset({"buildId", "nonce", "csrfToken", "csrf_token", "sentryTrace", "sentry-trace", "baggage"})
#: A key that is a number or made up by a program is the key of a table's row. All rows of a table share one place.
KEY_OF_A_ROW = re.compile(rf"\d|\W{{2,}}|.{{{LONGEST_NAME + 1}}}")

# A class made of one of these words names a state: shown or not, available or not.
_STATES = frozenset((
    "hidden", "hide", "invisible", "none", "disabled", "inactive", "expired", "ended", "closed", "full", "booked",
    "taken", "occupied", "reserved", "free", "available", "unavailable", "sold", "soldout", "stock", "instock",
    "outofstock", "cancelled", "canceled", "recalled", "open", "yes", "no", "off", "on", "ok", "error", "warning",
    "success", "danger", "fail", "failed", "passed", "check", "cross", "times", "tick", "up", "down", "critical",
    "through", "ausverkauft", "epuise", "agotado", "esaurito",
))  # fmt: skip
# Words that may be added to a word of state.
_BESIDE_STATES = frozenset((
    "is", "has", "not", "out", "of", "in", "low", "d", "u", "fa", "icon", "status", "state", "glyphicon", "badge",
    "alert", "label", "line",
))  # fmt: skip
_SEPARATOR = re.compile(r"[-_\s]+")
_STYLES = {
    "[hidden]": re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE),
    "[struck]": re.compile(r"text-decoration[^;]*line-through", re.IGNORECASE),
}
_CONTROLS = frozenset({"input", "button", "select", "option", "textarea", "meter", "progress", "data", "output", "li"})
_STRUCK = frozenset({"s", "del", "strike"})
_SWITCHES = ("hidden", "disabled", "checked", "selected", "readonly", "open")
_SAID = ("alt", "aria-label", "aria-valuetext", "title", "placeholder", "label")
_ARIA = [f"aria-{state}" for state in ("pressed", "disabled", "checked", "selected", "expanded", "current", "valuenow")]
# All attributes that count.
_TELLING = frozenset({"class", "style", "value", "start", "srcdoc", *_SWITCHES, *_SAID, *_ARIA})
_META = re.compile(r"description|og:(?!image)|product:|article:|price|availability", re.IGNORECASE)


def states_of(classes: str) -> list[str]:
    """Return the classes that name the state of an element.

    >>> states_of("price is-hidden seat--taken badge-danger open-letters room_closed sold-out")
    ['badge-danger', 'is-hidden', 'room_closed', 'seat--taken', 'sold-out']
    """
    if _STATES.isdisjoint(_SEPARATOR.split(classes.lower())):  # true for nearly all elements
        return []
    names = {*classes.split(None, DEEPEST)[:DEEPEST]}
    words = {name: [word for word in _SEPARATOR.split(name.lower()) if word not in _BESIDE_STATES] for name in names}
    return sorted(name for name in names if not _STATES.isdisjoint(words[name][-1:]))


def told_by(tag: Tag) -> str:
    """Return the words that a tag's attributes show a reader; also "[struck]" and "[link]" for struck text and links.

    Examples
    --------
    >>> [told_by(Tag(text)) for text in ('input type=submit value="Buy"', "p hidden", "s", 'p class="big"')]
    ['Buy', '[hidden]', '[struck]', '']
    >>> told_by(Tag('a href="/1"')), told_by(Tag('td class="day sold-out"')), told_by(Tag('img alt="A cup" src=/1.png'))
    ('[link]', '[sold-out]', 'A cup')
    >>> told_by(Tag('p style="text-decoration: line-through"')), told_by(Tag('i aria-checked="true"'))
    ('[struck]', '[aria-checked true]')
    """
    name = tag.name
    is_link = name == "a" and "href" in tag.attributes
    first = "[link]" if is_link else "[struck]" if name in _STRUCK else ""
    found = tag.attribute_values
    if _TELLING.isdisjoint(found):
        return first
    if name == "input" and found.get("type", "").lower() in ("hidden", "password"):
        return ""
    said = [first] if first else []
    said += [f"[{name}]" for name in states_of(found.get("class", ""))]
    said += [f"[{switch}]" for switch in _SWITCHES if switch in found]
    said += [f"[{key} {found[key]}]" for key in _ARIA if key in found]
    if "style" in found:
        said += [word for word, pattern in _STYLES.items() if pattern.search(found["style"])]
    said += [found[key] for key in _SAID if found.get(key)]
    if name in _CONTROLS and found.get("value"):
        said.append(found["value"])
    if name == "ol" and "start" in found:
        said.append(f"[from {found['start']}]")
    if name == "iframe" and "srcdoc" in found:
        said.append(visible_text(normalised(found["srcdoc"])))
    return normalised(" ".join(said))


def data_of(tag: Tag) -> list[tuple[str, str]]:
    """Return the names and values of a tag that are meant for programs, such as search engines.

    Examples
    --------
    >>> data_of(Tag('meta itemprop="price" content="5"')), data_of(Tag('meta property="og:title" content="Tea"'))
    ([('price', '5')], [('og:title', 'Tea')])
    >>> data_of(Tag('link itemprop="availability" href="https://schema.org/InStock"'))
    [('availability', 'https://schema.org/InStock')]
    >>> data_of(Tag('b data-price="5"')), data_of(Tag('meta property="og:image" content="/1.png?v=2"'))
    ([], [])
    """
    if "itemprop" not in tag.attributes and tag.name != "meta":
        return []
    found = tag.attribute_values
    key = found.get("itemprop") or found.get("property") or found.get("name") or ""
    if not key or ("itemprop" not in found and not _META.match(key)):
        return []
    values = [found[name] for name in ("content", "datetime", "href") if found.get(name)]
    return [(key, normalised(value)) for value in values[:1] if not ASSET.search(value)]


def script_data(tag: Tag, text: str, ignored: frozenset[str] = frozenset()) -> Any:
    r"""Return the JSON that a script contains or assigns to a variable; None if the script is another program.

    If there are too many values, the whole text is the value.

    >>> script_data(Tag('script type="application/ld+json"'), '{"price": 5}'), script_data(Tag("script"), "go()")
    ({'price': '5'}, None)
    >>> script_data(Tag("script"), "window.__STATE__ = {\"price\": 5.0, \"buildId\": 7}; go()")
    {'price': '5.0'}
    """
    is_json = "json" in tag.attributes.lower()
    match = None if is_json else _ASSIGNED.match(text)
    if match is None and not is_json:
        return None
    return parsed_json(text, match and match.end(), ignored)


def parsed_json(text: str, start: int | None = None, ignored: frozenset[str] = frozenset()) -> Any:
    """Parse JSON with numbers as texts, without keys that are `ignored` or of a framework; None: the text is not JSON.

    If `start` is given, any text may follow the JSON. If there are too many values, the whole text is the value.
    """
    if sum(map(text.count, ",[{")) > MOST_DENSE + len(text) // DENSE:
        return text
    try:
        text = text if start is not None else text.strip().removeprefix("\ufeff")
        value, end = _decoder(ignored | _OF_FRAMEWORKS, str).raw_decode(text, start or 0)
    except (ValueError, RecursionError):
        return None
    is_all = start is not None or not text[end:].strip()
    return value if is_all and isinstance(value, dict | list) else None


def canonical_json(text: str, ignored: frozenset[str]) -> str | None:
    r"""Write JSON in one form, with sorted keys and without the `ignored` keys.

    It returns None if the text is not JSON, or if it is nested too deeply for Python.

    >>> canonical_json('{"b": 1.50, "a": [true, null], "now": 12}', frozenset({"now"}))
    '{"a":[true,null],"b":"\\u00001.50"}'
    """
    try:
        # Numbers become texts with a mark: for Python 1e400 equals 2e400, and a number of 5,000 digits is an error.
        value = _decoder(ignored, "\0{}".format).decode(text)
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return None


def _decoder(ignored: frozenset[str], of_number: Callable[[str], str]) -> json.JSONDecoder:
    def counted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in pairs if key not in ignored}

    return json.JSONDecoder(parse_int=of_number, parse_float=of_number, object_pairs_hook=counted if ignored else None)
