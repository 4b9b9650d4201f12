"""Elements of XML, read leniently and in linear time: each tag with the text behind it.

This is no XML parser, on purpose. A parser that keeps to the standard refuses the whole of a sitemap with one raw
ampersand in it, and one that recovers changes URLs silently. What the standard adds beyond tags and text (entities that
a document declares, external entities, nesting) is what bombs are made of; here it is inert.
"""

import re
from collections.abc import Container, Iterable, Iterator
from html.entities import html5

from crawlsched.change_signals.problems import ProblemCounter

__all__ = ["Tag", "TagReader", "unescape"]

Tag = tuple[str, str, str, str]
"""("/" or "", name, attributes and the final "/" of an empty element, text up to the next tag)."""

# Neither part can run past a "<", so that a search that fails costs no more than what it has looked at.
_TAG = re.compile(r"<(/?)([A-Za-z_][^\s/<>]*)([^<>]*)>([^<]*)")
_PIECE = 32_768

# Constructs that are no elements, and what ends each.
_SPECIAL = re.compile(r"<!--|<!\[CDATA\[|<\?|<!")
_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>", "<!": ">"}
_SPLIT_OPENERS = ("<!--", "<![CDATA[", "<?")
_MAX_DECLARATION = 65_536
_DECLARED_ENTITY = re.compile(r"ENTITY\s+(?:%\s+)?([^\s\"'<>]+)")
_REFERENCE = re.compile(r"&(?:(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z_][A-Za-z0-9._-]{0,63});)?")
_XML_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_CDATA_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class TagReader:
    """Cuts the characters of an XML document into tags, each with the text behind it.

    Parameters
    ----------
    problems : ProblemCounter
        Where constructs without an end and document type declarations are reported.
    max_text : int
        Characters of one text that are kept; of a longer one at least one character more, so that its reader sees it.

    Attributes
    ----------
    declared : set of str
        Names of the entities which the document declares; their references are nowhere replaced.
    ends_in_text : bool
        Whether the document ended within a text or a tag; known when all has been read.

    Examples
    --------
    >>> list(TagReader(ProblemCounter(), 100).tags(["<a><b x='1'>te", "xt<!-- no --></b>"]))
    [[('', 'a', '', '')], [('', 'b', " x='1'", 'text')], [('/', 'b', '', '')]]
    """

    def __init__(self, problems: ProblemCounter, max_text: int) -> None:
        self.declared: set[str] = set()
        self.ends_in_text = False
        self._problems = problems
        self._max_held = 2 * max_text + 1024
        self._held = ""  # the last tag and its text, which the next characters may continue
        self._carry = ""  # what may be half of an opening or an end of a special construct
        self._opener = ""  # the special construct within which the characters so far ended
        self._end = ""  # and what ends it
        self._declaration = ""

    def tags(self, characters: Iterable[str]) -> Iterator[list[Tag]]:
        """Give the tags of a document in pieces, each a list of at most a few thousand."""
        for text in characters:
            for start in range(0, len(text), _PIECE):
                yield self._next_piece(text[start : start + _PIECE])
        if self._opener:
            self._problems.add("unclosed", self._opener)
        self.ends_in_text = bool(self._carry or self._opener) or not self._held.rstrip().endswith(">")
        yield _TAG.findall(self._held)

    def _next_piece(self, text: str) -> list[Tag]:
        text = self._held + self._without_specials(text)
        # Everything before the last "<" is complete. What has no end must not pile up.
        cut = max(text.rfind("<"), 0)
        self._held = text[cut : cut + self._max_held]
        return _TAG.findall(text[:cut])

    def _without_specials(self, text: str) -> str:
        """Take comments, processing instructions and declarations out, and escape CDATA."""
        text = self._carry + text
        self._carry = ""
        if not self._opener and "<!" not in text and "<?" not in text and text.find("<", len(text) - 8) < 0:
            return text
        last = text.rfind("<", max(len(text) - 8, 0))
        if last >= 0 and any(opener.startswith(text[last:]) for opener in _SPLIT_OPENERS):
            text, self._carry = text[:last], text[last:]
        kept: list[str] = []
        position = 0
        while position < len(text):
            if self._opener:
                position = self._skip(text, position, kept)
            elif match := _SPECIAL.search(text, position):
                kept.append(text[position : match.start()])
                self._opener, position = match[0], match.end()
                self._end = _ENDS[self._opener]
            else:
                kept.append(text[position:])
                break
        return "".join(kept)

    def _skip(self, text: str, position: int, kept: list[str]) -> int:
        """Go to the end of the special construct, or of the text; give the position behind it."""
        end = text.find(self._end, position)
        inside = text[position : end if end >= 0 else None]
        if end < 0:  # half of the end may stand at the end of the text
            half = len(self._end) - 1
            if half:
                inside, self._carry = inside[:-half], inside[-half:] + self._carry
        if self._opener == "<![CDATA[":
            kept.append(inside.translate(_CDATA_ESCAPES))
        elif self._opener == "<!":
            self._declaration = (self._declaration + inside)[:_MAX_DECLARATION]
        if end < 0:
            return len(text)
        behind = end + len(self._end)
        if self._opener == "<!" and self._end == ">" and "[" in self._declaration and "]" not in self._declaration:
            # The ">" belongs to a declaration within the document type declaration.
            self._end = "]"
        elif self._end == "]":
            self._declaration += "]"
            self._end = ">"
        else:
            self._close()
        return behind

    def _close(self) -> None:
        if self._opener == "<!":
            self.declared.update(_DECLARED_ENTITY.findall(self._declaration))
            self._problems.add("doctype", f"<!{self._declaration}>")
            self._declaration = ""
        self._opener = self._end = ""


def unescape(text: str, declared: Container[str] = ()) -> tuple[str, str | None]:
    """Replace the references of a text by the characters that they stand for.

    Parameters
    ----------
    text : str
    declared : container of str
        Names of the entities that the document declares; references to them are left alone.

    Returns
    -------
    tuple of (str, str or None)
        The text, and the kind of the gravest problem: "entity", "raw-ampersand", "html-entity" or None.

    Examples
    --------
    >>> unescape("a?b=1&amp;c=2")
    ('a?b=1&c=2', None)
    >>> unescape("a?b=1&c=2&copy=3")
    ('a?b=1&c=2&copy=3', 'raw-ampersand')
    """
    if "&" not in text:
        return text, None
    found: set[str] = set()

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        if name in _XML_ENTITIES:
            return _XML_ENTITIES[name]
        if name and name[0] == "#":
            code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
            if 0 < code < 0xD800 or 0xE000 <= code < 0x110000:
                return chr(code)
        elif name and name in declared:
            found.add("entity")
            return match[0]
        elif name and f"{name};" in html5:
            found.add("html-entity")
            return html5[f"{name};"]
        found.add("raw-ampersand")
        return match[0]

    text = _REFERENCE.sub(replaced, text)
    for kind in ("entity", "raw-ampersand", "html-entity"):
        if kind in found:
            return text, kind
    return text, None
