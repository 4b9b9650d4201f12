"""The recipe of learned noise: a page's blocks of text, without those that are noise on its template."""

from collections.abc import Callable, Sequence

from crawlsched.change_detection.blocks import PageBlocks, page_blocks
from crawlsched.change_detection.content import content_of
from crawlsched.change_detection.content_kind import content_kind
from crawlsched.change_detection.decoding import decoded
from crawlsched.change_detection.fingerprint import Fingerprint
from crawlsched.change_detection.noise import NoiseMask
from crawlsched.change_detection.recipe_kind import Recipe, checked_keys, keys_id, short_digest
from crawlsched.change_detection.selectors import SELECTION_VERSION, PageParts
from crawlsched.change_detection.visible_text import visible_text

__all__ = ["LivingBlocks"]

# What is larger counts by its text as a whole: no page for people is, and cutting 100 MB would take a minute.
_MAX_BYTES = 2_000_000


class LivingBlocks(Recipe):
    """The blocks of a page's text that are not noise count; what is not HTML counts as for `VisibleText`.

    Parameters
    ----------
    mask_of : callable, optional
        Gives the `NoiseMask` of a URL, or None where nothing was learned yet. Pages of one template share a mask.
    links, images : bool, default False
        Whether targets of links and sources of images count.
    keep, drop : sequence of str
        Selectors of the parts of a page that count, and of parts that do not; see `Selectors`.
    ignore_keys : sequence of str
        Keys that do not count where the body is JSON.
    template_edits : bool, default False
        Whether what a site changes on all of its pages alike counts as a change of each; see `TemplateEdits`. The
        fingerprint is the same either way.

    Notes
    -----
    Blocks are compared at their places, and as they are read, one after the other: where either is as it was nothing
    has changed for a reader. So another class, or another element around a text, is no change, and neither are blocks
    that have changed places as a whole.

    A fingerprint's recipe names the rules of the mask it was made with: when a template's noise is learned, or returns
    to the living, its pages are re-baselined once, without an observation.

    Examples
    --------
    >>> mask = NoiseMask()
    >>> recipe = LivingBlocks(lambda url: mask)
    >>> pages = [f"<p>Tea</p><p class=now>It is 12:0{minute}</p>".encode() for minute in range(4)]
    >>> mask.learn([recipe.blocks(page, "text/html", None) for page in pages[:2]])
    True
    >>> one, two = (recipe.fingerprint(page, "text/html", None, "http://a/") for page in pages[2:])
    >>> one == two
    True
    """

    def __init__(
        self,
        mask_of: Callable[[str], NoiseMask | None] | None = None,
        links: bool = False,
        images: bool = False,
        keep: Sequence[str] = (),
        drop: Sequence[str] = (),
        ignore_keys: Sequence[str] = (),
        template_edits: bool = False,
    ) -> None:
        self.template_edits = template_edits
        self._mask_of = mask_of
        self._links = links
        self._images = images
        self._ignore_keys = checked_keys(ignore_keys)
        self._parts = PageParts(keep, drop) if keep or drop else None
        self.id = f"blocks/3{'+links' * links}{'+images' * images}{keys_id(self._ignore_keys)}"
        if self._parts is not None:
            self.id += f"/{short_digest([sorted(keep), sorted(drop)])}/{SELECTION_VERSION}"

    def content(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> tuple[str, bytes | str]:
        """Return the living blocks, or what counts of another kind."""
        page = self.blocks(body, content_type, encoding)
        if page is None:
            return self.id, self.other_content(body, content_type, encoding)
        mask = (self._mask_of(url) if self._mask_of else None) or NoiseMask()
        return self.id_with(mask), mask.living(page)

    def fingerprint(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> Fingerprint:
        """Return the fingerprint of a body."""
        page = self.blocks(body, content_type, encoding)
        if page is None:
            return Fingerprint.of(self.id, self.other_content(body, content_type, encoding))
        mask = (self._mask_of(url) if self._mask_of else None) or NoiseMask()
        return mask.fingerprint(self.id_with(mask), page)

    def id_with(self, mask: NoiseMask) -> str:
        """Return the id of the recipe together with the rules of a mask."""
        return f"{self.id}/{mask.rules_id}" if mask.rules_id else self.id

    def blocks(self, body: bytes, content_type: str | None, encoding: str | None) -> PageBlocks | None:
        """Return the blocks of a body, from which a mask can learn; None if it is not HTML, or more than 2 MB."""
        if len(body) > _MAX_BYTES or content_kind(body, content_type, encoding) != "html":
            return None
        markup = decoded(body, content_type, encoding)
        if self._parts is not None:
            markup = self._parts.markup(markup)
        return page_blocks(markup, self._links, self._images)

    def other_content(self, body: bytes, content_type: str | None, encoding: str | None) -> bytes | str:
        """Return what counts of a body that is not cut into blocks."""
        html_text = visible_text if self._parts is None else self._parts.text
        return content_of(body, content_type, encoding, html_text, self._ignore_keys)
