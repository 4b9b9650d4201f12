"""Attributes: what a tag shows a reader, or a program that reads the page, beside the text between the tags."""

import re

from crawlsched.change_detection.html_scan import Tag, normalised, visible_text
from crawlsched.change_detection.page_data import ASSET

__all__ = ["data_of", "state_words", "told_by"]

# A class that is made of one of these words says in which state something is: shown or not, to be had or not.
_STATES = frozenset((
    "hidden", "hide", "invisible", "none", "disabled", "inactive", "expired", "ended", "closed", "full", "booked",
    "taken", "free", "available", "unavailable", "sold", "soldout", "instock", "outofstock", "cancelled",
    "canceled", "recalled", "open", "yes", "no", "off", "on", "ok", "error", "warning", "success", "danger", "fail",
    "failed", "passed", "check", "cross", "times", "tick", "up", "down",
))  # fmt: skip
# Such words say it together with one of these, or alone.
_BESIDE_STATES = frozenset(
    {"is", "has", "not", "out", "of", "in", "stock", "d", "u", "fa", "icon", "status", "state", "glyphicon"}
)
_STATE_WORD = re.compile(r"[-_]+")
_NOT_SHOWN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_CONTROLS = frozenset({"input", "button", "select", "option", "textarea", "meter", "progress", "data", "output", "li"})
_STRUCK = frozenset({"s", "del", "strike"})
_SWITCHES = ("hidden", "disabled", "checked", "selected", "readonly", "open")
_SAID = ("alt", "aria-label", "title")
_ARIA = ("aria-pressed", "aria-disabled")
_OF_ITEMS = ("content", "datetime", "href")
_META = re.compile(r"description|og:(?!image)|product:|article:|price|availability", re.IGNORECASE)
_UNSEEN_INPUTS = frozenset({"hidden", "password"})


def state_words(name: str) -> bool:
    """Whether a class says in which state an element is.

    >>> [state_words(name) for name in ("is-hidden", "sold-out", "seat--taken", "open-letters", "price")]
    [True, True, True, False, False]
    """
    words = [word for word in _STATE_WORD.split(name.lower().rpartition("--")[2]) if word]
    if words[:1] in (["in"], ["out"]) and words[-1:] == ["stock"]:
        return True
    return (
        bool(words)
        and any(word in _STATES for word in words)
        and all(word in _STATES or word in _BESIDE_STATES for word in words)
    )


def told_by(tag: Tag) -> str:
    """Return the words of a tag's attributes for a reader, and whether it strikes out or links its text.

    Examples
    --------
    >>> [told_by(Tag(text)) for text in ('input type=submit value="Buy"', "p hidden", "s", 'p class="big"')]
    ['Buy', '[hidden]', '[struck]', '']
    >>> told_by(Tag('a href="/1"')), told_by(Tag('td class="day sold-out"')), told_by(Tag('img alt="A cup" src=/1.png'))
    ('[link]', '[sold-out]', 'A cup')
    """
    name = tag.name
    is_link = name == "a" and "href" in tag.attributes
    first = "[link]" if is_link else "[struck]" if name in _STRUCK else ""
    if not tag.attributes:
        return first
    found = tag.attribute_values()
    if name == "input" and found.get("type", "").lower() in _UNSEEN_INPUTS:
        return ""
    said = [first] if first else []
    said += [f"[{switch}]" for switch in _SWITCHES if switch in found]
    said += [f"[{key} {found[key]}]" for key in _ARIA if key in found]
    if "style" in found and _NOT_SHOWN.search(found["style"]):
        said.append("[hidden]")
    said += [f"[{word}]" for word in sorted({*found.get("class", "").split()}) if state_words(word)]
    said += [found[key] for key in _SAID if found.get(key)]
    if name in _CONTROLS and found.get("value"):
        said.append(found["value"])
    if name == "ol" and "start" in found:
        said.append(f"[from {found['start']}]")
    if name == "iframe" and "srcdoc" in found:
        said.append(visible_text(normalised(found["srcdoc"])))
    return normalised(" ".join(said))


def data_of(tag: Tag) -> list[tuple[str, str]]:
    """Return names and values by which a tag speaks to programs that read for people.

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
    found = tag.attribute_values()
    key = found.get("itemprop") or found.get("property") or found.get("name") or ""
    if not key or ("itemprop" not in found and not _META.match(key)):
        return []
    values = [found[name] for name in _OF_ITEMS if found.get(name)]
    return [(key, normalised(value)) for value in values[:1] if not ASSET.search(value)]
