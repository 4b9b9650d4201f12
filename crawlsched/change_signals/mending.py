"""Mending: repairing damage that would stop an XML parser or change a URL.

lxml reads the elements, but it cannot recover from some damage, and it changes texts silently at other damage. So this
module first mends raw ampersands, raw angle brackets, and ends of elements that never began. It mends piece by piece.
It does not use the meaning of the elements. It removes document types, comments and processing instructions. So the
document declares no entities, and nothing has to be fetched.
"""

import re
from collections.abc import Iterable, Iterator

from crawlsched.change_signals.problems import ProblemCounter

__all__ = ["RAW_AMPERSAND", "Mender"]

#: Replaces an ampersand that begins no reference of XML. No text has this character, but XML allows it.
RAW_AMPERSAND = "\ufdd0"
_CLOSING = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_SPECIAL = re.compile(r"<!--|<!\[CDATA\[|<\?|<!")
_IN_DECLARATION = re.compile(r"[\[\]>]")
_DECLARED_ENTITY = re.compile(r"<?!?ENTITY\s+(?:%\s+)?([^\s\"'<>%]+)")
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7}|[xX][0-9a-fA-F]{1,6});|(?!(?:amp|lt|gt|quot|apos);))")
_RAW_LESS = re.compile(r"<(?!/?[^\W\d])")
_UNENDED = re.compile(r"<(?=/?\w(?:[^<>=]++|=(?!\s*+[\"']))*+<)")
# A tag with an attribute in another form than name="value". lxml would misread such a tag.
_BROKEN = re.compile(
    r"""<(?!/?[\w.:-]++\s*+/?>)(?!/?[\w.:-]++(?:\s++[\w.:-]++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+\s*+/?>)"""
    r"""(/?[^\W\d][\w.:-]*+)([^<>]*+)>"""
)
_ATTRIBUTE = re.compile(r"""(?<![\w.:-])([^\W\d][\w.:-]*+)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'=]++))""")
_TAG_NAME = re.compile(r"<[^\s<>]*")
_END_TAG = re.compile(r"</([^\s<>]+)[^<>]*>")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Mender:
    """Mend the characters of an XML document.

    Examples
    --------
    >>> mender = Mender(ProblemCounter(), 100)
    >>> "".join(mender.mended(["<a><b>1 < 2<!-- no", "te --><![CDATA[<&]]></c></b>"]))
    '<a><b>1 &lt; 2&lt;&amp;</b>'
    """

    def __init__(self, problems: ProblemCounter, max_run: int, max_steps: int = 2_500_000) -> None:
        self.declared: set[str] = set()
        self.tail = ""
        self._problems = problems
        self._max_run = max_run
        self._steps = max_steps
        self._run = 0
        self._carry = ""
        self._opener = ""  # the beginning of a comment or the like that is not closed in the last piece
        self._declaration = ""
        self._has_bracket = False
        self._begun: set[str] = set()

    def mended(self, characters: Iterable[str]) -> Iterator[str]:
        """Yield the mended document, piece by piece."""
        for text in characters:
            yield self._short(self._piece(self._carry + text))
            if self._steps < 0:
                self._problems.add("too-many-elements")
                return
        rest, self._carry = self._carry, ""
        yield self._short(self._piece(rest, is_last=True))
        if self._opener:
            self._problems.add("unclosed", self._opener)

    def _short(self, text: str) -> str:
        """Cut off a very long text without a tag, because it could take all memory."""
        self.tail = (self.tail + text)[-200:]
        last = text.rfind("<")
        if last < 0 and self._run > self._max_run:
            return ""
        self._run = len(text) - last if last >= 0 else self._run + len(text)
        return text

    def _piece(self, text: str, is_last: bool = False) -> str:
        if not is_last:
            text, self._carry = _cut(text, self._max_run)
        kept: list[str] = []
        position = 0
        while position < len(text):
            self._steps -= 1
            if self._opener == "<!":
                position = self._skip_declaration(text, position)
            elif self._opener:
                position = self._skip(text, position, kept, is_last)
            elif match := _SPECIAL.search(text, position):
                kept.append(self._mend(text[position : match.start()]))
                self._opener, position = match[0], match.end()
            else:
                kept.append(self._mend(text[position:]))
                break
        return "".join(kept)

    def _skip(self, text: str, position: int, kept: list[str], is_last: bool) -> int:
        """Skip a comment or an instruction, or go through a CDATA section and add its text to `kept`."""
        closing = _CLOSING[self._opener]
        end = text.find(closing, position)
        inside = text[position : end if end >= 0 else None]
        if end < 0 and not is_last:  # the piece may end in the middle of the closing mark
            half = len(closing) - 1
            inside, self._carry = inside[:-half], inside[-half:] + self._carry
        if self._opener == "<![CDATA[":
            kept.append(_NO_XML.sub("\x7f", inside).translate(_ESCAPES))
        if end < 0:
            return len(text)
        self._opener = ""
        return end + len(closing)

    def _skip_declaration(self, text: str, position: int) -> int:
        """Skip a part of a document type, up to the next bracket or to its end."""
        match = _IN_DECLARATION.search(text, position)
        inside = text[position : match.start() if match else None]
        self.declared.update(_DECLARED_ENTITY.findall(inside))
        self._declaration = (self._declaration + inside)[:200]
        if match is None:
            return len(text)
        if match[0] != ">":
            self._has_bracket = match[0] == "["
        elif not self._has_bracket:
            self._problems.add("doctype", f"<!{self._declaration}>")
            self._opener = self._declaration = ""
        return match.end()

    def _mend(self, text: str) -> str:
        """Mend the tags and texts of a part without comments, instructions and CDATA."""
        if _NO_XML.search(text):
            text = _NO_XML.sub("\x7f", text)  # no URL may have this character
        if "&" in text:
            text, n = _REFERENCE.subn(_reference, text)
            self._steps -= n
        if "<" not in text:
            return text
        for pattern in (_RAW_LESS, _UNENDED):
            text, n = pattern.subn("&lt;", text)
            self._steps -= n
        if "'" in text or '"' in text or "=" in text:
            text, n = _BROKEN.subn(_whole_tag, text)
            self._steps -= n
        names = set(_TAG_NAME.findall(text))
        self._begun.update(name[1:].rstrip("/") for name in names if name[1] != "/")
        if any(name[1] == "/" and name[2:] not in self._begun for name in names):
            text, n = _END_TAG.subn(lambda match: match[0] if match[1] in self._begun else "", text)
            self._steps -= n
        return text


def _cut(text: str, max_run: int) -> tuple[str, str]:
    """Split a piece so that no tag or reference is cut, unless a tag has more than `max_run` characters."""
    last = max(text.rfind("<", -max_run), text.rfind("&", -64))
    if last >= 0 and not any(end in text[last + 1 :] for end in ">;"):
        return text[:last], text[last:]
    return text, ""


def _whole_tag(match: re.Match[str]) -> str:
    """Write a broken tag anew, with all attributes that can be read."""
    attributes = {name: one or other or bare for name, one, other, bare in _ATTRIBUTE.findall(match[2])}
    written = "".join(f' {name}="{value.rstrip("/").replace(chr(34), "&quot;")}"' for name, value in attributes.items())
    return f"<{match[1]}{'' if match[1][0] == '/' else written}{'/' if match[2].endswith('/') else ''}>"


def _reference(match: re.Match[str]) -> str:
    if match[1]:
        code = int(match[1][1:], 16) if match[1][0] in "xX" else int(match[1])
        if code in (0x9, 0xA, 0xD) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000:
            return match[0]
        return RAW_AMPERSAND + match[0][1:]
    return RAW_AMPERSAND
