"""A verdict is decided from values alone: what was kept, what is seen, what the detector and a suspicion say."""

from typing import Any

import pytest

from crawlsched.change_detection import Recipe
from crawlsched.change_detection.detector import Finding
from crawlsched.content.reading import Body, Content, read_content
from crawlsched.content.verdict import (
    Circumstances,
    DeliveryKind,
    Refetch,
    Verdict,
    judge,
    judge_cut_short,
    judge_status,
)
from crawlsched.crawl.withheld import REASONS
from crawlsched.pages.marks import RECRAWL
from crawlsched.store import Outcome, PageFacts

NEW = PageFacts(1, "http://a/b", None, None, None, None, None, None, None, 0, None, 1)
NEWS, FIRST, QUIET = Finding(True, True, "page"), Finding(True, False, "first"), Finding(False, False, "")


def content(markup: str, by: Recipe | None = None) -> Content:
    return read_content(Body(markup.encode(), "text/html", "utf-8", "http://a/b"), by or Recipe("blocks"))


def delivered(verdict: Verdict) -> PageFacts:
    assert verdict.facts is not None
    return verdict.facts._replace(fingerprint=verdict.facts.pending_fingerprint, pending_fingerprint=None)


ALL = frozenset(REASONS)


def judged(facts: PageFacts, seen: Content, finding: Finding | None, **around: Any) -> Verdict:
    return judge(facts, seen, (None, None), Circumstances(finding, **{"withhold": ALL, **around}))


def kept(*markups: str) -> PageFacts:
    """Facts of a page of which these were delivered, one after the other."""
    facts = NEW
    for markup in markups:
        facts = delivered(judged(facts, content(markup), NEWS))
    return facts


TEA, MILK = "<p>Tea for two, and a cup more of it</p>", "<p>Milk for two, and a cup more of it</p>"


@pytest.mark.parametrize(
    ("facts", "markup", "finding", "arguments", "expected"),
    [
        (NEW, TEA, FIRST, {}, ("changed", "changed", None, "first", "")),
        (NEW, TEA, FIRST, {"suspicion": Outcome.WRONG}, ("changed", "changed", None, "first", "")),
        (kept(TEA), TEA, Finding(False, False, ""), {}, ("unchanged", "none", False, "", "")),
        (kept(TEA), MILK, NEWS, {}, ("changed", "changed", True, "page", "")),
        (kept(TEA), MILK, Finding(True, True, "data"), {}, ("changed", "changed", True, "data", "")),
        (kept(TEA), MILK, Finding(True, False, "template"), {}, ("unchanged", "changed", False, "template", "")),
        (kept(TEA), MILK, QUIET._replace(reason="template"), {}, ("unchanged", "none", False, "", "template")),
        (kept(TEA), MILK, QUIET._replace(reason="noise"), {}, ("unchanged", "none", False, "", "noise")),
        (kept(TEA), MILK, NEWS, {"min_change": 0.9}, ("unchanged", "none", False, "", "minimum_change")),
        (kept(TEA), MILK, NEWS, {"suspicion": Outcome.WRONG}, ("wrong", "none", None, "", "wrong_page")),
        (kept(TEA, MILK), TEA, NEWS, {}, ("changed", "changed", True, "returned", "")),
        (kept(TEA, MILK), TEA, NEWS, {"first": content(TEA)}, ("changed", "changed", True, "returned", "")),
        (kept(TEA, MILK), TEA, NEWS, {"first": content("<p>"), "fetches_differ": True},
         ("flapping", "none", False, "", "flapping")),
        (kept(TEA, MILK), MILK, Finding(False, False, ""), {"first": content(TEA)},
         ("flapping", "none", False, "", "flapping")),
    ],
)  # fmt: skip
def test_what_a_visit_means(
    facts: PageFacts, markup: str, finding: Finding, arguments: dict[str, object], expected: tuple[object, ...]
) -> None:
    """Outcome, what the spider gets, what is learned, of what kind the news is, and why nothing is told."""
    verdict = judged(facts, content(markup), finding, **arguments)
    assert (verdict.outcome, verdict.deliver, verdict.changed, verdict.kind, verdict.reason) == expected
    assert bool(verdict.kind) == (verdict.deliver is DeliveryKind.CHANGED)


