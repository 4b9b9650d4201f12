"""Blocks: the texts of a page with their places, by which noise can be recognised."""

import json
import re
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any

from crawlsched.change_detection.html_scan import INLINE, Tag, n_read_singly, normalised, scan, skimmed
from crawlsched.change_detection.limits import DEEPEST, LONGEST_NAME, MOST_BLOCKS
from crawlsched.change_detection.tag_data import ASSET, KEY_OF_A_ROW, data_of, script_data, states_of, told_by
from crawlsched.change_detection.trace import Trace, digest_of

__all__ = ["PageBlocks", "page_blocks"]

_VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
))  # fmt: skip
# By element, the open elements that its start closes. A list item, for example, closes the item before it in the same
# list. Block elements close only an open paragraph that has no block elements in it.
_AROUND_ITEMS = frozenset({"ul", "ol", "menu", "dl", "table", "tbody", "thead", "tfoot", "tr", "select", "optgroup"})
_ENDED_BY: dict[str, tuple[frozenset[str], frozenset[str] | None]] = {
    name: (frozenset(names), _AROUND_ITEMS)
    for names in (("li",), ("dt", "dd"), ("tr",), ("td", "th"), ("option",))
    for name in names
} | dict.fromkeys((
    "address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figure", "footer", "form", "h1",
    "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p", "pre", "section", "table", "ul",
), (frozenset({"p"}), None))  # fmt: skip
# In a name, a digit and the characters after it are a number or made up by a program: "item-12", "css-1q2w3e".
_MADE_UP = re.compile(r"\d\S*")
# Paths that begin with these words lead to a value by its keys, or to a line, a cell or a member.
_OF_KEYS, _OF_LINES = frozenset({"json", "json-ld", "script"}), frozenset({"text", "xml", "member"})
_CELLS = frozenset({"td", "th"})
# The classes and ids of these elements do not count, since they often belong to a single page.
_AROUND_ALL = frozenset({"html", "body"})


