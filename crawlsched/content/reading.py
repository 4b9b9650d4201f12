"""Reading a response: from its bytes to what of them counts; runs in a thread where the body is large."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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
    is_same,
    likeness,
    sketch,
)
from crawlsched.change_detection.content_kind import content_kind
from crawlsched.content.kept_texts import packed
from crawlsched.content.noise_masks import NoiseMasks
from crawlsched.content.site_templates import SeenPage, Sites

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
        Whether it is other content than before, as far as fingerprints alone do not tell: because that was seen by
        other rules, or is the same in other markup; None if that cannot be told.
    packed_text : bytes or None
        The text, compressed, where it is to be kept.
    is_template_edit : bool
        Whether it is other content than before by edits alone that the site makes on all pages of the template.
    likeness : bytes
        What it has in common with pages that are made by one sentence: 8 bytes, see `change_detection.likeness`.
    may_be_template_edit : bool
        Whether that is open: no other page of the template has been seen since.
    site : (str, mapping) or None
        Name and data of its site, where something was learned of it that is to be written down.
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
    is_template_edit: bool = False
    may_be_template_edit: bool = False
    likeness: bytes = b""
    site: tuple[str, Mapping[str, Any]] | None = None


def read_content(
    body: Body,
    recipe: Recipe,
    masks: NoiseMasks,
    *,
    before: Before | None = None,
    first: PageBlocks | None = None,
    text_bytes: int = 0,
    sites: Sites | None = None,
    address: str | None = None,
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
    sites : Sites, optional
        Tell edits of the page from those of its template; None: all count.
    address : str, optional
        What the page is called by, where that is not the URL by which it is read.

    Returns
    -------
    Content
    """
    content = _read(body, recipe, masks, before, first, sites)
    text = content.text
    if content.is_html and text is None and content.blocks is not None and content.mask is not None:
        text = "\n".join(content.mask.living_texts(content.blocks))
    alike = likeness(text, address or body.url) if content.is_html and text else None
    content = content._replace(likeness=alike or content.fingerprint.digest[:8])
    if not text_bytes or content.text is None:
        return content
    return content._replace(packed_text=packed(content.text, text_bytes))


def _read(
    body: Body,
    recipe: Recipe,
    masks: NoiseMasks,
    before: Before | None,
    first: PageBlocks | None,
    sites: Sites | None,
) -> Content:
    if isinstance(recipe, LivingBlocks):
        blocks = recipe.blocks(*body[:3])
        if blocks is not None:
            read = _living(recipe, blocks, masks, body.url, before, first)
            if sites is None or recipe.template_edits or not blocks.texts:
                return read
            return _by_template(read, recipe, blocks, masks, before, sites)
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
    fingerprint = mask.fingerprint(recipe.id_with(mask), blocks)
    if before is not None and fingerprint.digest == before.digest:
        return Content(url, fingerprint, None, b"", b"", template, mask, blocks, True, is_surprised)
    differs = None
    if before is not None:
        is_as_before = is_same(before.digest, fingerprint.digest)
        differs = False if is_as_before else _differs(recipe, blocks, masks, template, mask, before)
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


def _by_template(
    content: Content,
    recipe: LivingBlocks,
    blocks: PageBlocks,
    masks: NoiseMasks,
    before: Before | None,
    sites: Sites,
) -> Content:
    """Tell edits of the page from those of its template."""
    assert content.template is not None
    assert content.mask is not None
    page = SeenPage(content.url, content.template, recipe, blocks)
    earlier = None if before is None else _mask_of(recipe, masks, content.template, content.mask, before)
    if before is None or earlier is None or content.text is None or content.differs is False:
        is_first = before is None or earlier is None
        data = sites.saw(page, is_first=is_first)
    else:
        is_edit, data = sites.explains(page, earlier, *before)
        content = content._replace(is_template_edit=is_edit is True, may_be_template_edit=is_edit is None)
    return content if data is None else content._replace(site=(page.site, data))


def _mask_of(
    recipe: LivingBlocks, masks: NoiseMasks, template: str, mask: NoiseMask, before: Before
) -> NoiseMask | None:
    """Return the mask with which a page was seen last; None if that is too long ago."""
    if before.recipe == recipe.id_with(mask):
        return mask
    if not before.recipe.startswith(recipe.id):
        return None
    rules_id = before.recipe.removeprefix(recipe.id).removeprefix("/")
    earlier = masks.earlier(template, rules_id) if rules_id else NoiseMask()
    return None if earlier is None or recipe.id_with(earlier) != before.recipe else earlier


def _differs(
    recipe: LivingBlocks, blocks: PageBlocks, masks: NoiseMasks, template: str, mask: NoiseMask, before: Before
) -> bool | None:
    """Compare a page to what was kept of it when its template's mask was another one.

    By the rules of that time it may be the same; and a block of which neither mask ignores anything may be new.
    """
    if before.recipe == recipe.id_with(mask):
        return None
    earlier = _mask_of(recipe, masks, template, mask, before)
    if earlier is None:
        return None
    if is_same(before.digest, earlier.fingerprint(before.recipe, blocks).digest):
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
