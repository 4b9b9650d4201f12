"""Blocks: the texts of a page, each known by its place, so that some can be told to be noise."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

from crawlsched.change_detection.html_scan import INLINE, Tag, normalised, scanned, target_of

__all__ = ["BLOCK_STRIDE", "KEY_MASK", "PageBlocks", "page_blocks", "path_below"]

_ROOT = 0
_NAMELESS = 0
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
# Elements whose end need not be written: what opening another closes, and where looking for it stops. Without that only
# inline elements may be open within.
_ENDED_BY: dict[str, tuple[frozenset[str], frozenset[str] | None]] = {
    "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "tr": (frozenset({"tr"}), frozenset({"table", "tbody", "thead", "tfoot"})),
    "td": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th"}), frozenset({"tr", "table"})),
    "option": (frozenset({"option"}), frozenset({"select", "optgroup", "datalist"})),
}
_ENDED_BY |= dict.fromkeys((
    "address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figure", "footer", "form", "h1",
    "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p", "pre", "section", "table", "ul",
), (frozenset({"p"}), None))  # fmt: skip
_CLASS_OR_ID = re.compile(r"""(?:^|[\s"'/])(class|id)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
# A class before other attributes in which nothing can be taken for another class or an id.
_CLASS_FIRST = re.compile(r"""\s++class="([^"]*)"(?:\s++(?:href|title|src|alt|rel|style|type|target)="[^"=]*")*+\s*+""")
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
    them, and within ``<pre>`` those with a class do, too: they colour the words of a program. Numbers in classes and
    ids do not count, nor does what programs make up in them. The time is linear in the length of the page: no search
    looks further back than 64 elements, and deeper than 256 all is one path.

    Examples
    --------
    >>> one = page_blocks('<div id="post-1"><p>Tea <span class="views">12</span></p></div>')
    >>> two = page_blocks('<div id="post-2"><p>Tea <span class="views">13</span></p></div>')
    >>> one.texts.keys() == two.texts.keys()
    True
    >>> [text for key, text in two.texts.items() if one.texts[key] != text]
    ['13']
    """
    return _Cut().through(markup, links, images)


class _Way:
    """What all elements have in common to which the same path leads."""

    __slots__ = ("_by_step", "_by_tag", "_is_preformatted", "_steps", "n_blocks", "name", "path")

    def __init__(
        self, path: int, name: int, steps: dict[int, tuple[int, str, str]], is_preformatted: bool = False
    ) -> None:
        self.path, self.name, self.n_blocks = path, name, 0
        self._is_preformatted = is_preformatted
        self._steps = steps
        self._by_tag: dict[Tag, _Way] = {}
        self._by_step: dict[str, _Way] = {}

    def below(self, tag: Tag) -> "_Way":
        """Return the way into an element that stands here: this one for inline elements without a class or an id."""
        way = self._by_tag.get(tag)
        if way is None:
            way = self._by_tag[tag] = self._step_on(tag)
        return way

    def _step_on(self, tag: Tag) -> "_Way":
        step, without_id = _step(tag.name, tag.attributes)
        # Within <pre> a class of an inline element is a colour of the words of a program, a dozen of them in each line.
        if not tag.parts_words and step == (without_id if self._is_preformatted else tag.name):
            return self
        way = self._by_step.get(step)
        if way is None:
            path = path_below(self.path, step)
            self._steps[path] = self.path, step, without_id
            name = _name_below(self.name, tag.name, step)
            way = self._by_step[step] = _Way(path, name, self._steps, self._is_preformatted or tag.name == "pre")
        return way


class _Place:
    """Where a scan stands: the way to it, and the text of its block so far, None until it has one."""

    __slots__ = ("pieces", "way")

    def __init__(self, way: _Way) -> None:
        self.way = way
        self.pieces: list[str] | None = None


class _Cut:
    """The blocks of a page as far as it was read, and the elements that are open."""

    def __init__(self) -> None:
        self._blocks = PageBlocks()
        self._pieces: dict[int, list[str]] = {}  # of the text of each block, by its key
        self._names: list[str] = []
        # Inline elements without a class or an id share the place of the element around them.
        self._places = [_Place(_Way(_ROOT, _NAMELESS, self._blocks.steps))]

    def through(self, markup: str, links: bool, images: bool) -> PageBlocks:
        """Read a page and return its blocks."""
        names, places, has_targets = self._names, self._places, links or images
        place = places[-1]
        # Thousands of elements a page: what nearly all of them do stands here, what few of them do in methods.
        for text, tag, inner in scanned(markup):
            if text:
                if place.pieces is not None:
                    place.pieces.append(text)
                elif not text.isspace():
                    self._begin(place).append(text)
            if tag is None:
                continue
            if has_targets and (target := target_of(tag, links, images)):
                self._begin(place).append(f" {target} ")
            if tag.parts_words and place.pieces is not None:
                place.pieces.append(" ")  # what stands before an element is another word than what stands behind it
            name = tag.name
            if tag.closes:
                if names and names[-1] == name:  # nearly always
                    names.pop()
                    places.pop()
                else:
                    self._close(name)
                place = places[-1]
                continue
            if name in _VOID:
                if inner is None:
                    continue
                inside = place  # "<br>words</br>": what is void holds nothing
            else:
                if name in _ENDED_BY:
                    self._end_before(name)
                    place = places[-1]
                way = place.way if len(names) >= _MAX_DEPTH else place.way.below(tag)
                inside = place if way is place.way else _Place(way)
                if inner is None:
                    names.append(name)
                    places.append(inside)
                    place = inside
                    continue
            if inside.pieces is not None:
                inside.pieces.append(inner)
            elif inner and not inner.isspace():
                self._begin(inside).append(inner)
            if tag.parts_words and inside.pieces is not None:
                inside.pieces.append(" ")
        return self._finished()

    def _finished(self) -> PageBlocks:
        texts = self._blocks.texts
        for key, pieces in self._pieces.items():
            text = normalised("".join(pieces))
            if text:
                texts[key] = text
        return self._blocks

    def _begin(self, place: _Place) -> list[str]:
        """Return the text of the block at a place, a new one if it has none."""
        if place.pieces is None:
            way = place.way
            key = (way.path + min(way.n_blocks, _MAX_OCCURRENCES) * BLOCK_STRIDE) & KEY_MASK
            way.n_blocks += 1
            self._blocks.path_of[key] = way.path
            self._blocks.name_of[key] = way.name
            place.pieces = self._pieces.setdefault(key, [])
        return place.pieces

    def _close(self, name: str) -> None:
        for back in range(1, min(len(self._names), _LOOK_BACK) + 1):
            if self._names[-back] == name:
                self._close_last(back)
                return

    def _end_before(self, name: str) -> None:
        """End the element whose end is implied by the start of another."""
        ended, stops = _ENDED_BY[name]
        for back in range(1, min(len(self._names), _LOOK_BACK) + 1):
            last = self._names[-back]
            if last in ended:
                self._close_last(back)
                return
            if last not in INLINE if stops is None else last in stops:
                return

    def _close_last(self, n: int) -> None:
        del self._names[-n:]
        del self._places[-n:]


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
    if match := _CLASS_FIRST.fullmatch(attributes):  # most are: what links lead to need not be searched for names
        return _of_class(name, match[1])
    named = sorted(_names_in(attributes))
    return f"{name}{''.join(named)}", f"{name}{''.join(text for text in named if text[0] == '.')}"


@lru_cache(maxsize=4_096)
def _of_class(name: str, value: str) -> tuple[str, str]:
    step = "".join((name, *_names_in(f'class="{value}"')))
    return step, step


def _names_in(attributes: str) -> Iterator[str]:
    for match in _CLASS_OR_ID.finditer(attributes):
        value = _MADE_UP.sub("#", (match[2] or match[3] or match[4] or "").strip())[:_MAX_NAME]
        if value:
            yield f"{'.' if match[1].lower() == 'class' else '#'}{value}"
