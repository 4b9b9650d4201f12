"""The text of a page that a reader sees, by a linear scan that no markup can break.

No tree is built. Whatever the page holds (elements 100,000 deep, quotes that never close, a picture that is called
HTML), the scan takes time in proportion to its length, gives the same text for the same bytes with every version of
every library, and raises nothing.
"""

import re
from html import unescape

__all__ = ["normalised", "visible_text"]

# Text that no reader sees: scripts and what belongs to them, and what is shown instead of something else.
_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "noembed", "noframes", "object"})
# Elements that do not separate words. All others do: "<p>a</p><p>b</p>" reads "a b".
_INLINE = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "label", "mark", "nobr", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub",
    "sup", "time", "tt", "u", "var", "wbr",
))  # fmt: skip
# Attributes may hold ">" within quotes, and quotes count only behind "=". Possessive, so that a failing match costs no
# more than what it has looked at.
_TAG = re.compile(r"""</?([a-zA-Z][^\s/>]*+)((?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+)>""")
_SIMPLE_TAG = re.compile(r"</?([a-zA-Z][^\s/>]*+)([^>]*+)>")
_ATTRIBUTE = {
    name: re.compile(rf"""(?:^|[\s"'/]){name}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
    for name in ("href", "src")
}
_CLOSERS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _UNSEEN}
_LONG_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}+;?")


def visible_text(markup: str, links: bool = False, images: bool = False) -> str:
    """Text of an HTML page that a reader sees, with single spaces.

    Parameters
    ----------
    markup : str
        The page.
    links : bool, default False
        Whether the targets of links belong to it.
    images : bool, default False
        Whether the sources of images belong to it.

    Returns
    -------
    str
        Text and title; without scripts, styles, comments, and without what stands in for something that is not shown
        (noscript, template, iframe). References are replaced. Text which a style sheet hides is included.

    Examples
    --------
    >>> visible_text("<title>Tea</title><p>A&nbsp;cup <b>now</b>!<script>var t = '<p>12:01</p>'</script><!-- 1 -->")
    'Tea A cup now!'
    >>> visible_text('<a href="/new.pdf">Download</a>', links=True)
    '/new.pdf Download'
    """
    pieces: list[str] = []
    without_end: set[str] = set()  # names of which no closing tag follows: looking again would cost quadratic time
    pattern = _TAG
    position = 0
    while True:
        start = markup.find("<", position)
        if start < 0:
            pieces.append(markup[position:])
            break
        if start > position:
            pieces.append(markup[position:start])
        match = pattern.match(markup, start)
        if match is None:
            position, is_broken = _behind_other(markup, start, pieces, pattern is _SIMPLE_TAG)
            if is_broken:
                pattern = _SIMPLE_TAG
            continue
        position = match.end()
        name = match[1].lower()
        if name not in _INLINE:
            pieces.append(" ")
            if name in _UNSEEN and markup[start + 1] != "/" and name not in without_end:
                closer = _CLOSERS[name].search(markup, position)
                if closer:
                    position = closer.start()
                else:
                    without_end.add(name)
        if links or images:
            _add_targets(name, match[2], links, images, pieces)
    return normalised("".join(pieces))


def _behind_other(markup: str, start: int, pieces: list[str], is_simple: bool) -> tuple[int, bool]:
    """Go behind a "<" that opens no tag; give the position, and whether tags are broken from here on."""
    following = markup[start + 1 : start + 4]
    if following == "!--":
        end = markup.find("-->", start + 2)
        return (len(markup) if end < 0 else end + 3), is_simple
    letter = following[1:2] if following[:1] == "/" else following[:1]
    if letter.isascii() and letter.isalpha():  # a tag without an end
        # A quote that never closes would swallow the rest: from here on, tags end at the next ">".
        return (len(markup) if is_simple else start), True
    if following[:1] in ("!", "?", "/"):  # a declaration, or what browsers take as a comment
        end = markup.find(">", start)
        return (len(markup) if end < 0 else end + 1), is_simple
    pieces.append("<")
    return start + 1, is_simple


def _add_targets(name: str, attributes: str, links: bool, images: bool, pieces: list[str]) -> None:
    wanted = "href" if links and name == "a" else "src" if images and name == "img" else ""
    if wanted and (match := _ATTRIBUTE[wanted].search(attributes)):
        pieces.append(f" {match[1] or match[2] or match[3] or ''} ")


def normalised(text: str) -> str:
    r"""Text with its references replaced and every run of white space made one space.

    Examples
    --------
    >>> normalised("  Fish &amp;\n chips&nbsp;")
    'Fish & chips'
    """
    if "&" in text:
        # Python refuses to read a number of thousands of digits, and none of more than eight is a character.
        text = unescape(_LONG_REFERENCE.sub("\ufffd", text))
    return " ".join(text.split())
