"""Blocks: the texts of a page, each known by its place, so that some can be told to be noise."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

from crawlsched.change_detection.html_scan import INLINE, normalised, scanned, target_of

__all__ = ["BLOCK_STRIDE", "KEY_MASK", "PageBlocks", "page_blocks", "path_below"]

_ROOT = 0
_NAMELESS = 0
# Path and name below an inline element without a class or an id: it belongs to the place at which it stands.
_OF_THE_PLACE = (-1, -1)
_KEY_BITS = 64
KEY_MASK = (1 << _KEY_BITS) - 1
"""Keys of blocks are 64-bit numbers."""
BLOCK_STRIDE = 0x9E3779B97F4A7C15
"""Any odd number gives every occurrence of a path a key of its own."""
_MAX_OCCURRENCES = 64
_MAX_DEPTH = 256
_LOOK_BACK = 64
_VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
))  # fmt: skip
# Elements whose end need not be written: what opening one closes, and where looking for it stops.
_CLOSED_BY = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "tr": (frozenset({"tr"}), frozenset({"table", "tbody", "thead", "tfoot"})),
    "td": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "option": (frozenset({"option"}), frozenset({"select", "optgroup", "datalist"})),
}
_PARAGRAPH = frozenset({"p"})
_INLINE_TAGS = INLINE | {f"/{name}" for name in INLINE}
_NO_PARAGRAPH_GOES_ON = frozenset((
    "address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figure", "footer", "form", "h1",
    "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p", "pre", "section", "table", "ul",
))  # fmt: skip
_CLASS_OR_ID = re.compile(r"""(?:^|[\s"'/])(class|id)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
# What follows a digit in a name is a number or made up by a program: "item-12", "css-1q2w3e", "ad-8f3a9c".
_MADE_UP = re.compile(r"\d\S*")
_MAX_NAME = 40


@dataclass(slots=True)
class PageBlocks:
    """The texts of a page by their place.

    Parameters
    ----------
    texts : dict of int to str
        Text of each block, in the order of the page. The key stands for the path of tags, classes and ids that leads
        to the block, and for how many blocks with that path came before it.
    path_of : dict of int to int
        The path of each block, without the number.
    name_of : dict of int to int
        The end of that path from the last element with a class or an id on, wherever in a page it stands; 0 where there
        is none. It is what a box that moves about keeps.
    steps : dict of int to (int, str, str)
        Of each path on the way to blocks the path above, and the last step, with its id and without; what is above
        comes first.

    Examples
    --------
    >>> list(page_blocks("<ul><li>one<li>two <b>and</b> a half</ul>").texts.values())
    ['one', 'two and a half']
    """

    texts: dict[int, str] = field(default_factory=dict)
    path_of: dict[int, int] = field(default_factory=dict)
    name_of: dict[int, int] = field(default_factory=dict)
    steps: dict[int, tuple[int, str, str]] = field(default_factory=dict)


def page_blocks(markup: str, links: bool = False, images: bool = False) -> PageBlocks:
    """Cut an HTML page into blocks of text.

    Parameters
    ----------
    markup : str
        The page.
    links, images : bool, default False
        Whether targets of links and sources of images belong to the text.

    Returns
    -------
    PageBlocks

    Notes
    -----
    A block is the text directly below an element; inline elements without a class or an id belong to the block around
    them. Numbers in classes and ids do not count, nor does what programs make up in them. The time is linear in the
    length of the page: no search looks further back than 64 elements, and deeper than 256 all is one path.

    Examples
    --------
    >>> one = page_blocks('<div id="post-1"><p>Tea <span class="views">12</span></p></div>')
    >>> two = page_blocks('<div id="post-2"><p>Tea <span class="views">13</span></p></div>')
    >>> one.texts.keys() == two.texts.keys()
    True
    >>> [text for key, text in two.texts.items() if one.texts[key] != text]
    ['13']
    """
    pieces: dict[int, list[str]] = {}
    blocks = PageBlocks()
    places = _Places(blocks.steps)
    has_targets = links or images
    for text, name, attributes in scanned(markup):
        if text and not text.isspace():
            if (key := places.place[1]) < 0:
                key = places.block(blocks)
            if key in pieces:
                pieces[key].append(text)
            else:
                pieces[key] = [text]
        elif text and (key := places.place[1]) in pieces:
            pieces[key].append(" ")
        if name:
            if has_targets and (target := target_of(name, attributes, links, images)):
                pieces.setdefault(places.block(blocks), []).append(f" {target} ")
            if name not in _INLINE_TAGS and (key := places.place[1]) in pieces:
                pieces[key].append(" ")  # what stands before an element is another word than what stands behind it
            if name[0] == "/":
                places.close(name[1:])
            elif name not in _VOID:
                places.open(name, attributes)
    for key, parts in pieces.items():
        joined = normalised("".join(parts))
        if joined:
            blocks.texts[key] = joined
    return blocks


class _Places:
    """Where a scan stands: the elements that are open, and the block that each belongs to."""

    def __init__(self, steps: dict[int, tuple[int, str, str]]) -> None:
        # A place is [path, key of its block or -1, name]; inline elements share that of the element around them.
        self.place = [_ROOT, -1, _NAMELESS]
        self._names: list[str] = []
        self._places = [self.place]
        self._occurrences: dict[int, int] = {}
        self._steps = steps
        # Of elements that were opened before, by the place they stand at and what is written in their tag: the path and
        # the name below them.
        self._known: dict[tuple[int, int, str, str], tuple[int, int]] = {}

    def block(self, blocks: PageBlocks) -> int:
        """Key of the block that text at this place belongs to."""
        place = self.place
        if place[1] < 0:
            path = place[0]
            number = min(self._occurrences.get(path, 0), _MAX_OCCURRENCES)
            self._occurrences[path] = number + 1
            place[1] = (path + number * BLOCK_STRIDE) & KEY_MASK
            blocks.path_of[place[1]] = path
            blocks.name_of[place[1]] = place[2]
        return place[1]

    def open(self, name: str, attributes: str) -> None:
        """Go on behind a tag that opens an element."""
        is_inline = name in INLINE
        if not is_inline:  # most are, on dense pages
            if name in _NO_PARAGRAPH_GOES_ON:
                self._end_before(_PARAGRAPH, None)
            elif name in _CLOSED_BY:
                self._end_before(*_CLOSED_BY[name])
        above = self._places[-1]
        self._names.append(name)
        if len(self._names) > _MAX_DEPTH:
            self.place = above
        else:
            opened = above[0], above[2], name, attributes
            below = self._known.get(opened)
            if below is None:
                below = self._known[opened] = self._below(above, name, attributes)
            self.place = above if below is _OF_THE_PLACE else [below[0], -1, below[1]]
        self._places.append(self.place)

    def _below(self, above: list[int], name: str, attributes: str) -> tuple[int, int]:
        step, without_id = _step(name, attributes)
        if step == name and name in INLINE:
            return _OF_THE_PLACE
        path = path_below(above[0], step)
        if path not in self._steps:
            self._steps[path] = above[0], step, without_id
        return path, _name_below(above[2], name, step)

    def close(self, name: str) -> None:
        """Go on behind a tag that closes an element."""
        if self._names and self._names[-1] == name:  # nearly always
            self._names.pop()
            self._places.pop()
            self.place = self._places[-1]
            return
        for back in range(1, min(len(self._names), _LOOK_BACK) + 1):
            if self._names[-back] == name:
                self._cut(back)
                return

    def _end_before(self, ended: frozenset[str], stops: frozenset[str] | None) -> None:
        """End an element whose end is implied; without stops, only inline elements may be open within it."""
        for back in range(1, min(len(self._names), _LOOK_BACK) + 1):
            name = self._names[-back]
            if name in ended:
                self._cut(back)
                return
            if name not in INLINE if stops is None else name in stops:
                return

    def _cut(self, back: int) -> None:
        del self._names[-back:]
        del self._places[-back:]
        self.place = self._places[-1]


@lru_cache(maxsize=16_384)
def path_below(path: int, step: str) -> int:
    """Return the path that leads one step on."""
    data = path.to_bytes(8, "big") + step.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8, person=b"crawlsched-path").digest(), "big")


def _name_below(name_above: int, element: str, step: str) -> int:
    if step != element:
        return path_below(_NAMELESS, f"named {step}")
    return path_below(name_above, step) if name_above else _NAMELESS


def _step(name: str, attributes: str) -> tuple[str, str]:
    """Return the step to an element, with its id and without."""
    if "=" not in attributes:
        return name, name
    named, classes = _named(attributes)
    return f"{name}{named}", f"{name}{classes}"


@lru_cache(maxsize=4_096)
def _named(attributes: str) -> tuple[str, str]:
    lowered = attributes.lower()
    if "class" not in lowered and "id" not in lowered:
        return "", ""
    names = sorted(_names_in(attributes))
    return "".join(names), "".join(name for name in names if name[0] == ".")


def _names_in(attributes: str) -> Iterator[str]:
    for match in _CLASS_OR_ID.finditer(attributes):
        value = _MADE_UP.sub("#", (match[2] or match[3] or match[4] or "").strip())[:_MAX_NAME]
        if value:
            yield f"{'.' if match[1].lower() == 'class' else '#'}{value}"
