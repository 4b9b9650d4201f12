"""The recipe of learned noise: a page's blocks of text, without those that are noise on its template."""

from collections.abc import Callable

from crawlsched.change_detection.blocks import PageBlocks, page_blocks
from crawlsched.change_detection.content import content_of
from crawlsched.change_detection.content_kind import content_kind
from crawlsched.change_detection.decoding import decoded
from crawlsched.change_detection.fingerprint import Fingerprint
from crawlsched.change_detection.noise import NoiseMask

__all__ = ["LivingBlocks"]


class LivingBlocks:
    """The blocks of a page's text that are not noise count; what is not HTML counts as for `VisibleText`.

    Parameters
    ----------
    mask_of : callable, optional
        Gives the `NoiseMask` of a URL, or None where nothing was learned yet. Pages of one template share a mask.
    links, images : bool, default False
        Whether targets of links and sources of images count.

    Notes
    -----
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
        self, mask_of: Callable[[str], NoiseMask | None] | None = None, links: bool = False, images: bool = False
    ) -> None:
        self._mask_of = mask_of
        self._links = links
        self._images = images
        self.id = f"blocks/1{'+links' * links}{'+images' * images}"

    def fingerprint(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> Fingerprint:
        """Return the fingerprint of a body."""
        page = self.blocks(body, content_type, encoding)
        if page is None:
            return Fingerprint.of(self.id, content_of(body, content_type, encoding))
        mask = (self._mask_of(url) if self._mask_of else None) or NoiseMask()
        recipe = f"{self.id}/{mask.rules_id}" if mask.rules_id else self.id
        return Fingerprint.of(recipe, mask.living(page))

    def blocks(self, body: bytes, content_type: str | None, encoding: str | None) -> PageBlocks | None:
        """Return the blocks of a body, from which a mask can learn; None if it is not HTML."""
        if content_kind(body, content_type, encoding) != "html":
            return None
        return page_blocks(decoded(body, content_type, encoding), self._links, self._images)
