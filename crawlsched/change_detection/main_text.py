"""The main text of a page, as trafilatura finds it: without navigation, related headlines, footers."""

import logging
from collections.abc import Sequence
from typing import Any

from crawlsched.change_detection.content import content_of
from crawlsched.change_detection.content_kind import content_kind
from crawlsched.change_detection.decoding import decoded
from crawlsched.change_detection.recipe_kind import Recipe, checked_keys, keys_id

__all__ = ["MainText"]

logger = logging.getLogger(__name__)


class MainText(Recipe):
    """The main text of a page counts, as trafilatura extracts it; other kinds count as for `VisibleText`.

    Parameters
    ----------
    ignore_keys : sequence of str
        Keys that do not count where the body is JSON.

    Raises
    ------
    ValueError
        If trafilatura is not installed.

    Notes
    -----
    Of the same bytes, trafilatura finds another text after an upgrade in 8 to 26 % of real pages, so its version is
    part of the recipe's id. Where it finds no main text, all visible text counts, under an id of its own: from one to
    the other nothing can be told.

    Examples
    --------
    >>> page = b"<body><nav>{}</nav><article><h1>Tea</h1><p>Tea is made of leaves and of water.</p></article></body>"
    >>> recipe = MainText()
    >>> one, two = (recipe.fingerprint(page.replace(b"{}", menu), "text/html", None, "") for menu in (b"Home", b"Shop"))
    >>> one == two
    True
    """

    def __init__(self, ignore_keys: Sequence[str] = ()) -> None:
        from importlib import metadata

        try:
            from trafilatura import extract  # only where it is asked for: it takes half a second to load
        except ImportError:
            raise ValueError("method is 'main_text', which needs trafilatura; install crawlsched[extract].") from None
        self._extract: Any = extract
        self._ignore_keys = checked_keys(ignore_keys)
        self.id = f"main_text/1/trafilatura{metadata.version('trafilatura')}{keys_id(self._ignore_keys)}"

    def content(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> tuple[str, bytes | str]:
        """Return the main text, or what counts of another kind."""
        if content_kind(body, content_type, encoding) == "html":
            text = self._main_text(decoded(body, content_type, encoding), url)
            if text:
                return self.id, text
            return f"{self.id}/all/2", content_of(body, content_type, encoding)
        return self.id, content_of(body, content_type, encoding, ignore_keys=self._ignore_keys)

    def _main_text(self, markup: str, url: str) -> str | None:
        try:
            return self._extract(markup, favor_precision=True)  # type: ignore[no-any-return]
        except Exception as error:  # a library's trouble with one page must not end its visits
            logger.error("trafilatura failed on %s (%r); its visible text counts instead.", url, error)
            return None
