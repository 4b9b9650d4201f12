"""A ruling: what a visit means, decided from values alone; `responses` carries it out, in one place."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from crawlsched.change_detection import (
    Finding,
    Fingerprint,
    Trace,
    are_comparable,
    compare,
    is_cut,
    sketch_similarity,
)
from crawlsched.content.reading import Content
from crawlsched.store import Outcome, PageFacts

__all__ = ["Ask", "ChangeSize", "ForSpider", "Ruling", "Suspicion", "given_trace", "is_new", "ruling"]

_DIGEST = 8  # bytes of a digest that the history keeps
_MOST_HISTORY = 8


class ForSpider(StrEnum):
    """What a response with content is to the spider."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    #: The same as before, and the spider is to get it.
    OWED = "owed"
    #: It was for us alone: the page is fetched again at once, or another one was served in its place.
    NOTHING = "nothing"


class Ask(StrEnum):
    """What is fetched before a visit is judged."""

    SECOND = "second"
    IMPOSSIBLE = "impossible"


class Suspicion(StrEnum):
    """What to think of a page's content."""

    NONE = "none"
    #: It has replaced all that the page said: does it a second time?
    REPLACED = "replaced"
    #: The host would have to be asked for a page that cannot exist: does it answer with the same?
    ASK = "ask"
    WRONG = "wrong"


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


class Ruling(NamedTuple):
    """What a visit means.

    Attributes
    ----------
    outcome : Outcome
    for_spider : ForSpider
    changed : bool or None
        What is learned of how often the page changes; None: nothing.
    is_new : bool
        Whether the spider's callback runs.
    kind : str
        Of what is new: "first", "page", "template", "data", "returned"; "" where nothing is.
    reason : str
        Why nothing is told although something differs: "noise", "template", "flapping", "minimum_change", "recipe",
        "wrong_page"; "" otherwise.
    ignored : tuple of str
        What was left out, and why.
    facts : PageFacts or None
        What is to be kept of the content; None where nothing is.
    size : ChangeSize or None
        How much is another one, where something is and that is known.
    ask : Ask or None
        What has to be fetched first; then all else waits.
    accepts : bool
        Whether what the page says is what it says from now on.
    """

    outcome: Outcome
    for_spider: ForSpider
    changed: bool | None = None
    is_new: bool = False
    kind: str = ""
    reason: str = ""
    ignored: tuple[str, ...] = ()
    facts: PageFacts | None = None
    size: ChangeSize | None = None
    ask: Ask | None = None


def given_trace(facts: PageFacts, content: Content) -> Trace | None:
    """Return the trace of what the page's reader was given, if it can be compared with content that is read now."""
    last = facts.pending_fingerprint or facts.fingerprint
    if content.seen is None or last is None or facts.recipe != content.fingerprint.recipe:
        return None
    return Trace.unpacked(facts.block_sketch)


def is_new(facts: PageFacts, content: Content) -> bool:
    """Whether a page has not said the same before, as far as its history goes."""
    return _digest(content) not in _history(facts)


