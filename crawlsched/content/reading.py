"""Reading a response: from its bytes to the content that counts. A large body is read in a thread."""

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
from crawlsched.store import PageFacts
from crawlsched.store.batch import DIGEST_SIZE
from crawlsched.store.kept_texts import packed

__all__ = ["MOST_TEXT_BYTES", "Body", "Content", "is_current", "is_quick", "read_content"]

#: To find changes in a page's text, at most this many bytes of its unpacked body are read. Other bodies are read whole.
MOST_TEXT_BYTES = 4_000_000
# Larger bodies are read in a thread, so that they do not delay slots. A body of this size takes up to 12 ms. For
# smaller bodies, a thread would cost as much as the work.
_QUICK_BELOW = 10_240


@dataclass(eq=False)
class Content:
    """The part of a body that counts."""

    url: str
    fingerprint: Fingerprint
    # The text that counts, with a line for each block; None if bytes count, or if the content is the same as before.
    text: str | None = None
    seen: PageBlocks | None = None  # the blocks for the detector; None if the recipe has no blocks
    is_html: bool = False  # False, too, if there is no text
    is_empty: bool = False  # whether nothing counts, for example because no selector matched
    packed_text: bytes | None = None  # the compressed text, if it is to be stored
    address: str = ""  # the page's address, which its text may contain

    @property
    def short_digest(self) -> bytes:
        """The digest by which a page's history names this content."""
        return self.fingerprint.digest[:DIGEST_SIZE]

    @cached_property
    def text_sketch(self) -> bytes:
        """A sketch of the text, from which the size of a change can be estimated; empty if there is no text."""
        return sketch(self.text[:MOST_KEPT]) if self.text is not None else b""

    @cached_property
    def likeness(self) -> bytes:
        """A digest of the text without numbers and without the page's name; see `fingerprint.likeness`."""
        alike = likeness(self.text, self.address) if self.is_html and self.text else None
        return alike or self.short_digest

    def given_trace(self, facts: PageFacts) -> Trace | None:
        """Return the trace of the last delivered content; None if this content cannot be compared to it."""
        last = facts.pending_fingerprint or facts.fingerprint
        if self.seen is None or last is None or facts.recipe != self.fingerprint.recipe:
            return None
        return Trace.unpacked(facts.block_sketch)


def read_content(
    body: Body, recipe: Recipe, *, before: bytes | None = None, text_bytes: int = 0, address: str | None = None,
    given: bytes = b"", first: Content | None = None,
) -> Content:  # fmt: skip
    r"""Read a response. If the content has the digest `before`, the result has no text and no sketch.

    `text_bytes` limits the size of the compressed text (0: no text). `address` is the page's address if this is not its
    URL. The content is compared to earlier contents. `given` is the packed trace of the content that was delivered
    last, and `first` is the first of two fetches. The differences are cached, so the verdict takes no time for them.

    Examples
    --------
    >>> content = read_content(Body(b"<p>Tea<p>Milk", "text/html", None, "http://a/"), Recipe("blocks"))
    >>> content.text, len(content.seen.trace)
    ('Tea\nMilk', 2)
    """
    recipe_id, counts, blocks = recipe.content(body)
    address, fingerprint = address or body.url, Fingerprint.of(recipe_id, counts)
    content = Content(body.url, fingerprint, seen=blocks, is_empty=not counts, address=address)
    if blocks is not None:
        blocks.url = address
    if isinstance(counts, str) and content.fingerprint.digest != before:
        content.text = counts if blocks is None else blocks.text
        content.is_html = content_kind(*body[:3]) == "html"
        content.packed_text = packed(content.text, text_bytes) if text_bytes else None
        _ = content.text_sketch, blocks and blocks.trace  # computed now, since this may be a thread
        for trace in (Trace.unpacked(given), first and first.seen and first.seen.trace):
            if trace is not None and blocks is not None:
                differences(trace, blocks.trace)
    return content


def is_quick(body: Body, recipe: Recipe) -> bool:
    """Whether a body is read within a few milliseconds, and needs no thread; gzip may be far larger when unpacked."""
    return len(body.body) < _QUICK_BELOW and not body.body.startswith(GZIP) and recipe.is_linear


def is_current(recipe_id: str | None, recipe: Recipe) -> bool:
    """Whether a fingerprint with this recipe id can be compared to a fingerprint that is made now."""
    return recipe_id is not None and (recipe_id == recipe.id or recipe_id.startswith(f"{recipe.id}/"))