@dataclass
class PageBlocks:
    """The texts of a page with their places.

    Examples
    --------
    >>> page_blocks("<ul><li>one<li>two <b>and</b> a half</ul>").texts
    ['one', 'two and a half']
    """

    texts: list[str] = field(default_factory=list)  # text of each block, in the order of the page; at most 4,096
    paths: list[int] = field(default_factory=list)  # the path of tags, classes and ids that leads to each block
    # For each path: the path that is one step shorter, and the last step. Shorter paths are added first.
    steps: dict[int, tuple[int, str]] = field(default_factory=dict)
    # The paths that lead to data for programs: JSON in scripts, ``itemprop``, ``meta``.
    data: set[int] = field(default_factory=set)
    rest: str = ""  # the text after the blocks
    url: str = ""  # the URL by which the page was read

    def to(self, path: int, step: str) -> int:
        """Return the path that is one step longer; the empty path is 0."""
        below = _path_below(path, step)
        self.steps[below] = path, step
        return below

    def add(self, path: int, text: str) -> None:
        """Add a block after all others."""
        if text:
            self.texts.append(text)
            self.paths.append(path)

    def values(self, root: int, value: Any) -> Iterator[tuple[int, str]]:
        """Yield values of JSON, except names of files, with their paths; values beyond the limit become the remainder.

        Keys are read in sorted order. Positions in lists do not count as keys, nor do keys that look made up.

        Examples
        --------
        >>> blocks = PageBlocks()
        >>> values = blocks.values(0, {"b": [{"c": 1}, 2], "a": "Tea"})
        >>> [(".".join(blocks.way_to(path)), text) for path, text in values]
        [('@a', 'Tea'), ('@b.@c', '1'), ('@b', '2')]
        """
        waiting: list[tuple[int, str | None, int, Any]] = [(root, None, 0, value)]
        n = 0
        while waiting:
            if n >= MOST_BLOCKS:
                self.rest += json.dumps([left for *_, left in reversed(waiting)], sort_keys=True)
                return
            path, key, depth, value = waiting.pop()
            if key is not None:
                path = self.to(path, f"@{'#' if KEY_OF_A_ROW.search(key) else key}")
            if isinstance(value, dict) and value and depth < DEEPEST:
                waiting += [(path, key, depth + 1, value[key]) for key in sorted(value, reverse=True)]
            elif isinstance(value, list) and value and depth < DEEPEST:
                waiting += [(path, None, depth, inner) for inner in reversed(value)]
            else:
                n += 1
                text = normalised(value if isinstance(value, str) else json.dumps(value, sort_keys=True))
                if not ASSET.search(text):
                    yield path, text

    def cut(self) -> None:
        """Move the blocks beyond the limit into the remainder."""
        if len(self.texts) > MOST_BLOCKS:
            beyond = [f"{path} {text}" for path, text in zip(self.paths, self.texts, strict=True)][MOST_BLOCKS:]
            self.rest = "\n".join([*beyond, self.rest] if self.rest else beyond)
            del self.texts[MOST_BLOCKS:], self.paths[MOST_BLOCKS:]

    @cached_property
    def page(self) -> str:
        """A short name for the page's URL."""
        return f"{digest_of(self.url):x}"

    @cached_property
    def trace(self) -> Trace:
        """The trace of the page, made only once. A caller that knows the page to be unchanged may set the old trace."""
        names = {place: self.name_of(place) for place in dict.fromkeys(self.paths)}
        said = [digest_of(text) for text in self.texts]
        return Trace([*self.paths], [*self.texts], said, names, digest_of(self.rest))

    @property
    def text(self) -> str:
        """All texts of the page, with a line for each block."""
        return "\n".join([*self.texts, self.rest] if self.rest else self.texts)

    @property
    def counts(self) -> str:
        """All texts of the page with their places, for its fingerprint; "" if there are none."""
        places = struct.pack(f"<{len(self.paths)}I", *self.paths).hex()
        return (text := self.text) and f"{places}\n{text}"

    def way_to(self, path: int) -> list[str]:
        """Return the steps of a path, the outermost first."""
        way = []
        while path in self.steps:
            path, step = self.steps[path]
            way.append(step)
        return way[::-1]

    def name_of(self, path: int) -> str:
        """Return the name of a place: a selector, or for data "@" and the keys.

        >>> blocks = page_blocks("<main><ul class='tags new'><li>one")
        >>> blocks.name_of(blocks.paths[0])
        'ul.tags.new > li'
        """
        way = self.way_to(path)
        if way and way[0] in _OF_KEYS:
            return f"@{'.'.join(step[1:] for step in way[1:])}"
        if way and way[0] in _OF_LINES:
            return " ".join(step.removeprefix("@") for step in way)
        named = [number for number, step in enumerate(way) if "." in step or "#" in step or step.startswith("@")]
        return " > ".join(map(_selector, way[max(named, default=0) :])) or "body"


def _selector(step: str) -> str:
    if step.startswith("@"):
        return f'[itemprop="{step[1:]}"], [property="{step[1:]}"], [name="{step[1:]}"]'
    name, _, column = step.partition(":")
    tag, dot, classes = name.partition(".")
    if dot:
        parts = [f'[class*="{word.partition("#")[0]}"]' if "#" in word else f".{word}" for word in classes.split()]
        name = f"{tag}{''.join(parts)}"
    return f"{name}:nth-child({column})" if column else name