def ruling(
    facts: PageFacts,
    content: Content,
    finding: Finding | None,
    validators: tuple[str | None, str | None],
    suspicion: Suspicion = Suspicion.NONE,
    *,
    first: Content | None = None,
    may_ask: bool = False,
    confirms_return: bool = True,
    knows_template: bool = True,
    min_change: float = 0.0,
) -> Ruling:
    """Decide what a visit means.

    Parameters
    ----------
    facts : PageFacts
        What was kept of the content that was seen last.
    content : Content
        What is seen now.
    finding : Finding or None
        What the detector says of it; None where the recipe has no blocks.
    validators : tuple of (str or None)
        Its ETag and Last-Modified.
    suspicion : Suspicion
        What is thought of it, taken as the page's own.
    first : Content, optional
        What a first fetch gave, if this is the second one of a visit that was put off.
    may_ask : bool, default False
        Whether a second fetch may be asked for; a host is asked for a page that cannot exist all the same.
    confirms_return : bool, default True
        Whether one is asked for where the page says what it said before.
    knows_template : bool, default True
        False: one is asked for wherever the page looks changed.
    min_change : float, default 0
        A change of which 1 - similarity is less counts as none. What was kept stays then, so that small changes add
        up until together they count.

    Returns
    -------
    Ruling
    """
    last = facts.pending_fingerprint or facts.fingerprint
    facts_now = facts
    if validators != (facts.etag, facts.last_modified):
        facts_now = facts._replace(etag=validators[0], last_modified=validators[1])
    is_owed = facts.pending_fingerprint is not None
    if last is None or facts.recipe is None:
        return _told(facts_now, content, None, "first", [])
    if suspicion is Suspicion.WRONG:
        return Ruling(Outcome.WRONG, ForSpider.NOTHING, reason="wrong_page")
    previous = Fingerprint(facts.recipe, last)
    changed = compare(previous, content.fingerprint)
    if changed is None:  # another recipe says nothing about the page: its new fingerprint is kept
        if is_owed:
            return _told(facts_now, content, None, "page", [])
        return _withheld(_kept(facts_now, content, []), None, "recipe")
    if changed and finding is not None and not finding.is_news:
        changed = False
    if not changed:
        if is_owed:
            return _told(facts_now, content, False, "page", _history(facts))
        ignored, reason = (finding.ignored, finding.reason) if finding is not None else ((), "")
        if not reason and first is not None and _digest(first) in _history(facts)[:-1]:
            reason = "flapping"  # what came first was an earlier content, and at once this one came again
        kept = _kept(facts_now, content, _history(facts)) if reason == "template" else facts_now
        return _withheld(kept, False, reason, ignored, _size(facts, content, finding) if reason else None)
    if first is None and (suspicion is Suspicion.ASK or (may_ask and suspicion is Suspicion.REPLACED)):
        ask = Ask.IMPOSSIBLE if suspicion is Suspicion.ASK else Ask.SECOND
        return Ruling(Outcome.PROBED, ForSpider.NOTHING, ask=ask)
    history = _history(facts)
    returned = not is_new(facts, content)
    if (
        may_ask
        and first is None
        and not is_owed
        and (not knows_template or _is_in_doubt(facts, content, finding, returned and confirms_return))
    ):
        return Ruling(Outcome.PROBED, ForSpider.NOTHING, ask=Ask.SECOND)
    size = _size(facts, content, finding)
    ignored = finding.ignored if finding is not None else ()
    if returned and first is not None and not is_owed and first.fingerprint.digest != content.fingerprint.digest:
        return _withheld(facts_now, False, "flapping", ignored, size)
    if size is not None and 1.0 - size.similarity < min_change and not is_owed:
        return _withheld(facts_now, False, "minimum_change", ignored, size)
    of_page = finding is None or finding.is_change
    kind = "returned" if returned and of_page else finding.kind if finding is not None else "page"
    return _told(facts_now, content, of_page, kind, history)._replace(size=size, ignored=ignored)


def _is_in_doubt(facts: PageFacts, content: Content, finding: Finding | None, returned: bool) -> bool:
    """Whether a second fetch at once has to tell."""
    if returned or (finding is not None and finding.is_suspect):
        return True
    given = given_trace(facts, content)
    # A page that ends in the middle was cut, or another one was served.
    return (
        given is not None
        and content.seen is not None
        and (is_cut(content.seen.trace, given) or not are_comparable(given, content.seen.trace))
        and len(given) > 3
    )


def _told(facts: PageFacts, content: Content, changed: bool | None, kind: str, history: list[bytes]) -> Ruling:
    kept = _kept(facts, content, history)
    # Not delivered yet: the fingerprint that counts is written when callback and pipelines have finished.
    kept = kept._replace(fingerprint=facts.fingerprint, pending_fingerprint=content.fingerprint.digest)
    outcome = Outcome.CHANGED if changed is not False or kind == "page" else Outcome.UNCHANGED
    return Ruling(outcome, ForSpider.CHANGED, changed, True, kind, facts=kept)


def _withheld(
    facts: PageFacts,
    changed: bool | None,
    reason: str,
    ignored: tuple[str, ...] = (),
    size: ChangeSize | None = None,
) -> Ruling:
    outcome = Outcome.FLAPPING if reason == "flapping" else Outcome.UNCHANGED
    return Ruling(outcome, ForSpider.UNCHANGED, changed, reason=reason, ignored=ignored, facts=facts, size=size)


def _kept(facts: PageFacts, content: Content, history: list[bytes]) -> PageFacts:
    """Return facts with the traces of new content."""
    digest = _digest(content)
    digests = [*(known for known in history if known != digest), digest][-_MOST_HISTORY:]
    return facts._replace(
        recipe=content.fingerprint.recipe,
        fingerprint=content.fingerprint.digest,
        history=b"".join(digests),
        text_sketch=content.text_sketch or (facts.text_sketch if content.text is None else b""),
        block_sketch=b"" if content.seen is None else content.seen.trace.packed(),
    )


def _digest(content: Content) -> bytes:
    return content.fingerprint.digest[:_DIGEST]


def _history(facts: PageFacts) -> list[bytes]:
    return [facts.history[start : start + _DIGEST] for start in range(0, len(facts.history), _DIGEST)]


def _size(facts: PageFacts, content: Content, finding: Finding | None) -> ChangeSize | None:
    if not facts.text_sketch or not content.text_sketch:
        return None
    similarity = sketch_similarity(facts.text_sketch, content.text_sketch)
    return ChangeSize(None if finding is None else finding.changed_share, similarity)
