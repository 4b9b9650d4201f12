"""Reading a response: from its bytes to what of them counts; runs in a thread where the body is large."""

from __future__ import annotations

from typing import NamedTuple

from crawlsched.change_detection import (
    Fingerprint,
    LivingBlocks,
    NoiseMask,
    PageBlocks,
    RawBytes,
    Recipe,
    VisibleText,
    block_sketch,
    has_new_block,
    sketch,
)
from crawlsched.change_detection.content_kind import content_kind
from crawlsched.kept_texts import packed
from crawlsched.noise import NoiseMasks

__all__ = ["Before", "Body", "Content", "is_current", "is_quick", "read_content"]

# Bodies larger than this are read in a thread, so that the slot clock is not held up; below it the hand-over to a
# thread costs more than the work.
_QUICK_BELOW = 16_384
# Of a longer text the beginning is measured.
_SKETCHED = 1_000_000


class Body(NamedTuple):
    """What a recipe is given."""

    body: bytes
    content_type: str | None
    encoding: str | None
    url: str


class Before(NamedTuple):
    """What was kept of the content that was seen last."""

    recipe: str
    digest: bytes
    block_sketch: bytes


class Content(NamedTuple):
    """What of a body counts.

    Attributes
    ----------
    url : str
        By which it was read.
    fingerprint : Fingerprint
    text : str or None
        What counts, a line for each block; None where bytes do, or the content is the same as before.
    text_sketch, block_sketch : bytes
        From which the size of a change can be estimated; empty where there is no text.
    template : str or None
        The template whose noise mask was used; None where the recipe has none.
    mask : NoiseMask or None
        The mask.
    blocks : PageBlocks or None
        From which a mask can learn.
    is_html : bool
        Whether it is a page for people.
    is_surprised : bool or None
        Whether this was the second fetch of a probe, and found noise that was not known; None if it was none.
    differs : bool or None
        Whether it is other content than before, which was seen by other rules; None if that cannot be told.
    packed_text : bytes or None
        The text, compressed, where it is to be kept.
    """

    url: str
    fingerprint: Fingerprint
    text: str | None
    text_sketch: bytes = b""
    block_sketch: bytes = b""
    template: str | None = None
    mask: NoiseMask | None = None
    blocks: PageBlocks | None = None
    is_html: bool = False
    is_surprised: bool | None = None
    differs: bool | None = None
    packed_text: bytes | None = None


def read_content(
    body: Body,
    recipe: Recipe,
    masks: NoiseMasks,
    *,
    before: Before | None = None,
    first: PageBlocks | None = None,
    text_bytes: int = 0,
) -> Content:
    """Read a response.

    Parameters
    ----------
    body : Body
    recipe : Recipe
    masks : NoiseMasks
        Learns, if this is the second fetch of a probe.
    before : Before, optional
        What was kept of the content that was seen last; of the same content no text and no sketches are made.
    first : PageBlocks, optional
        What the first fetch of a probe gave.
    text_bytes : int, default 0
        Compress the text to at most so many bytes; 0: not at all.

    Returns
    -------
    Content
    """
    content = _read(body, recipe, masks, before, first)
    if not text_bytes or content.text is None:
        return content
    return content._replace(packed_text=packed(content.text, text_bytes))


def _read(body: Body, recipe: Recipe, masks: NoiseMasks, before: Before | None, first: PageBlocks | None) -> Content:
    if isinstance(recipe, LivingBlocks):
        blocks = recipe.blocks(*body[:3])
        if blocks is not None:
            return _living(recipe, blocks, masks, body.url, before, first)
    is_html = not isinstance(recipe, LivingBlocks) and content_kind(*body[:3]) == "html"
    recipe_id, content = recipe.content(*body)
    fingerprint = Fingerprint.of(recipe_id, content)
    if isinstance(content, bytes) or (before is not None and fingerprint.digest == before.digest):
        return Content(body.url, fingerprint, None, is_html=is_html)
    return Content(body.url, fingerprint, content, sketch(content[:_SKETCHED]), is_html=is_html)


def _living(
    recipe: LivingBlocks,
    blocks: PageBlocks,
    masks: NoiseMasks,
    url: str,
    before: Before | None,
    first: PageBlocks | None,
) -> Content:
    template, mask = masks.of(url)
    is_surprised = None
    if first is not None:
        mask, is_surprised = masks.learn(template, [first, blocks])
    fingerprint = Fingerprint.of(recipe.id_with(mask), mask.living(blocks))
    if before is not None and fingerprint.digest == before.digest:
        return Content(url, fingerprint, None, b"", b"", template, mask, blocks, True, is_surprised)
    differs = None if before is None else _differs(recipe, blocks, masks, template, mask, before)
    texts = mask.living_texts(blocks)
    text = "\n".join(texts)
    return Content(
        url,
        fingerprint,
        text,
        sketch(text),
        block_sketch(texts),
        template,
        mask,
        blocks,
        True,
        is_surprised,
        differs,
    )


def _differs(
    recipe: LivingBlocks, blocks: PageBlocks, masks: NoiseMasks, template: str, mask: NoiseMask, before: Before
) -> bool | None:
    """Compare a page to what was kept of it when its template's mask was another one.

    By the rules of that time it may be the same; and a block of which neither mask ignores anything may be new.
    """
    if before.recipe == recipe.id_with(mask) or not before.recipe.startswith(recipe.id):
        return None
    rules_id = before.recipe.removeprefix(recipe.id).removeprefix("/")
    earlier = masks.earlier(template, rules_id) if rules_id else NoiseMask()
    if earlier is None or recipe.id_with(earlier) != before.recipe:
        return None
    if Fingerprint.of(before.recipe, earlier.living(blocks)).digest == before.digest:
        return False
    whole = (text for key, text in blocks.texts.items() if mask.is_whole(blocks, key) and earlier.is_whole(blocks, key))
    return True if before.block_sketch and has_new_block(before.block_sketch, whole) else None


def is_quick(body: Body, recipe: Recipe) -> bool:
    """Whether a body is read within a few milliseconds, so that no thread is needed."""
    # Parsers, extraction libraries and functions of the user's may take long even for little.
    return len(body.body) < _QUICK_BELOW and isinstance(recipe, LivingBlocks | VisibleText | RawBytes)


def is_current(recipe_id: str | None, recipe: Recipe, masks: NoiseMasks, url: str) -> bool:
    """Whether a fingerprint with this id can be compared to one that is made now."""
    if recipe_id is None:
        return False
    if isinstance(recipe, LivingBlocks):
        return recipe_id in (recipe.id, recipe.id_with(masks.of(url)[1]))
    return recipe_id == recipe.id or recipe_id.startswith(f"{recipe.id}/")