def page_blocks(markup: str, ignore_keys: Collection[str] = (), url: str = "") -> PageBlocks:
    """Cut an HTML page into blocks of text; in scripts with JSON, the keys in `ignore_keys` do not count.

    Notes
    -----
    A block is the text directly below an element. Inline elements without a class or an id belong to the block around
    them. Within ``<pre>``, this holds for inline elements with a class, too: they colour the words of a program.
    Numbers in classes and ids do not count, and neither do parts that programs make up. The time is linear in the
    length of the page. To achieve this, no search looks back over more than 64 elements. All elements deeper than 64
    have the path of the 64th. The page's first 4,096 tags are read one by one, with a further tag for each 25
    characters of the page, up to 20,000 tags. The text after these tags counts as a whole. A tag with attributes counts
    as two tags.

    Examples
    --------
    >>> one = page_blocks('<div id="post-1"><p>Tea <span class="views">12</span></p></div>')
    >>> two = page_blocks('<div id="post-2"><p>Tea <span class="views">13</span></p></div>')
    >>> one.paths == two.paths, one.texts, two.texts
    (True, ['Tea', '12'], ['Tea', '13'])
    """
    blocks = _Cut(ignore_keys).through(markup)
    blocks.cut()
    blocks.url = url
    return blocks


@dataclass(slots=True)
class _Place:
    """The current place of a scan: its path, and the text of its block so far (None before the block begins)."""

    path: int
    is_preformatted: bool = False
    pieces: list[str] | None = None
    n_cells: int = 0