@pytest.mark.parametrize(
    ("finding", "suspicion", "facts", "fetched"),
    [
        (NEWS, None, kept(TEA), None),
        (Finding(True, True, "page", is_suspect=True), None, kept(TEA), Refetch.PAGE),
        (NEWS, Refetch.PAGE, kept(TEA), Refetch.PAGE),
        (NEWS, Refetch.IMPOSSIBLE_PAGE, kept(TEA), Refetch.IMPOSSIBLE_PAGE),
        (NEWS, None, kept(MILK, TEA), Refetch.PAGE),
    ],
)
def test_what_is_fetched_before_a_visit_is_judged(
    finding: Finding, suspicion: Refetch | None, facts: PageFacts, fetched: Refetch | None
) -> None:
    """A second time where noise, an earlier content or another page may have made it look so; not more than once."""
    verdict = judged(facts, content(MILK), finding, suspicion=suspicion, may_refetch=True)
    assert verdict.refetch is fetched
    assert (verdict.outcome is Outcome.PROBED) == (fetched is not None)
    again = judged(facts, content(MILK), finding, suspicion=suspicion, first=content(MILK), may_refetch=True)
    assert (again.refetch, again.deliver) == (None, DeliveryKind.CHANGED)


def test_another_recipe_takes_a_new_baseline() -> None:
    """Nothing is told and nothing learned, and the next change is seen; what was owed is delivered all the same."""
    facts = kept(TEA)
    raw = content(MILK, Recipe("raw_bytes"))
    verdict = judged(facts, raw, None)
    assert (verdict.changed, verdict.deliver, verdict.reason) == (None, DeliveryKind.NONE, "recipe")
    assert verdict.facts is not None
    assert judged(verdict.facts, content(TEA, Recipe("raw_bytes")), None).changed is True
    owed = facts._replace(pending_fingerprint=facts.fingerprint)
    assert judged(owed, raw, None).deliver is DeliveryKind.CHANGED


def test_a_page_is_compared_with_what_was_given_last() -> None:
    """Also before its callbacks are over; not where nothing was given, or where it was read in another way."""
    told = judged(kept(MILK), content(TEA), NEWS).facts
    assert told is not None
    trace = content(MILK).given_trace(told)
    assert trace is not None
    assert trace.texts == [TEA.removeprefix("<p>").removesuffix("</p>")]
    assert content(MILK).given_trace(NEW) is None
    assert content(MILK, Recipe("raw_bytes")).given_trace(told) is None


def test_what_noise_hides_is_told_once_it_is_none() -> None:
    """What is kept of a page is what its reader was given: a rule that is dropped hides nothing for good."""
    facts = kept(TEA)
    hidden = judged(facts, content(MILK), Finding(False, False, "", reason="noise"))
    assert hidden.facts is not None
    assert hidden.facts.fingerprint == facts.fingerprint
    assert judged(hidden.facts, content(MILK), NEWS).deliver is DeliveryKind.CHANGED


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        ({}, DeliveryKind.NONE),
        ({"owed": RECRAWL}, DeliveryKind.UNCHANGED),
        ({"delivers_unchanged": True}, DeliveryKind.UNCHANGED),
        ({"withhold": ALL - {"noise"}}, DeliveryKind.UNCHANGED),
        ({"owed": RECRAWL, "under_way": [kept(TEA).fingerprint], "owed_under_way": RECRAWL}, DeliveryKind.UNDER_WAY),
        ({"owed": RECRAWL, "under_way": [kept(TEA).fingerprint]}, DeliveryKind.UNCHANGED),
        ({"owed": RECRAWL, "under_way": [b"another"], "owed_under_way": RECRAWL}, DeliveryKind.UNCHANGED),
    ],
)
def test_what_is_not_news_is_delivered_where_somebody_asked_for_it(
    around: dict[str, Any], expected: DeliveryKind
) -> None:
    """By a mark, by a setting, or since this reason may hold nothing back; not twice at once for the same marks."""
    verdict = judged(kept(TEA), content(MILK), QUIET._replace(reason="noise"), **around)
    assert verdict.deliver is expected


def test_a_body_that_was_cut_short_goes_to_the_spider_once() -> None:
    """It may be all that there is of a page; where one was delivered before, that stays."""
    assert judge_cut_short(NEW, Circumstances(), is_again=False).deliver is DeliveryKind.CHANGED
    assert judge_cut_short(NEW, Circumstances(), is_again=True).reason == "truncated"
    assert judge_cut_short(kept(TEA), Circumstances(), is_again=False).reason == "truncated"
    assert judge_cut_short(kept(TEA), Circumstances(owed=RECRAWL), is_again=False).deliver is DeliveryKind.UNCHANGED


@pytest.mark.parametrize(
    ("status", "outcome"), [(404, "gone"), (410, "gone"), (403, "refused"), (308, "moved"), (500, "error")]
)
def test_a_response_without_content_goes_to_the_spider_as_it_is(status: int, outcome: str) -> None:
    """Nothing is learned of how often the page changes."""
    verdict = judge_status(status)
    assert (verdict.outcome, verdict.changed, verdict.deliver) == (outcome, None, DeliveryKind.AS_SERVED)
