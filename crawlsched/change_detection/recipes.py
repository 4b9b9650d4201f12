"""Recipes: they choose the part of a response that counts as content, and compute its fingerprint."""

import json
import logging
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from importlib import metadata
from typing import Any

from crawlsched.change_detection.blocks import PageBlocks, page_blocks
from crawlsched.change_detection.body_blocks import body_blocks
from crawlsched.change_detection.content_kind import Body, content_kind, decoded
from crawlsched.change_detection.fingerprint import Fingerprint
from crawlsched.change_detection.html_scan import visible_text
from crawlsched.change_detection.tag_data import canonical_json

__all__ = ["RECIPE_NAMES", "RECIPE_OPTIONS", "Recipe", "recipe"]

logger = logging.getLogger(__name__)

_VERSIONS = {"blocks": 7, "visible_text": 5, "main_text": 2, "json": 3, "raw_bytes": 1, "function": 1}
#: The names of methods that are not functions.
RECIPE_NAMES = tuple(_VERSIONS)[:-1]

#: The options of a recipe other than its method, and their kinds.
RECIPE_OPTIONS = {
    "keep": "a list of selectors, such as ['main .price']",
    "drop": "a list of selectors, such as ['.ad']",
    "ignore_keys": "a list of names of keys, such as ['generated_at']",
}

# The options of each method that does not take all options.
_TAKEN = {"main_text": {"ignore_keys"}, "json": {"ignore_keys"}, "raw_bytes": set[str](), "function": set[str]()}


