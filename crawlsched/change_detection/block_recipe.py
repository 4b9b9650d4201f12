"""The recipe of blocks: what a page says, block by block, so that what changes by itself can be left out."""

from collections.abc import Sequence

from crawlsched.change_detection.blocks import PageBlocks, page_blocks
from crawlsched.change_detection.body_blocks import body_blocks
from crawlsched.change_detection.content_kind import content_kind
from crawlsched.change_detection.decoding import decoded
from crawlsched.change_detection.recipe_kind import Recipe, checked_keys, keys_id, short_digest

__all__ = ["LivingBlocks"]


class LivingBlocks(Recipe):
    """What a reader or a program reads counts, block by block; a `Detector` tells what of it is noise.

    Parameters
    ----------
    links, images : bool, default False
        Whether targets of links and sources of images count.
    keep, drop : sequence of str
        Selectors of the parts of a page that count, and of parts that do not; see `Selectors`.
    ignore_keys : sequence of str
        Keys that do not count where the body, or a script, is JSON.
    template_edits : bool, default False
        Whether what a site changes on all of its pages alike is told of each.

    Notes
    -----
    The fingerprint is of all blocks as they are read, one after the other: another class, or another element around a
    text, is no change. What is noise is no part of it.

    Examples
    --------
    >>> recipe = LivingBlocks()
    >>> one, two = (recipe.fingerprint(page, "text/html", None, "http://a/") for page in (b"<p>Tea", b"<div>Tea</div>"))
    >>> one == two
    True
    """

    def __init__(
        self,
        links: bool = False,
        images: bool = False,
        keep: Sequence[str] = (),
        drop: Sequence[str] = (),
        ignore_keys: Sequence[str] = (),
        template_edits: bool = False,
    ) -> None:
        self.template_edits = template_edits
        self._links = links
        self._images = images
        self._ignore_keys = checked_keys(ignore_keys)
        self._parts = None
        self.id = f"blocks/5{'+links' * links}{'+images' * images}{keys_id(self._ignore_keys)}"
        if keep or drop:
            from crawlsched.change_detection.selectors import SELECTION_VERSION, PageParts

            self._parts = PageParts(keep, drop)
            self.id += f"/{short_digest([sorted(keep), sorted(drop)])}/{SELECTION_VERSION}"

    def content(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> tuple[str, bytes | str]:
        """Return the blocks."""
        return self.id, self.blocks(body, content_type, encoding).text.replace("\n", " ")

    def blocks(self, body: bytes, content_type: str | None, encoding: str | None) -> PageBlocks:
        """Return the blocks of a body."""
        if content_kind(body, content_type, encoding) != "html":
            return body_blocks(body, content_type, encoding, self._ignore_keys)
        markup = decoded(body, content_type, encoding)
        if self._parts is not None:
            markup = self._parts.markup(markup)
        return page_blocks(markup, self._links, self._images, self._ignore_keys)
