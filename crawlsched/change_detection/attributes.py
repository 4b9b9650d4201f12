"""Attributes: what a tag tells a reader, or a program that reads the page, beside the text between the tags."""

import re

from crawlsched.change_detection.html_scan import Tag, normalised
from crawlsched.change_detection.page_data import ASSET
from crawlsched.change_detection.visible_text import visible_text

__all__ = ["data_of", "is_of_chosen", "state_words", "told_by"]

# Most tags have none of these; one search tells.
_NOTABLE = re.compile(
    r"hidden|disabled|checked|selected|readonly|value|alt|aria-label|data-|itemprop|display|srcdoc|start|content"
    r"|\b(?:is|has|no|not|sold|out|in|un|d|u|hide|invisible|inactive|expired|ended|closed|full|booked|taken|free"
    r"|available|cancel+ed|recalled|open|yes|off|on|ok|error|warning|success|danger|fail|failed|passed|check|cross"
    r"|times|tick|up|down|none)(?![A-Za-z])",
    re.IGNORECASE,
)
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
# Such a class says which entry of a menu is the page's own.
_CHOSEN = frozenset({"active", "current", "selected", "chosen", "here"})
_OF_MENUS = frozenset((
    "is", "menu", "item", "page", "nav", "navbar", "link", "tab", "parent", "ancestor", "cat", "li", "a", "entry",
    "toc", "section", "node", "list",
))  # fmt: skip
_NOT_SHOWN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_CONTROLS = frozenset({"input", "button", "select", "option", "textarea", "meter", "progress", "data", "output", "li"})
_BUTTONS = frozenset({"submit", "button", "reset"})
_STRUCK = frozenset({"s", "del", "strike"})
_SWITCHES = ("hidden", "disabled", "checked", "selected", "readonly")
_SAID = ("alt", "aria-label")
_META = re.compile(r"description|og:|product:|article:|price|availability", re.IGNORECASE)
# Attributes that are there for scripts and style sheets: addresses, switches and names of theirs.
_TECHNICAL = re.compile(
    r"data-(?:src|href|url|lazy|sizes|id$|.*-id$|uid|uuid|guid|key|hash|token|nonce|csrf|react|v-|vue|ng|svelte|astro"
    r"|next|turbo|controller|action|target|toggle|bs-|md-|wf-|elementor|widget|role|type$|test|cy|qa|ga|gtm|track"
    r"|analytics|aos|scroll|anim|index|component|module|theme|color|css|class|style|view|version|rh|n-head|s-)",
    re.IGNORECASE,
)
_SECRET = re.compile(r"csrf|nonce|token|captcha|authenticity|viewstate|session", re.IGNORECASE)
_LONGEST = 400


def state_words(name: str) -> bool:
    """Whether a class says in which state an element is.

    Examples
    --------
    >>> [state_words(name) for name in ("is-hidden", "sold-out", "d-none", "open-letters", "price")]
    [True, True, True, False, False]
    """
    words = [word for word in _STATE_WORD.split(name.lower()) if word]
    if words[:1] in (["in"], ["out"]) and words[-1:] == ["stock"]:
        return True
    return (
        bool(words)
        and any(word in _STATES for word in words)
        and all(word in _STATES or word in _BESIDE_STATES for word in words)
    )


def is_of_chosen(name: str) -> bool:
    """Whether a class says that an entry is the chosen one of its menu, and nothing else.

    Examples
    --------
    >>> [is_of_chosen(name) for name in ("active", "md-nav__item--active", "current-menu-item", "current_page_item")]
    [True, True, True, True]
    >>> [is_of_chosen(name) for name in ("current-price", "active-users", "price-current", "current--price")]
    [False, False, False, False]
    """
    if name.lower().rpartition("--")[2] in _CHOSEN:
        return True
    words = [word for word in _STATE_WORD.split(name.lower()) if word]
    chosen = sum(word in _CHOSEN for word in words)
    return chosen > 0 and all(word in _CHOSEN or word in _OF_MENUS for word in words)


def told_by(tag: Tag) -> str:
    """Return what a tag says to a reader by its attributes, and that it strikes out or links its text.

    Examples
    --------
    >>> [told_by(Tag(text)) for text in ('input type=submit value="Buy"', "p hidden", "s", 'p class="big"')]
    ['Buy', '[hidden]', '[struck]', '']
    >>> told_by(Tag('a href="/1"')), told_by(Tag('td class="day sold-out"')), told_by(Tag('img alt="A cup" src=/1.png'))
    ('[link]', '[sold-out]', 'A cup')
    """
    name = tag.name
    if name == "a":
        return "[link]" if "href" in tag.attributes else ""
    if name in _STRUCK:
        return "[struck]"
    if not tag.attributes or not _NOTABLE.search(tag.attributes):
        return ""
    found = tag.attribute_values()
    said = [f"[{switch}]" for switch in _SWITCHES if switch in found]
    if "style" in found and _NOT_SHOWN.search(found["style"]):
        said.append("[hidden]")
    said += [f"[{word}]" for word in sorted({*found.get("class", "").split()}) if state_words(word)]
    said += [found[key] for key in _SAID if found.get(key)]
    if name in _CONTROLS and found.get("value") and not _is_secret(name, found):
        said.append(found["value"])
    if name == "ol" and "start" in found:
        said.append(f"[from {found['start']}]")
    if name == "iframe" and "srcdoc" in found:
        said.append(visible_text(normalised(found["srcdoc"])))
    return normalised(" ".join(said))


def data_of(tag: Tag) -> list[tuple[str, str]]:
    """Return what a tag says to programs: names and values.

    Examples
    --------
    >>> data_of(Tag('b data-price="5" data-src="/1.png"')), data_of(Tag('meta property="og:title" content="Tea"'))
    ([('data-price', '5')], [('og:title', 'Tea')])
    """
    if not tag.attributes or ("data-" not in tag.attributes and "content" not in tag.attributes):
        return []
    found = tag.attribute_values()
    told = [
        (key, normalised(value))
        for key, value in found.items()
        if key.startswith("data-")
        and value
        and len(value) <= _LONGEST
        and not _TECHNICAL.match(key)
        and not ASSET.search(value)
    ]
    if "content" in found:
        key = found.get("itemprop") or found.get("property") or (found.get("name") if tag.name == "meta" else "")
        if key and ("itemprop" in found or _META.match(key)):
            told.append((key, normalised(found["content"])))
    return told


def _is_secret(name: str, found: dict[str, str]) -> bool:
    return name == "input" and (
        bool(_SECRET.search(found.get("name", "")))
        or (found.get("type") in ("hidden", "password") and len(found["value"]) > 40)
    )