class Recipe:
    """Reads the content that counts from a body. No body makes a recipe raise an error, or run for ever.

    Parameters
    ----------
    method : {"blocks", "visible_text", "main_text", "json", "raw_bytes"} or callable
        The content that counts. ``blocks``: all texts that a reader or a program reads, block by block, so that a
        `Detector` can find the noise. ``visible_text``: all text that a reader sees. ``main_text``: the article, as
        trafilatura finds it. ``json``: the values of a JSON document, under any media type. ``raw_bytes``: every byte.
        A function: the bytes or str that ``f(body, content_type, url)`` returns. If the function has a ``version``, it
        is part of the recipe's id. Change the version when the function treats pages in another way.
    keep, drop : sequence of str
        CSS selectors or XPaths. `keep` selects the parts of a page that count; without it the whole page counts. `drop`
        selects the parts that do not count, even within parts that `keep` selects. ``::attr(name)`` makes an attribute
        count: with ``keep=["html", "a::attr(href)"]`` the targets of links count, too.
    ignore_keys : sequence of str
        Keys of JSON, in the body or in a script of a page, that do not count.

    Notes
    -----
    For JSON, all methods except ``blocks`` compare keys and values. For other content that is not HTML, all methods
    except ``raw_bytes`` and functions compare blocks. With ``blocks`` the paths to blocks are part of the fingerprint,
    and the detector decides which of them are only markup. After an upgrade, trafilatura finds another text in the same
    bytes for 8 to 26 % of real pages. If it finds no text in a page, all visible text counts, and the recipe has
    another id.

    Examples
    --------
    >>> def are_same(one, two, **options):
    ...     return len({Recipe(**options).fingerprint(body, "text/html", None, "") for body in (one, two)}) == 1
    >>> are_same(b"<p>Tea", b"<p data-x=1>Tea"), are_same(b"<p>Tea", b"<p class=x>Tea", method="raw_bytes")
    (True, False)
    >>> are_same(b"<b>5</b> at 1 pm", b"<b>5</b> at 2 pm", method="visible_text", keep=["b"])
    True
    """

    def __init__(
        self,
        method: str | Callable[..., Any] = "blocks",
        *,
        keep: Sequence[str] = (),
        drop: Sequence[str] = (),
        ignore_keys: Sequence[str] = (),
    ) -> None:
        if not callable(method) and method not in RECIPE_NAMES:
            raise ValueError(
                f"method must be one of {', '.join(map(repr, RECIPE_NAMES))}, or a callable; got {method!r}."
            )
        name = "function" if callable(method) else method
        takes = _TAKEN.get(name, RECIPE_OPTIONS.keys())
        given = {"keep": keep, "drop": drop, "ignore_keys": ignore_keys}
        for option, value in given.items():
            is_right = isinstance(value, Collection) and all(isinstance(one, str) for one in value)
            if not is_right or isinstance(value, str):  # in a str each character would count as a selector or a key
                raise ValueError(f"{option} is {value!r}; it is {RECIPE_OPTIONS[option]}.")
            if value and option not in takes:
                told = f"takes {', '.join(sorted(takes))}" if takes else "takes no options"
                raise ValueError(f"{option} cannot be given with the method {name!r}, which {told}.")
        self.method = method
        self._ignored = frozenset(ignore_keys)
        #: Returns the markup of those parts of a page that count.
        self._kept: Callable[[str], str] = str
        #: Whether the time is proportional to the body's size. Libraries and functions may take long for small bodies.
        self.is_linear = method in ("blocks", "visible_text", "raw_bytes")
        self.id = f"{name}/{_VERSIONS[name]}"
        if ignore_keys:
            self.id += f"+keys{_digest(sorted(ignore_keys))}"
        if keep or drop:
            from crawlsched.change_detection.selectors import SELECTION_VERSION, PageParts

            parts = PageParts(keep, drop)
            self._kept = parts.markup
            self.is_linear = self.is_linear and not parts.looks_around
            self.id += f"+parts{_digest([sorted(keep), sorted(drop)])}+{SELECTION_VERSION}"
        if callable(method):
            named = getattr(method, "__qualname__", type(method).__name__)
            self.id += f"/{getattr(method, '__module__', '?')}.{named}/{getattr(method, 'version', 1)}"
        if method == "main_text":
            try:
                from trafilatura import extract  # imported only if needed, since this takes half a second
            except ImportError:
                raise ValueError(
                    "method is 'main_text', which needs trafilatura; install crawlsched[extract]."
                ) from None
            self._extract: Any = extract
            self.id += f"/trafilatura{metadata.version('trafilatura')}"

    def fingerprint(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> Fingerprint:
        """Return the fingerprint of a body."""
        recipe_id, counts, _ = self.content(Body(body, content_type, encoding, url))
        return Fingerprint.of(recipe_id, counts)

    def content(self, body: Body) -> tuple[str, bytes | str, PageBlocks | None]:
        """Read a body. Return the id of the recipe, the content that counts, and its blocks (None: no blocks count)."""
        if callable(self.method):
            return *self._of_function(self.method, body), None
        if self.method == "raw_bytes":
            return self.id, body.body, None
        kind = content_kind(*body[:3])
        if self.method == "json" or (self.method != "blocks" and kind == "json"):
            written = canonical_json(decoded(*body[:3]), self._ignored)
            if written is not None:
                return self.id, written, None
        if kind != "html":
            blocks = body_blocks(*body[:3], self._ignored)
        elif self.method in ("visible_text", "main_text"):
            return *self._of_page(decoded(*body[:3]), body.url), None
        else:
            blocks = page_blocks(self._kept(decoded(*body[:3])), self._ignored)
        if self.method == "blocks":
            return self.id, blocks.counts, blocks
        # A border between two blocks counts as white space.
        return self.id, blocks.text.replace("\n", " "), None

    def _of_page(self, markup: str, url: str) -> tuple[str, str]:
        if self.method != "main_text":
            return self.id, visible_text(self._kept(markup))
        try:
            text = self._extract(markup, favor_precision=True)
        except Exception as error:  # a page on which the library fails is still visited
            logger.error("trafilatura failed on %s (%r); its visible text counts instead.", url, error)
            text = None
        return (self.id, text) if text else (f"{self.id}/all/2", visible_text(markup))

    def _of_function(self, function: Callable[..., Any], body: Body) -> tuple[str, bytes | str]:
        try:
            content = function(body.body, body.content_type, body.url)
            if not isinstance(content, bytes | str):
                raise TypeError(f"it returned {type(content).__name__}; it has to return bytes or str")
        except Exception as error:
            told = "The function of %s raised for %s (%r); the page's bytes count instead."
            logger.error(told, self.id, body.url, error)
            return f"{self.id}/raised", body.body
        return self.id, content


#: The name by which programs outside of the project make a recipe.
recipe = Recipe


def _digest(parameters: Any) -> str:
    """Return a short digest of parameters."""
    return blake2b(json.dumps(parameters).encode(), digest_size=6).hexdigest()
