"""Reading a response: from its bytes to the content that counts; runs in a thread where the body is large."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from crawlsched.change_detection import Recipe
from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.body_blocks import GZIP
from crawlsched.change_detection.content_kind import Body, content_kind
from crawlsched.change_detection.fingerprint import Fingerprint, likeness, sketch
from crawlsched.change_detection.limits import MOST_KEPT
from crawlsched.change_detection.trace import Trace, differences
from crawlsched.content.kept_texts import packed

__all__ = ["MOST_TEXT_BYTES", "Body", "Content", "compare", "is_current", "is_quick", "read_content"]

#: At most this much of a page's text, unpacked, is read to see whether it has changed. Other content is compared whole.
MOST_TEXT_BYTES = 4_000_000
# Larger bodies are read in a thread, so that the slot clock is not held up: a body of this size takes 12 ms if it is
# all tags. For smaller bodies the hand-over to a thread costs as much as the work.
_QUICK_BELOW = 10_240


@dataclass(eq=False)
class Content:
    """The content of a body: the part that counts."""

    url: str  # by which it was read
    fingerprint: Fingerprint
    # The text that counts, a line for each block; None where bytes count, or the content is the same as before.
    text: str | None = None
    seen: PageBlocks | None = None  # its blocks, as the detector takes them; None where the recipe has none
    is_html: bool = False  # whether it is a page for people
    packed_text: bytes | None = None  # the text, compressed, where it is to be kept
    address: str = ""  # the address by which texts may name the page

    @cached_property
    def text_sketch(self) -> bytes:
        """A sketch of the text, from which the size of a change can be estimated; empty where there is no text."""
        return sketch(self.text[:MOST_KEPT]) if self.text is not None else b""

    @cached_property
    def likeness(self) -> bytes:
        """A digest that pages share if they differ only in numbers and in their names; see `fingerprint.likeness`."""
        alike = likeness(self.text, self.address) if self.is_html and self.text else None
        return alike or self.fingerprint.digest[:8]


def read_content(
    body: Body, recipe: Recipe, *, before: bytes | None = None, text_bytes: int = 0, address: str | None = None
) -> Content:
    r"""Read a response; content with the digest `before` gets no text and no sketch.

    `text_bytes` bounds the compressed text (0: none), and `address` names the page where its URL does not.

    Examples
    --------
    >>> content = read_content(Body(b"<p>Tea<p>Milk", "text/html", None, "http://a/"), Recipe("blocks"))
    >>> content.text, len(content.seen.trace)
    ('Tea\nMilk', 2)
    """
    recipe_id, counts, blocks = recipe.content(body)
    is_html = content_kind(*body[:3]) == "html"
    address = address or body.url
    content = Content(body.url, Fingerprint.of(recipe_id, counts), seen=blocks, is_html=is_html, address=address)
    if blocks is not None:
        blocks.url = address
    if isinstance(counts, str) and content.fingerprint.digest != before:
        content.text = counts if blocks is None else blocks.text
        content.packed_text = packed(content.text, text_bytes) if text_bytes else None
        _ = content.text_sketch, content.seen and content.seen.trace  # made here, which may be in a thread
    return content


def compare(content: Content, given: bytes, first: Content | None) -> Content:
    """Find how content differs from what its reader got (a packed trace) and from the `first` of two fetches.

    The verdict asks for these differences again, and then has them at once.

    >>> one, two = (read_content(Body(text, "text/html", None, "http://a/"), Recipe()) for text in (b"Tea", b"Milk"))
    >>> compare(two, one.seen.trace.packed(), None) is two
    True
    """
    for trace in (Trace.unpacked(given), first and first.seen and first.seen.trace):
        if trace is not None and content.seen is not None and content.text is not None:
            differences(trace, content.seen.trace)
    return content


def is_quick(body: Body, recipe: Recipe) -> bool:
    """Whether a body is read within a few milliseconds, so that no thread is needed; gzip may hold much more."""
    return len(body.body) < _QUICK_BELOW and not body.body.startswith(GZIP) and recipe.is_linear


def is_current(recipe_id: str | None, recipe: Recipe) -> bool:
    """Whether a fingerprint with this id can be compared to one that is made now."""
    return recipe_id is not None and (recipe_id == recipe.id or recipe_id.startswith(f"{recipe.id}/"))
