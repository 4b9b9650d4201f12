"""Judging: did the content of a page change since it was last seen, by how much, and is it new to the spider?"""

from __future__ import annotations

from typing import NamedTuple

from crawlsched.change_detection import (
    Fingerprint,
    compare,
    extended_history,
    is_flapping,
    n_variants,
    sketch_changed_share,
    sketch_similarity,
)
from crawlsched.content.reading import Before, Content
from crawlsched.store import Outcome, PageFacts

__all__ = ["ChangeSize", "Verdict", "flaps_between", "judged", "kept_of", "rebaselined"]

_DIGEST = 8  # bytes of a digest that the history keeps


class ChangeSize(NamedTuple):
    """How much of a page is another one.

    Attributes
    ----------
    changed_share : float or None
        Share of its blocks that are new or gone; None where the recipe has no blocks.
    similarity : float
        Of its text to the one before: the share of three-word phrases that both have, of all that either has.
    """

    changed_share: float | None
    similarity: float


class Verdict(NamedTuple):
    """What content says about a page.

    Attributes
    ----------
    outcome : Outcome
        CHANGED, UNCHANGED or FLAPPING.
    changed : bool or None
        Whether it changed; None where that cannot be told: nothing is learned then.
    is_new : bool
        Whether it goes to the spider.
    facts : PageFacts or None
        What is to be kept of the content; None where there is none.
    size : ChangeSize or None
        How much is another one, where something is and that is known.
    returned : bool
        Whether it changed back to a content that the page had before.
    """

    outcome: Outcome
    changed: bool | None
    is_new: bool = False
    facts: PageFacts | None = None
    size: ChangeSize | None = None
    returned: bool = False


def judged(facts: PageFacts, content: Content, validators: tuple[str | None, str | None], min_change: float) -> Verdict:
    """Judge the content of a page.

    Parameters
    ----------
    facts : PageFacts
        What was kept of the content that was last seen.
    content : Content
        What is seen now.
    validators : tuple of (str or None)
        Its ETag and Last-Modified.
    min_change : float
        A change of which 1 - similarity is less counts as none. What was kept stays then, so that small changes add
        up until together they count.

    Returns
    -------
    Verdict
    """
    last_seen = facts.pending_fingerprint or facts.fingerprint
    previous = Fingerprint(facts.recipe, last_seen) if last_seen and facts.recipe else None
    changed = compare(previous, content.fingerprint)
    if changed is None and previous is not None:
        changed = content.differs
    is_template_edit = content.is_template_edit and previous is not None
    if is_template_edit:
        changed = False
    is_owed = facts.pending_fingerprint is not None
    facts = facts._replace(etag=validators[0], last_modified=validators[1])
    if not changed:
        # Another recipe says nothing about the page: its new fingerprint is kept, and the spider is left alone.
        is_new = is_owed or previous is None
        outcome = Outcome.CHANGED if is_new else Outcome.UNCHANGED
        kept = facts if content.fingerprint == previous else _with(facts, content, [])
        size = _size(facts, content) if is_template_edit else None
        return Verdict(outcome, changed, is_new, _owed(kept, content, is_new), size)
    size = _size(facts, content)
    history = _history(facts) if previous is not None and previous.recipe == content.fingerprint.recipe else []
    digest = content.fingerprint.digest[:_DIGEST]
    if is_flapping(history, digest) and not is_owed:
        return Verdict(Outcome.FLAPPING, False, False, _owed(_with(facts, content, history), content, False), size)
    if size is not None and 1.0 - size.similarity < min_change and not is_owed:
        return Verdict(Outcome.UNCHANGED, False, False, facts, size)
    kept = _owed(_with(facts, content, history), content, True)
    return Verdict(Outcome.CHANGED, True, True, kept, size, digest in history)


def rebaselined(facts: PageFacts, content: Content, validators: tuple[str | None, str | None]) -> PageFacts:
    """Return what is kept of a page whose content is now seen by another recipe, and is the same as a moment ago."""
    facts = facts._replace(etag=validators[0], last_modified=validators[1])
    return _owed(_with(facts, content, []), content, facts.pending_fingerprint is not None)


def kept_of(facts: PageFacts) -> Before | None:
    """Return what of a page's facts a response is read with."""
    last_seen = facts.pending_fingerprint or facts.fingerprint
    return Before(facts.recipe, last_seen, facts.block_sketch) if facts.recipe and last_seen else None


def flaps_between(facts: PageFacts) -> int:
    """Return between how many contents a page goes back and forth; 0 if it does not."""
    return n_variants(_history(facts))


def _owed(facts: PageFacts, content: Content, is_new: bool) -> PageFacts:
    recipe, digest = content.fingerprint
    if is_new:  # not delivered yet: the fingerprint that counts is written when callback and pipelines have finished
        return facts._replace(recipe=recipe, pending_fingerprint=digest)
    return facts._replace(recipe=recipe, fingerprint=digest)


def _with(facts: PageFacts, content: Content, history: list[bytes]) -> PageFacts:
    """Return facts with the traces of new content."""
    digests = extended_history(history, content.fingerprint.digest[:_DIGEST])
    return facts._replace(history=b"".join(digests), text_sketch=content.text_sketch, block_sketch=content.block_sketch)


def _history(facts: PageFacts) -> list[bytes]:
    return [facts.history[start : start + _DIGEST] for start in range(0, len(facts.history), _DIGEST)]


def _size(facts: PageFacts, content: Content) -> ChangeSize | None:
    if not facts.text_sketch or not content.text_sketch:
        return None
    similarity = sketch_similarity(facts.text_sketch, content.text_sketch)
    if not facts.block_sketch or not content.block_sketch:
        return ChangeSize(None, similarity)
    return ChangeSize(sketch_changed_share(facts.block_sketch, content.block_sketch), similarity)
