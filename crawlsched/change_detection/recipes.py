"""Recipes: which part of a response counts as content.

Each has an ``id`` (method, parameters, version of what it is made with) and a method
``fingerprint(body, content_type, encoding, url)``. No body makes one of these raise or run for ever.
"""

import logging
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from typing import Any

from crawlsched.change_detection.block_recipe import LivingBlocks
from crawlsched.change_detection.content import content_of
from crawlsched.change_detection.main_text import MainText
from crawlsched.change_detection.recipe_kind import Recipe, checked_keys, keys_id, short_digest
from crawlsched.change_detection.visible_text import visible_text

__all__ = ["RECIPE_NAMES", "Json", "RawBytes", "Recipe", "Selectors", "UserFunction", "VisibleText", "recipe"]

logger = logging.getLogger(__name__)

_LOOKED_AT = 1024

RECIPE_NAMES = ("blocks", "visible_text", "main_text", "json", "raw_bytes")
"""What `recipe` knows by name."""


class RawBytes(Recipe):
    """Every byte counts.

    Examples
    --------
    >>> RawBytes().fingerprint(b"a", None, None, "") == RawBytes().fingerprint(b"b", None, None, "")
    False
    """

    id = "raw_bytes/1"

    def content(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> tuple[str, bytes | str]:
        """Return the body."""
        return self.id, body


class VisibleText(Recipe):
    """The text of a page that a reader sees counts.

    Scripts, styles, comments and attributes do not, nor do white space, charset and the spelling of entities. What is
    not HTML counts as its kind deserves: JSON whatever the order of its keys, XML and feeds without their build dates,
    plain text without its white space, everything else (pictures, PDF) byte by byte.

    Parameters
    ----------
    links : bool, default False
        Whether the targets of links count: a page whose download link moved has changed for many readers.
    images : bool, default False
        Whether the sources of images count.
    ignore_keys : sequence of str
        Keys that do not count where the body is JSON.

    Examples
    --------
    >>> text = VisibleText()
    >>> one = text.fingerprint("<p>Café<script>1</script>".encode("latin-1"), "text/html", "latin-1", "")
    >>> two = text.fingerprint(b"<P class=x>  Caf&eacute; </P>", "text/html", "utf-8", "")
    >>> one == two
    True
    """

    def __init__(self, links: bool = False, images: bool = False, ignore_keys: Sequence[str] = ()) -> None:
        self._links = links
        self._images = images
        self._ignore_keys = checked_keys(ignore_keys)
        self.id = f"visible_text/4{'+links' * links}{'+images' * images}{keys_id(self._ignore_keys)}"

    def content(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> tuple[str, bytes | str]:
        """Return the text, or what counts of another kind."""
        return self.id, content_of(body, content_type, encoding, self._html_text, self._ignore_keys)

    def _html_text(self, markup: str) -> str:
        return visible_text(markup, self._links, self._images)


class Selectors(Recipe):
    """The visible text of some parts of a page counts, without that of others; otherwise as `VisibleText`.

    Parameters
    ----------
    keep : sequence of str
        CSS selectors, or XPaths; empty: the whole page. ``::attr(name)`` makes an attribute count.
    drop : sequence of str
        Selectors of parts that do not count, also within what is kept.
    links, images : bool, default False
        Whether targets of links and sources of images count.
    ignore_keys : sequence of str
        Keys that do not count where the body is JSON.

    Raises
    ------
    ValueError
        If a selector does not parse.

    Notes
    -----
    A page without any part to keep has empty content (`Fingerprint.is_empty`). See `PageParts` for what is done with
    pages that cannot be read as a tree.

    Examples
    --------
    >>> price = Selectors(keep=[".price"], drop=["small"])
    >>> one = price.fingerprint(b"<b class=price>5<small>now</small></b> at 1 pm", "text/html", "utf-8", "")
    >>> two = price.fingerprint(b"<b class=price>5<small>later</small></b> at 2 pm", "text/html", "utf-8", "")
    >>> one == two
    True
    """

    def __init__(
        self,
        keep: Sequence[str] = (),
        drop: Sequence[str] = (),
        links: bool = False,
        images: bool = False,
        ignore_keys: Sequence[str] = (),
    ) -> None:
        from crawlsched.change_detection.selectors import SELECTION_VERSION, PageParts

        self._parts = PageParts(keep, drop, links, images)
        self._ignore_keys = checked_keys(ignore_keys)
        parameters = short_digest([sorted(keep), sorted(drop), bool(links), bool(images)])
        self.id = f"selectors/4/{parameters}{keys_id(self._ignore_keys)}/{SELECTION_VERSION}"

    def content(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> tuple[str, bytes | str]:
        """Return the text of the parts, or what counts of another kind."""
        return self.id, content_of(body, content_type, encoding, self._parts.text, self._ignore_keys)


class Json(Recipe):
    """What a JSON document says counts, whatever the order of its keys; other kinds count as for `VisibleText`.

    Whoever chooses this says that bodies are JSON, so they are read as that whatever the Content-Type calls them.

    Parameters
    ----------
    ignore_keys : sequence of str
        Names of keys that do not count, wherever in a document they stand.

    Raises
    ------
    ValueError
        If a key is not a text.

    Examples
    --------
    >>> recipe = Json(ignore_keys=["generated_at"])
    >>> one = recipe.fingerprint(b'{"a": 1, "b": 2, "generated_at": 3}', "application/json", None, "")
    >>> two = recipe.fingerprint(b'{"b":2,"a":1}', "application/json", None, "")
    >>> one == two
    True
    """

    def __init__(self, ignore_keys: Sequence[str] = ()) -> None:
        self._ignore_keys = checked_keys(ignore_keys)
        self.id = f"json/2/{short_digest(sorted(self._ignore_keys))}" if ignore_keys else "json/2"

    def content(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> tuple[str, bytes | str]:
        """Return the document in one form, or what counts of another kind."""
        if body[:_LOOKED_AT].removeprefix(BOM_UTF8).lstrip().startswith((b"{", b"[")):
            content_type = f"application/json;{(content_type or '').partition(';')[2]}"  # the charset stays
        return self.id, content_of(body, content_type, encoding, ignore_keys=self._ignore_keys)


class UserFunction(Recipe):
    r"""What a function of the user's returns counts.

    Parameters
    ----------
    function : callable
        ``function(body, content_type, url)`` returns bytes or str. Its ``version`` attribute, if it has one, becomes
        part of the recipe's id: change it whenever the function begins to see pages in another way.

    Examples
    --------
    >>> def first_line(body, content_type, url):
    ...     return body.partition(b"\n")[0]
    >>> by_line = UserFunction(first_line)
    >>> by_line.fingerprint(b"a\nb", None, None, "") == by_line.fingerprint(b"a\nc", None, None, "")
    True
    """

    def __init__(self, function: Callable[[bytes, str | None, str], bytes | str]) -> None:
        self._function = function
        name = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
        self.id = f"function/1/{name}/{getattr(function, 'version', 1)}"

    def content(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> tuple[str, bytes | str]:
        """Return what the function does; if it raises, the bytes count, and the log says so."""
        try:
            content = self._function(body, content_type, url)
            if not isinstance(content, bytes | str):
                raise TypeError(f"it returned {type(content).__name__}; bytes or str are what can count")
        except Exception as error:
            logger.error("The function of %s raised for %s (%r); the page's bytes count instead.", self.id, url, error)
            return f"{self.id}/raised", body
        return self.id, content


def recipe(
    method: str | Callable[..., Any],
    *,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    links: bool = False,
    images: bool = False,
    ignore_keys: Sequence[str] = (),
    template_edits: bool = False,
) -> Recipe:
    """Return the recipe of this name.

    Parameters
    ----------
    method : {"blocks", "visible_text", "main_text", "json", "raw_bytes"} or callable
        What counts; a callable ``f(body, content_type, url)`` returns what does.
    keep, drop : sequence of str
        CSS selectors or XPaths, with "blocks" and "visible_text".
    links, images : bool, default False
        Whether targets of links and sources of images count, with "blocks" and "visible_text".
    ignore_keys : sequence of str
        Keys of JSON that do not count; not with "raw_bytes" and callables.
    template_edits : bool, default False
        Whether what a site changes on all of its pages alike counts as a change of each, with "blocks".

    Raises
    ------
    ValueError
        If the method is not known, a selector does not parse, something is given that the method does not use, or
        what the method needs is not installed.

    Examples
    --------
    >>> recipe("raw_bytes").id, recipe("visible_text", links=True).id
    ('raw_bytes/1', 'visible_text/4+links')
    """
    for option, value in (("links", links), ("images", images), ("template_edits", template_edits)):
        if not isinstance(value, bool):  # "False" would be taken for True
            raise ValueError(f"{option} is {value!r}; it is True or False.")
    if not callable(method) and method not in RECIPE_NAMES:
        raise ValueError(f"method must be one of {', '.join(map(repr, RECIPE_NAMES))}, or a callable; got {method!r}.")
    name = "a callable" if callable(method) else method
    if (keep or drop) and name not in ("blocks", "visible_text"):
        raise ValueError(f"keep, drop select text and blocks; with the method {method!r} they must be empty.")
    if (links or images) and name not in ("blocks", "visible_text"):
        raise ValueError(f"links and images belong to text and blocks; with the method {method!r} they must be False.")
    if ignore_keys and name in ("a callable", "raw_bytes"):
        raise ValueError(f"ignore_keys is about JSON that is read; with the method {method!r} it must be empty.")
    if template_edits and name != "blocks":
        raise ValueError(f"template_edits belongs to the method 'blocks'; with the method {method!r} it must be False.")
    if callable(method):
        return UserFunction(method)
    if method == "raw_bytes":
        return RawBytes()
    if method == "json":
        return Json(ignore_keys)
    if method == "main_text":
        return MainText(ignore_keys)
    keep, drop = _several("keep", keep), _several("drop", drop)
    if method == "blocks":
        return LivingBlocks(links, images, keep, drop, ignore_keys, template_edits)
    if keep or drop:
        return Selectors(keep, drop, links, images, ignore_keys)
    return VisibleText(links, images, ignore_keys)


def _several(argument: str, selectors: Sequence[str]) -> Sequence[str]:
    if isinstance(selectors, str):  # its characters would each be taken as a selector
        raise ValueError(f"{argument} is {selectors!r}; it is a list of selectors, such as [{selectors!r}].")
    if not isinstance(selectors, Sequence):
        raise ValueError(f"{argument} is {selectors!r}; it is a list of selectors, such as ['main .price'].")
    return selectors
