"""A linear scan of HTML: each tag with the text before it, for any markup.

No tree is built. The scan takes time in proportion to the length of a page. It raises no error for any page, even if
elements are 100,000 deep, quotes never close, or a picture is called HTML. Its result for a page does not depend on the
versions of libraries.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from html import unescape
from typing import Any
from unicodedata import combining, normalize

from crawlsched.change_detection.limits import DEEPEST, DENSE, LOOKED_AT, MOST_BLOCKS, MOST_DENSE, MOST_KEPT

__all__ = ["INLINE", "Tag", "n_read_singly", "normalised", "scan", "skimmed", "visible_text"]

# Elements whose text no reader sees: scripts, styles, and elements that browsers show only as a substitute.
_UNSEEN = frozenset({"script", "style", "noscript", "template", "iframe", "noembed", "noframes", "object"})
# Elements that contain only text: a tag or a comment in them is text, too.
_TEXT_ONLY = frozenset({"title", "textarea", "xmp"})
# Elements whose addresses may be data. The addresses of all other elements count only beside an "itemprop".
_WITH_DATA = _UNSEEN | {"meta"}
# Elements that do not separate words. All other elements do: "<p>a</p><p>b</p>" reads "a b".
INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "label", "mark", "nobr", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub",
    "sup", "time", "tt", "u", "var", "wbr",
))  # fmt: skip
# Matches a text and the tag after it. If the element contains only text, the pattern also matches this text and the
# closing tag: one match instead of two saves a fifth of the time. Attributes may contain ">" within quotes, and quotes
# count only after "=". Quantifiers are possessive, so that a match that fails reads each character only once.
# Addresses and the attributes before them are groups of their own, as most tags of a page differ only in addresses.
_BEFORE = r"([^<]*+)<((?:/[a-zA-Z][^\s/>]*+|([a-zA-Z][^\s/>]*+)"
_BEHIND = r"))>(?:([^<]*+)</\3>)?+"
_ADDRESS = r'\s++(?:href|src|srcset|data-[\w-]++)="[^"]*+"'
_ADDRESSES = rf'(?:(?=\s)((?:(?!{_ADDRESS})\s++[\w-]++="[^"]*+")*+)((?:{_ADDRESS})*+))?+'
_WITHIN = r"""(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+"""
_TAG = re.compile(f"{_BEFORE}{_ADDRESSES})({_WITHIN}{_BEHIND}")
_SIMPLE_TAG = re.compile(rf"{_BEFORE}()())([^>]*+{_BEHIND}")
_NAME = re.compile(r"/?[^\s/>]*")
_CLOSERS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _UNSEEN | _TEXT_ONLY}
# A "<" that opens no tag. It begins a comment, a text, or a part that browsers read as a declaration.
_NO_TAG = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:[!?]|/(?![a-zA-Z]))[^>]*+>?|(?P<text>(?:<(?![a-zA-Z/!?])[^<]*+)++)", re.DOTALL
)
# A comment, or an element without tags in it. If the closing mark is missing, the rest of the page is part of it.
_PART_WITHOUT_TAGS = re.compile(
    rf"<!--(?:-?>|.*?(?:--!?>|\Z))|(?P<tag><({'|'.join(sorted(_CLOSERS))})(?=[\s/>]){_WITHIN}>?)(?P<held>.*?)(?=</\2[\s/>]|\Z)",
    re.DOTALL | re.IGNORECASE,
)
# In parts whose tags are not read one by one, `_TELLING_TAG` finds tags that can matter to a reader or program, and
# `_ANY_TAG` finds all tags.
_TELLING_TAG = re.compile(rf"<((?i:s|del|strike)(?=>)|[a-zA-Z][^\s/<>]*+[\s/]{_WITHIN})(?:>|\Z)")
_ANY_TAG = re.compile(rf"<[a-zA-Z/!?]{_WITHIN}>?")
_ATTRIBUTE = re.compile(r"""([^\s"'>/=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++)))?+""")
# Unicode's normal form sorts the accents of a letter in quadratic time. So a run of this many accents is not
# normalised.
_MOST_MARKS = DEEPEST // 4
_MARKS = re.compile(rf"([^\w\s]{{{_MOST_MARKS},}}+)")
_LONG_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}+;?")


# Spellings that no reader can tell apart; characters without width become nothing.
_SPELLING: dict[int, str] = (
    dict.fromkeys((0xAD, 0x34F, 0x61C, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF), "")
    | dict.fromkeys(range(0x2018, 0x201C), "'")
    | dict.fromkeys(range(0x201C, 0x2020), '"')
    | dict(zip(range(0xFB00, 0xFB07), ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))
)
_UNSEEN_SPELLING = re.compile(f"[{''.join(map(chr, _SPELLING))}]")

# All white space of Unicode is below this number.
_SPACES = {code: " " for code in range(0x3001) if chr(code).isspace()}


class Tag:
    """A tag, made from the text between "<" and ">". Equal tags are one object, unless they are long.

    Examples
    --------
    >>> tag = Tag('INPUT value="Tea" disabled')
    >>> tag.name, tag.closes, tag.parts_words, tag.attribute_values
    ('input', False, True, {'value': 'Tea', 'disabled': ''})
    """

    def __init__(self, written: str) -> None:
        name = _NAME.match(written)[0]  # type: ignore[index]  # it matches any text
        self.closes = name[0] == "/"
        self.name = name.lower().removeprefix("/")
        self.attributes = "" if self.closes else written[len(name) :]
        #: The values of the attributes by name in lower case. If a name occurs twice, its first value counts.
        self.attribute_values: dict[str, str] = {}
        for found in _ATTRIBUTE.finditer(self.attributes):  # a list of them may take fifteen times the size of a page
            self.attribute_values.setdefault(found[1].lower(), found[2] or found[3] or found[4] or "")
        self.parts_words = self.name not in INLINE
        # A declarative shadow root is shown in the place of its element.
        is_shadow = self.name == "template" and "shadowroot" in self.attributes.lower()
        self.is_unseen = not self.closes and self.name in _UNSEEN and not is_shadow
        #: The effort of reading the tag; a tag without attributes counts as 1.
        self.cost = 2 if self.attributes else 1
        self.is_raw = self.is_unseen or (not self.closes and self.name in _TEXT_ONLY)
        #: Facts that the caller has computed about the tag, so that they are computed only once.
        self.known: Any = None


#: The position of a text in the markup, or of its tag if the text is empty. Then the text, the tag after it, and the
#: content of that tag's element if the content is only text.
Scanned = tuple[int, str, Tag | None, str | None]


def scan(markup: str) -> Iterator[Scanned]:
    """Cut a page into its tags, each with the text before it.

    If an element contains only text, its opening tag is yielded with this text, and its closing tag is left out.

    Notes
    -----
    Comments and declarations are left out, and so are contents that no reader sees: styles, and elements that browsers
    show only as a substitute (noscript, template, iframe). The contents of titles and text areas are text. Contents of
    scripts are yielded, as they may be data. Links, sources and ``data-*`` are left out of most tags, as they show
    nothing. Broken markup is read as by browsers (HTML standard) wherever a reader would see a difference.

    Examples
    --------
    >>> for _, text, tag, inner in scan("<p>a<!-- b --> c<script>d</script><BR/><b>e</b> f</p>"):
    ...     print((text, tag and tag.name, tag and tag.closes, inner))
    ('', 'p', False, None)
    ('a', None, None, None)
    (' c', 'script', False, 'd')
    ('', 'br', False, None)
    ('', 'b', False, 'e')
    (' f', 'p', True, None)
    ('', None, None, None)
    """
    without_end: set[str] = set()  # names without a closing tag; searching for it each time would be quadratic
    is_xhtml = "http://www.w3.org/1999/xhtml" in markup[:LOOKED_AT]
    pattern = _TAG
    end = 0
    while True:
        position = end
        match = pattern.match(markup, position)
        if match is None:
            start = markup.find("<", position)
            if start < 0:
                yield position, markup[position:], None, None
                return
            text = markup[position:start]
            if other := _NO_TAG.match(markup, start):
                end = other.end()
                yield position, text + (other["text"] or ""), None, None
            else:  # A quote that never closes would swallow the rest: from here on, tags end at the next ">".
                end, pattern = len(markup) if pattern is _SIMPLE_TAG else start, _SIMPLE_TAG
                yield position, text, None, None
            continue
        text, written, name, before, addresses, others, inner = match.groups()
        end = match.end()
        if addresses and "itemprop" not in written and name.lower() not in _WITH_DATA:
            # The slash ends the attribute, so that nothing after it becomes its value.
            written = f"{name}{before} {'href' if 'href' in addresses else ''}/ {others}"
        tag = _known_tag(written) if len(written) <= LOOKED_AT else Tag(written)
        if not tag.is_raw or tag.name in without_end or (is_xhtml and tag.attributes.endswith("/")):
            yield position, text, tag, inner
        elif inner is not None:
            yield position, text, tag, "" if tag.is_unseen and tag.name != "script" else inner
        elif closer := _CLOSERS[tag.name].search(markup, end):
            held, end = markup[end : closer.start()], closer.start()
            yield position, text, tag, held if tag.name == "script" else None
            if not tag.is_unseen:
                yield position, held, None, None
        else:
            without_end.add(tag.name)
            yield position, text, tag, None


_known_tag = lru_cache(maxsize=4_096)(Tag)  # the pages of a site have most of their tags in common


def n_read_singly(text: str) -> int:
    """Return the largest number of tags, or of references, of a text that are read one by one."""
    return min(MOST_BLOCKS + len(text) // DENSE, MOST_DENSE)


def normalised(text: str, *, references: bool = True) -> str:
    r"""Return a text as a reader sees it; `docs/explanation/change_detection.md` has a table of the changes.

    References such as ``&amp;`` are replaced by their characters, unless there are too many. Every run of white space
    becomes one space, and Unicode is in its normal form C. Soft hyphens and characters without width are left out,
    quotes become straight, and ligatures become letters.

    Examples
    --------
    >>> normalised("  Fish &amp;\n chips&nbsp;"), normalised("co\u00adop \u201cof\ufb01ce\u201d\u200b cafe\u0301")
    ('Fish & chips', 'coop "office" café')
    """
    if len(text) <= MOST_KEPT and text.isascii() and "&" not in text:  # true for nearly all texts
        return " ".join(text.split())
    if references and 0 < text.count("&") <= n_read_singly(text):
        # Python refuses to read a number of thousands of digits. A number of more than eight digits is no character.
        text = unescape(_LONG_REFERENCE.sub("\ufffd", text) if "&#" in text else text)
    if not text.isascii():
        text = _UNSEEN_SPELLING.sub(lambda found: _SPELLING[ord(found[0])], text)
        parts = _MARKS.split(text) if any(map(combining, text[::_MOST_MARKS])) else [text]
        text = "".join(part if number % 2 else normalize("NFC", part) for number, part in enumerate(parts))
    if len(text) <= MOST_KEPT:
        return " ".join(text.split())
    text = text.translate(_SPACES)  # a list of all words would take ten times the size of the text
    while "  " in text:
        text = text.replace("  ", " ")
    return text.strip()


def visible_text(markup: str) -> str:
    """Return the text of an HTML page that a reader sees, with single spaces.

    Scripts, styles, comments and substitutes (noscript, template, iframe) do not count. The title counts, and so does
    text that a style sheet hides.

    Examples
    --------
    >>> visible_text("<title>Tea</title><p>A&nbsp;cup <b>now</b>!<script>var t = '<p>12:01</p>'</script><!-- 1 -->")
    'Tea A cup now!'
    """
    pieces: list[str] = []
    for _, text, tag, inner in scan(markup):
        separator = " " if tag and tag.parts_words else ""
        pieces += text, separator
        if tag and inner is not None and tag.name != "script":
            pieces += inner, separator
    return normalised("".join(pieces))


def skimmed(markup: str) -> tuple[str, list[str], list[tuple[str, str]]]:
    """Return three parts of some markup: its text, the tags that can matter, and the tag and text of each script.

    Every tag ends a word here, so a new tag within a word counts as a change.

    Examples
    --------
    >>> skimmed("<td>Tea<td><b title=hot>5<!-- 1 --></b><script async>go()</script><style>b</style></td>")
    ('Tea 5', ['b title=hot'], [('script async', 'go()')])
    """
    scripts: list[tuple[str, str]] = []

    def seen_of(part: re.Match[str]) -> str:
        name = (part[2] or "").lower()
        if name == "script":
            scripts.append((part["tag"][1:].removesuffix(">"), part["held"]))
        if name in ("", "script"):
            return ""
        is_shown = name in _TEXT_ONLY or "shadowroot" in part["tag"].lower()
        return part["tag"] + (part["held"].replace("<", "&lt;") if is_shown else "")

    seen = _PART_WITHOUT_TAGS.sub(seen_of, markup)
    return normalised(_ANY_TAG.sub(" ", seen)), _TELLING_TAG.findall(seen), scripts