class _Cut:
    """The blocks of a page that is being read, and its open elements."""

    def __init__(self, ignore_keys: Collection[str]) -> None:
        self._blocks = PageBlocks()
        self._ignored = frozenset(ignore_keys)
        self._pieces: list[tuple[int, list[str]]] = []  # the path and the text of each block
        # Inline elements without a class or an id share the place of the element around them.
        self._open = [("", _Place(0))]
        self._data: list[tuple[int, str]] = []

    def through(self, markup: str) -> PageBlocks:
        """Read a page and return its blocks."""
        opened, pieces, steps = self._open, self._pieces, self._blocks.steps
        place, room = opened[-1][1], n_read_singly(markup)
        # The code for nearly all elements is written out here, for speed. The code for rarer elements is in methods.
        for position, text, tag, inner in scan(markup):
            room -= 1 if tag is None else tag.cost
            if room < 0 or len(pieces) > MOST_BLOCKS:
                self._read_rest(markup[position:])
                break
            if text:
                if place.pieces is not None:
                    place.pieces.append(text)
                elif not text.isspace():
                    self._begin(place).append(text)
            if tag is None:
                continue
            if tag.parts_words and place.pieces is not None:
                place.pieces.append(" ")  # the tag ends a word
            name = tag.name
            if tag.closes:
                if opened[-1][0] == name:  # true for nearly all end tags
                    opened.pop()
                else:
                    self._end((name,), ())
                place = opened[-1][1]
                continue
            if name == "script":
                if inner:
                    self._read_script(tag, inner)
                continue
            step, said = tag.known or _known(tag)
            if name in _VOID:
                inside = place  # in "<br>words</br>" the words are not within the <br>
                if said:
                    self._tell(_Place(self._blocks.to(place.path, name)), *said)
                if inner is None:
                    continue
            else:
                if name in _ENDED_BY and (opened[-1][0] == name or opened[-1][0] not in _AROUND_ITEMS):
                    self._end(*_ENDED_BY[name])
                    place = opened[-1][1]
                inside = place
                if name in _CELLS:
                    place.n_cells += place.n_cells < DEEPEST
                    if step == name:  # a cell without class and id is named by its column
                        step = f"{step}:{place.n_cells}"
                # Inline elements without a class or an id belong to the place around them. Within <pre>, elements with
                # a class colour the words of a program.
                is_own = tag.parts_words or (step != name and ("#" in step or not place.is_preformatted))
                if is_own and len(opened) <= DEEPEST:
                    path = _path_below(place.path, step)
                    steps[path] = place.path, step
                    if inner is not None and not said:  # true for nearly all elements with text
                        if inner and not inner.isspace():
                            pieces.append((path, [inner]))
                        continue
                    inside = _Place(path, place.is_preformatted or name == "pre")
                if said:
                    self._tell(inside, *said)
                if inner is None:
                    opened.append((name, inside))
                    place = inside
                    continue
            if inner and (inside.pieces is not None or not inner.isspace()):
                self._begin(inside).append(inner)
            if tag.parts_words and inside.pieces is not None:
                inside.pieces.append(" ")
        for path, words in pieces:
            self._blocks.add(path, normalised("".join(words)))
        for path, text in self._data:
            self._blocks.add(path, text)
        return self._blocks

    def _read_rest(self, markup: str) -> None:
        """Add the unread part of the page to the remainder: its text, the words of its tags, and its data."""
        text, tags, scripts = skimmed(markup)
        for written, held in scripts[:MOST_BLOCKS]:
            self._read_script(Tag(written), held)
        # Only the first tags are read for the words that count. For all further tags, all attributes count.
        said = {written: _all_told_by(Tag(written)) for written in islice(dict.fromkeys(tags), MOST_BLOCKS)}
        told = filter(None, (said.get(written, written) for written in tags))
        self._blocks.rest += "\n".join([text, *told, *(held for _, held in scripts[MOST_BLOCKS:])])

    def _tell(self, place: _Place, text: str, data: list[tuple[str, str]]) -> None:
        """Add the words and the data of a tag's attributes."""
        if text:
            self._begin(place).append(f" {text} ")
        for key, value in data:
            path = self._blocks.to(place.path, f"@{key}")
            self._blocks.data.add(path)
            self._data.append((path, value))

    def _read_script(self, tag: Tag, text: str) -> None:
        """Add the data of a script."""
        value = script_data(tag, text, self._ignored)
        if value is None or isinstance(value, str):
            self._blocks.rest += value or ""
            return
        root = self._blocks.to(0, "json-ld" if "ld+json" in tag.attributes.lower() else "script")
        told = [*self._blocks.values(root, value)]
        self._blocks.data.update(path for path, _ in told)
        self._data += told

    def _begin(self, place: _Place) -> list[str]:
        """Return the pieces of the block at a place; begin a block if the place has none."""
        if place.pieces is None:
            place.pieces = []
            self._pieces.append((place.path, place.pieces))
        return place.pieces

    def _end(self, ended: Collection[str], stops: Collection[str] | None) -> None:
        """End the innermost `ended` element with all elements within it, unless an element within it is in `stops`."""
        for back in range(1, DEEPEST + 1):
            last, _ = self._open[-back]
            if last in ended:
                del self._open[-back:]
                return
            if not last or (last not in INLINE if stops is None else last in stops):  # the root has no name
                return


@lru_cache(maxsize=16_384)
def _path_below(path: int, step: str) -> int:
    data = path.to_bytes(4, "big") + step.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=4, person=b"crawlsched-path").digest(), "big")


def _known(tag: Tag) -> Any:
    """Return and remember the step to an element, with the words and data of its tag."""
    said = told_by(tag), data_of(tag)
    tag.known = _step(tag), said if any(said) else None
    return tag.known


def _all_told_by(tag: Tag) -> str:
    return " ".join([told_by(tag), *(f"{key} {value}" for key, value in data_of(tag))]).strip()


def _step(tag: Tag) -> str:
    """Return the step to an element: its name with its classes, or with its id if it has no classes."""
    if "=" not in tag.attributes or tag.name in _AROUND_ALL:
        return tag.name
    found = tag.attribute_values
    words = found.get("class", "").split(None, DEEPEST)[:DEEPEST]
    states = states_of(found.get("class", ""))
    if words := [word for word in words if word not in states] or words:
        return f"{tag.name}.{_MADE_UP.sub('#', ' '.join(words))[:LONGEST_NAME]}"
    name = _MADE_UP.sub("#", found.get("id", "").strip())[:LONGEST_NAME]
    return f"{tag.name}#{name}" if name else tag.name
