"""The verdict on a visit, as a function of plain values; `crawl.responses` carries it out."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from crawlsched.change_detection.detector import Finding
from crawlsched.change_detection.fingerprint import sketch_similarity
from crawlsched.change_detection.limits import OF_A_PAGE
from crawlsched.content.reading import Content
from crawlsched.pages.marks import SHOWN
from crawlsched.store import Outcome, PageFacts

__all__ = ["Circumstances", "DeliveryKind", "Refetch", "Size", "Verdict", "judge", "judge_cut_short", "judge_status"]

#: How much a page has changed. The first number is the share of its blocks that are new or removed (None if the recipe
#: has no blocks). The second number is the share of all three-word phrases that both texts have in common. Both numbers
#: are None if the texts cannot be compared.
Size = tuple[float | None, float | None]
#: ETag and Last-Modified of a response.
Validators = tuple[str | None, str | None]

# If a recipe has no blocks, any other content is a change.
_ANY_OTHER = Finding(True, True, "page", changed_share=None)
_OUTCOMES = {
    **dict.fromkeys((404, 410), Outcome.GONE),
    **dict.fromkeys((401, 403, 407, 451), Outcome.REFUSED),
    **dict.fromkeys((301, 308), Outcome.MOVED),  # redirects are not followed in this project
}


class DeliveryKind(StrEnum):
    """How a response is given to the spider."""

    #: It is delivered as new or changed content.
    CHANGED = "changed"
    #: It is delivered as unchanged content, which was requested.
    UNCHANGED = "unchanged"
    #: It is not delivered, since a delivery of the same content has begun already.
    UNDER_WAY = "under way"
    #: It is delivered as by plain Scrapy, since there was no content to judge.
    AS_SERVED = "as served"
    #: It is not delivered.
    NONE = "none"


class Refetch(StrEnum):
    """A further fetch that is needed before a visit can be judged."""

    PAGE = "page"
    #: A page that cannot exist, to see whether the host answers with the same content.
    IMPOSSIBLE_PAGE = "impossible page"


class Verdict(NamedTuple):
    """The result of a visit.

    Attributes
    ----------
    reason : str
        Why content does not count as changed although something differs: "noise", "template", "flapping",
        "minimum_change", "recipe", "wrong_page", "truncated"; "" otherwise.
    """

    outcome: Outcome  # how the visit ended
    changed: bool | None = None  # whether the page changed, for its change rate; None if the visit does not show it
    deliver: DeliveryKind = DeliveryKind.NONE  # how the response is given to the spider
    reason: str = ""
    refetch: Refetch | None = None  # the fetch that is needed before the visit can be judged
    kind: str = ""  # the kind of news for the spider: "first", "page", "template", "data", "returned"; "" without news
    facts: PageFacts | None = None  # the facts about the content that are stored; None: nothing is stored
    size: Size = (None, None)  # how much changed
    ignored: tuple[str, ...] = ()  # the differences that were left out, and why
    owed: int = 0  # the marks that require the delivery

    @property
    def is_delivered(self) -> bool:
        """Whether a delivery of the page begins."""
        return self.deliver in (DeliveryKind.CHANGED, DeliveryKind.UNCHANGED)


class Circumstances(NamedTuple):
    """The facts on which a verdict depends, besides the page's old and new content.

    Attributes
    ----------
    suspicion : Outcome.WRONG, Refetch or None
        For a page that has lost nearly all of its text. WRONG: the host is known to serve the new content instead of
        pages. A Refetch: only a further fetch can show whether the content is wrong.
    min_change : float
        A change does not count if 1 - similarity is smaller than this. The stored content then stays the same, so that
        many small changes together count.
    """

    finding: Finding | None = None  # the detector's finding; None where the recipe has no blocks
    first: Content | None = None  # the content of the first fetch, if this is the second fetch of a visit
    fetches_differ: bool = False  # whether the first and the second fetch differ by more than noise
    suspicion: Outcome | Refetch | None = None
    # Whether a second fetch of the page is allowed; a page that cannot exist may always be requested.
    may_refetch: bool = False
    confirms_return: bool = True  # whether a second fetch is needed if the page shows former content
    knows_template: bool = True  # False: a second fetch is needed whenever the page looks changed
    min_change: float = 0.0
    owed: int = 0  # the marks that require a delivery even of unchanged content
    withhold: Collection[str] = ()  # the reasons for which a delivery may be withheld
    delivers_unchanged: bool = False  # whether the spider also gets unchanged content
    under_way: Collection[bytes | None] = ()  # the digests of the contents in the page's open deliveries
    owed_under_way: int = 0  # the marks that required the open deliveries


def judge_status(status: int, *, is_known: bool = False, is_believed: bool = False) -> Verdict:
    """Judge a response without content.

    A 304 counts if the page's content was read before (`is_known`), and if the validators in its request may be
    reliable (`is_believed`).

    Examples
    --------
    >>> judge_status(404).outcome, judge_status(304, is_known=True, is_believed=True).changed
    (<Outcome.GONE: 'gone'>, False)
    """
    if status == 304:
        return Verdict(Outcome.NOT_MODIFIED, False if is_known and is_believed else None)
    return Verdict(_OUTCOMES.get(status, Outcome.ERROR), deliver=DeliveryKind.AS_SERVED)


def judge_cut_short(facts: PageFacts, around: Circumstances, *, is_again: bool) -> Verdict:
    """Judge a body that was cut short: it is no evidence of a change.

    The spider gets such a body once if the page was never delivered, or if a mark requires a delivery.
    """
    is_first = facts.fingerprint is None and facts.pending_fingerprint is None and not is_again
    if not (is_first or around.owed or around.delivers_unchanged):
        return Verdict(Outcome.ERROR, reason="truncated")
    as_what = DeliveryKind.CHANGED if facts.fingerprint is None else DeliveryKind.UNCHANGED
    return _unless_under_way(Verdict(Outcome.ERROR, deliver=as_what, owed=around.owed), facts, around)


def judge(facts: PageFacts, content: Content, validators: Validators, around: Circumstances) -> Verdict:
    """Judge content by comparison with the stored facts; `validators` are ETag and Last-Modified."""
    verdict = _of_content(facts, content, validators, around)
    if verdict.outcome in (Outcome.WRONG, Outcome.PROBED):
        return verdict
    owed = around.owed
    if verdict.reason and not owed and verdict.reason not in around.withhold:
        owed = SHOWN
    if not (verdict.kind or owed or around.delivers_unchanged):
        return verdict
    as_what = DeliveryKind.CHANGED if verdict.kind else DeliveryKind.UNCHANGED
    return _unless_under_way(verdict._replace(deliver=as_what, owed=owed), verdict.facts or facts, around)


def _unless_under_way(verdict: Verdict, facts: PageFacts, around: Circumstances) -> Verdict:
    digest = facts.pending_fingerprint or facts.fingerprint
    is_under_way = around.under_way if digest is None else digest in around.under_way
    if is_under_way and not verdict.owed & ~around.owed_under_way:
        return verdict._replace(deliver=DeliveryKind.UNDER_WAY)
    return verdict


def _of_content(facts: PageFacts, content: Content, validators: Validators, around: Circumstances) -> Verdict:
    finding, first = around.finding or _ANY_OTHER, around.first
    last = facts.pending_fingerprint or facts.fingerprint
    facts_now = facts._replace(etag=validators[0], last_modified=validators[1])
    is_owed = facts.pending_fingerprint is not None
    if last is None or facts.recipe is None:
        return _told(facts_now, content, None, "first", [])
    if around.suspicion is Outcome.WRONG:
        return Verdict(Outcome.WRONG, reason="wrong_page")
    if facts.recipe != content.fingerprint.recipe:  # no comparison is possible, and the new fingerprint is stored
        if is_owed:
            return _told(facts_now, content, None, "page", [])
        return _withheld(_kept(facts_now, content, []), None, "recipe")
    if last == content.fingerprint.digest or not finding.is_news:
        if is_owed:
            return _told(facts_now, content, False, "page", facts.past_digests)
        reason = finding.reason
        if not reason and first is not None and first.short_digest in facts.past_digests[:-1]:
            reason = "flapping"  # the first fetch had earlier content, and the second fetch had the last content
        kept = _kept(facts_now, content, facts.past_digests) if reason == "template" else facts_now
        size = _size(facts, content, finding) if reason else (None, None)
        return _withheld(kept, False, reason, finding.ignored, size)
    returned = content.short_digest in facts.past_digests
    is_in_doubt = finding.is_suspect or not around.knows_template or (returned and around.confirms_return)
    if first is None and around.suspicion is Refetch.IMPOSSIBLE_PAGE:
        return Verdict(Outcome.PROBED, refetch=Refetch.IMPOSSIBLE_PAGE)
    needs_look = around.suspicion is Refetch.PAGE or (is_in_doubt and not is_owed)
    if first is None and around.may_refetch and needs_look:
        return Verdict(Outcome.PROBED, refetch=Refetch.PAGE)
    size = _size(facts, content, finding)
    if returned and first is not None and not is_owed and around.fetches_differ:
        return _withheld(facts_now, False, "flapping", finding.ignored, size)
    if size[1] is not None and 1.0 - size[1] < around.min_change and not is_owed:
        return _withheld(facts_now, False, "minimum_change", finding.ignored, size)
    kind = "returned" if returned and finding.is_change else finding.kind
    told = _told(facts_now, content, finding.is_change, kind, facts.past_digests)
    return told._replace(size=size, ignored=finding.ignored)


def _told(facts: PageFacts, content: Content, changed: bool | None, kind: str, history: list[bytes]) -> Verdict:
    kept = _kept(facts, content, history)
    # The content is not delivered yet. `fingerprint` is written when callback and pipelines have finished.
    kept = kept._replace(fingerprint=facts.fingerprint, pending_fingerprint=content.fingerprint.digest)
    outcome = Outcome.CHANGED if changed is not False or kind == "page" else Outcome.UNCHANGED
    return Verdict(outcome, changed, kind=kind, facts=kept)


def _withheld(
    facts: PageFacts, changed: bool | None, reason: str, ignored: tuple[str, ...] = (), size: Size = (None, None)
) -> Verdict:
    outcome = Outcome.FLAPPING if reason == "flapping" else Outcome.UNCHANGED
    return Verdict(outcome, changed, reason=reason, facts=facts, size=size, ignored=ignored)


def _kept(facts: PageFacts, content: Content, history: list[bytes]) -> PageFacts:
    """Return facts with the digests, sketch and trace of new content."""
    digest = content.short_digest
    digests = [*(known for known in history if known != digest), digest][-OF_A_PAGE:]
    return facts._replace(
        recipe=content.fingerprint.recipe,
        fingerprint=content.fingerprint.digest,
        history=b"".join(digests),
        text_sketch=content.text_sketch or (facts.text_sketch if content.text is None else b""),
        block_sketch=b"" if content.seen is None else content.seen.trace.packed(),
    )


def _size(facts: PageFacts, content: Content, finding: Finding) -> Size:
    if not facts.text_sketch or not content.text_sketch:
        return None, None
    return finding.changed_share, sketch_similarity(facts.text_sketch, content.text_sketch)
