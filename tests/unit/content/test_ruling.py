"""A ruling is decided from values alone: what was kept, what is seen, what the detector and a suspicion say."""

from __future__ import annotations

import pytest

from crawlsched.change_detection import Finding, Recipe
from crawlsched.content.reading import Body, Content, read_content
from crawlsched.content.ruling import Ask, ForSpider, Ruling, Suspicion, ruling
from crawlsched.store import Outcome, PageFacts

NEW = PageFacts(1, "http://a/b", None, None, None, None, None, None, None, 0, None, 1)
NEWS, FIRST, QUIET = Finding(True, True, "page"), Finding(True, False, "first"), Finding(False, False, "")


def content(markup: str, by: Recipe | None = None) -> Content:
    return read_content(Body(markup.encode(), "text/html", "utf-8", "http://a/b"), by or Recipe("blocks"))


def delivered(ruled: Ruling) -> PageFacts:
    assert ruled.facts is not None
    return ruled.facts._replace(fingerprint=ruled.facts.pending_fingerprint, pending_fingerprint=None)


def kept(*markups: str) -> PageFacts:
    """Facts of a page of which these were delivered, one after the other."""
    facts = NEW
    for markup in markups:
        facts = delivered(ruling(facts, content(markup), NEWS, (None, None)))
    return facts


TEA, MILK = "<p>Tea for two, and a cup more of it</p>", "<p>Milk for two, and a cup more of it</p>"


@pytest.mark.parametrize(
    ("facts", "markup", "finding", "arguments", "expected"),
    [
        (NEW, TEA, FIRST, {}, ("changed", "changed", None, "first", "")),
        (NEW, TEA, FIRST, {"suspicion": Suspicion.WRONG}, ("changed", "changed", None, "first", "")),
        (kept(TEA), TEA, Finding(False, False, ""), {}, ("unchanged", "unchanged", False, "", "")),
        (kept(TEA), MILK, NEWS, {}, ("changed", "changed", True, "page", "")),
        (kept(TEA), MILK, Finding(True, True, "data"), {}, ("changed", "changed", True, "data", "")),
        (kept(TEA), MILK, Finding(True, False, "template"), {}, ("unchanged", "changed", False, "template", "")),
        (kept(TEA), MILK, QUIET._replace(reason="template"), {}, ("unchanged", "unchanged", False, "", "template")),
        (kept(TEA), MILK, QUIET._replace(reason="noise"), {}, ("unchanged", "unchanged", False, "", "noise")),
        (kept(TEA), MILK, NEWS, {"min_change": 0.9}, ("unchanged", "unchanged", False, "", "minimum_change")),
        (kept(TEA), MILK, NEWS, {"suspicion": Suspicion.WRONG}, ("wrong", "nothing", None, "", "wrong_page")),
        (kept(TEA, MILK), TEA, NEWS, {}, ("changed", "changed", True, "returned", "")),
        (kept(TEA, MILK), TEA, NEWS, {"first": content(TEA)}, ("changed", "changed", True, "returned", "")),
        (kept(TEA, MILK), MILK, Finding(False, False, ""), {"first": content(TEA)},
         ("flapping", "unchanged", False, "", "flapping")),
    ],
)  # fmt: skip
def test_what_a_visit_means(
    facts: PageFacts, markup: str, finding: Finding, arguments: dict[str, object], expected: tuple[object, ...]
) -> None:
    """Outcome, what the spider gets, what is learned, of what kind the news is, and why nothing is told."""
    ruled = ruling(facts, content(markup), finding, (None, None), **arguments)  # type: ignore[arg-type]
    assert (ruled.outcome, ruled.for_spider, ruled.changed, ruled.kind, ruled.reason) == expected
    assert ruled.is_new == (ruled.for_spider is ForSpider.CHANGED)


@pytest.mark.parametrize(
    ("finding", "suspicion", "facts", "asked"),
    [
        (NEWS, Suspicion.NONE, kept(TEA), None),
        (Finding(True, True, "page", is_suspect=True), Suspicion.NONE, kept(TEA), Ask.SECOND),
        (NEWS, Suspicion.REPLACED, kept(TEA), Ask.SECOND),
        (NEWS, Suspicion.ASK, kept(TEA), Ask.IMPOSSIBLE),
        (NEWS, Suspicion.NONE, kept(MILK, TEA), Ask.SECOND),
    ],
)
def test_what_is_fetched_before_a_visit_is_judged(
    finding: Finding, suspicion: Suspicion, facts: PageFacts, asked: Ask | None
) -> None:
    """A second time where noise, an earlier content or another page may have made it look so; not more than once."""
    ruled = ruling(facts, content(MILK), finding, (None, None), suspicion, may_ask=True)
    assert ruled.ask is asked
    assert (ruled.outcome is Outcome.PROBED) == (asked is not None)
    again = ruling(facts, content(MILK), finding, (None, None), suspicion, first=content(MILK), may_ask=True)
    assert again.ask is None
    assert again.is_new


def test_another_recipe_takes_a_new_baseline() -> None:
    """Nothing is told and nothing learned, and the next change is seen; what was owed is delivered all the same."""
    facts = kept(TEA)
    raw = content(MILK, Recipe("raw_bytes"))
    ruled = ruling(facts, raw, None, (None, None))
    assert (ruled.changed, ruled.is_new, ruled.reason) == (None, False, "recipe")
    assert ruled.facts is not None
    assert ruling(ruled.facts, content(TEA, Recipe("raw_bytes")), None, (None, None)).changed is True
    owed = facts._replace(pending_fingerprint=facts.fingerprint)
    assert ruling(owed, raw, None, (None, None)).is_new


def test_what_noise_hides_is_told_once_it_is_none() -> None:
    """What is kept of a page is what its reader was given: a rule that is dropped hides nothing for good."""
    facts = kept(TEA)
    hidden = ruling(facts, content(MILK), Finding(False, False, "", reason="noise"), (None, None))
    assert hidden.facts is not None
    assert hidden.facts.fingerprint == facts.fingerprint
    assert ruling(hidden.facts, content(MILK), NEWS, (None, None)).is_new
