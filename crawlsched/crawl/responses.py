"""Responses: judges each response, learns from it, and decides what the spider gets."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from scrapy import Request

from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.detector import Detector, Finding
from crawlsched.content.reading import Content
from crawlsched.content.verdict import (
    Circumstances,
    DeliveryKind,
    Refetch,
    Verdict,
    judge,
    judge_cut_short,
    judge_status,
)
from crawlsched.crawl.admission import Admission
from crawlsched.crawl.collection import Collection, FoundPage
from crawlsched.crawl.deliveries import Delivery, DeliveryBook
from crawlsched.crawl.failing_hosts import FailingHosts
from crawlsched.crawl.probes import APART, Probe, Probes
from crawlsched.crawl.request_templates import RequestTemplate
from crawlsched.crawl.visits import ResponseFacts, Visit, VisitEnds
from crawlsched.pages import LIVE
from crawlsched.pages.marks import CUT
from crawlsched.store import Outcome, PageFacts, host_of

__all__ = ["AS_SERVED", "Responses"]

#: The verdict on a page that is gone, or whose response could not be judged.
AS_SERVED = Verdict(Outcome.DROPPED, deliver=DeliveryKind.AS_SERVED)
# Reasons to deliver nothing although the content differs. In these cases, too, validators should have changed.
_OTHER_CONTENT = frozenset({"template", "minimum_change", "flapping"})


def _blocks(first: Content, second: Content) -> tuple[PageBlocks, PageBlocks] | None:
    """Return the blocks of two contents; None if the contents cannot be compared block by block."""
    if first.seen is None or second.seen is None or first.fingerprint.recipe != second.fingerprint.recipe:
        return None
    return first.seen, second.seen


@dataclass(eq=False)
class Responses:
    """Judges responses, and carries out the verdicts.

    verdict → observation → posterior → crawl value → due time → frontier; the page is marked for the next write.
    """

    collection: Collection
    probes: Probes
    book: DeliveryBook
    failing_hosts: FailingHosts
    admission: Admission
    ends: VisitEnds

    def __post_init__(self) -> None:
        self._planner, self._count = self.collection.planner, self.collection.count

    def crawled(self, visit: Visit, fetched: ResponseFacts, now: float) -> Verdict:
        """Return the verdict on a visit that got a response."""
        with self.ends.caught(visit, now):  # and the spider gets the response as without the add-on
            return self._crawled(visit, fetched, now)
        return AS_SERVED

    def _crawled(self, visit: Visit, fetched: ResponseFacts, now: float) -> Verdict:
        content, probe = fetched.content, visit.probe
        if self.ends.was_forgotten(visit, now):
            return AS_SERVED
        if probe is not None and probe.impossible_url is not None:
            return self._impossible_answered(visit, probe, now, fetched)
        if fetched.is_cut_short:
            return self._cut_short(visit, fetched, now)
        if content is None:
            return self._without_content(visit, fetched, now)
        if visit.is_lesson:
            return self._second_fetched(visit, fetched, content, now)
        if fetched.moved_to is not None:
            return self._moved(visit, fetched.moved_to, fetched, content, now)
        return self._judged(visit, visit.page, fetched, content, now)

    # -- responses that say nothing of a content

    def _cut_short(self, visit: Visit, fetched: ResponseFacts, now: float) -> Verdict:
        """A body was cut short: it is no evidence, and the page is asked for again as after an error."""
        self._count("crawlsched/truncated")
        if visit.is_lesson:
            return self._taught(visit, fetched, now)
        page, facts = visit.page, self.collection.facts_of(visit.page)
        is_again = bool(self._planner.pages.marks.item(page) & CUT)
        verdict = judge_cut_short(facts, self.book.circumstances(page), is_again=is_again)
        self.collection.mark(page, CUT, now)
        columns = self._planner.columns([page]) if verdict.is_delivered else {}
        observation = self.ends.back_off(visit, verdict.outcome, now, fetched)
        delivery = Delivery(page, now, facts, columns, observation, owed=verdict.owed)
        self._deliver(visit, facts.url, delivery, verdict, now)
        return verdict

    def _without_content(self, visit: Visit, fetched: ResponseFacts, now: float) -> Verdict:
        if fetched.status == 304:
            is_known = self.collection.facts_of(visit.page).fingerprint is not None
            doubt = self.collection.validators.doubt(visit.host, *visit.sent)
            verdict = judge_status(304, is_known=is_known, is_believed=doubt is not None)
            self._learn(visit, visit.page, fetched, verdict, now, doubt=doubt or 0.0)
            return verdict
        verdict = judge_status(fetched.status)
        if verdict.outcome is Outcome.MOVED:
            facts = self.collection.facts_of(visit.page)
            self.collection.put_facts(facts._replace(moved_to=fetched.location), now)
        self.ends.back_off(visit, verdict.outcome, now, fetched)
        return verdict

    # -- content

    def _judged(self, visit: Visit, page: int, fetched: ResponseFacts, content: Content, now: float) -> Verdict:
        """Judge the content of a page, and carry out the verdict."""
        if content.is_empty:
            self._count("crawlsched/content/empty")
        around = self._circumstances(visit, page, content, now)
        verdict = judge(self.collection.facts_of(page), content, fetched.validators, around)
        if page != visit.page:
            verdict = verdict._replace(outcome=Outcome.MOVED)
        self._carry_out(visit, page, fetched, content, verdict, around.finding, now)
        return verdict

    def _circumstances(self, visit: Visit, page: int, content: Content, now: float) -> Circumstances:
        facts, around = self.collection.facts_of(page), self.book.circumstances(page)
        detector = None if content.seen is None else self._detector(content)
        noise = None if detector is None else detector.noise
        finding = None if detector is None else self._finding(detector, visit, facts, content, now)
        first = visit.probe.first if visit.probe is not None else None
        is_other = first is not None and first.fingerprint != content.fingerprint
        if detector is not None and first is not None and first.seen is not None and content.seen is not None:
            is_other = detector.tells_apart(first.seen, content.seen)
        if page != visit.page:
            return around._replace(finding=finding, first=first, fetches_differ=is_other)
        suspicion = self.collection.wrong_pages.suspect(visit.host, facts, content)
        self.probes.visited(is_again=facts.fingerprint is not None)
        return around._replace(
            finding=finding,
            first=first,
            fetches_differ=is_other,
            suspicion=suspicion,
            may_refetch=first is None and self.probes.may_ask(page, visit.host, noise),
            confirms_return=self.probes.confirms_return(noise),
            knows_template=self.probes.knows(noise, announced=not self._planner.announcements.is_silent(page)),
        )

    def _finding(self, detector: Detector, visit: Visit, facts: PageFacts, content: Content, now: float) -> Finding:
        """Let the detector judge content, and learn from a second fetch."""
        assert content.seen is not None
        given, probe = content.given_trace(facts), visit.probe
        if probe is None and given is not None and content.text is None:  # the digest says that it is unchanged
            content.seen.trace = given
        if probe is not None:
            self._learn_at_once(detector, probe, facts, content, now)
        return detector.judge(content.seen, given, now, asked_at=visit.opened_at, learns=probe is None)

    def _learn_at_once(self, detector: Detector, probe: Probe, facts: PageFacts, content: Content, now: float) -> None:
        if (both := _blocks(probe.first, content)) is None:
            return
        self._count("crawlsched/probes/made")
        if now - probe.asked_at < APART:  # clocks that count seconds may agree by chance
            return
        # The second fetch may have got an older copy, without an edit that the first fetch had shown.
        may_be_old = probe.first.short_digest not in facts.past_digests and content.short_digest in facts.past_digests
        apart = (now - probe.asked_at) / max(probe.elapsed, now - probe.asked_at)
        if detector.learn_at_once(*both, now, apart, may_be_old=may_be_old):  # a surprise
            self._count("crawlsched/probes/noise_found")

    def _detector(self, content: Content) -> Detector:
        return self.collection.learned.detector(content.url, content.fingerprint.recipe)

    def _carry_out(
        self,
        visit: Visit,
        page: int,
        fetched: ResponseFacts,
        content: Content,
        verdict: Verdict,
        finding: Finding | None,
        now: float,
    ) -> None:
        """Carry out a verdict on content: fetch again, teach, learn, keep, deliver; each once, in this order."""
        collection, facts = self.collection, self.collection.facts_of(page)
        elapsed = now - self._planner.pages.crawled_at.item(page)
        if verdict.outcome is Outcome.WRONG:
            collection.withheld.note(host_of(facts.url), verdict.reason, facts.url, now)
            self.ends.back_off(visit, Outcome.WRONG, now, fetched)
            return
        if verdict.refetch is not None:
            is_question = verdict.refetch is Refetch.IMPOSSIBLE_PAGE
            url = collection.wrong_pages.impossible_url(facts.url) if is_question else None
            self.ends.end(visit, Outcome.PROBED, now, fetched)
            self.probes.ask(Probe(page, visit.host, content, True, visit.validated, now, elapsed, is_question, url))
            return
        detector = self._teach(visit, page, fetched, content, verdict, now)
        columns = self._planner.columns([page]) if verdict.is_delivered else {}
        delivery = Delivery(page, now, facts, columns, owed=verdict.owed)
        delivery.observation = observation = self._learn(visit, page, fetched, verdict, now)
        if page != visit.page and fetched.moved_to is not None:
            self._leave_address(visit, fetched.moved_to, observation, now)
        collection.put_facts(verdict.facts or facts, now)
        if elapsed == inf:
            self.admission.growth.copied()
        may_teach = page == visit.page and visit.probe is None
        noise = None if detector is None else detector.noise
        if may_teach and finding and noise and self.probes.is_wanted(visit.host, finding, noise):
            self._planner.hold(page)
            self.probes.ask(Probe(page, visit.host, content, False, visit.validated, now, elapsed))
        if verdict.kind and content.packed_text is not None:
            collection.keep_text(page, content.packed_text, now)
        self._deliver(visit, facts.url, delivery, verdict, now)

    def _deliver(self, visit: Visit, url: str, delivery: Delivery, verdict: Verdict, now: float) -> None:
        if verdict.is_delivered:
            self.book.begin(visit.token, delivery)
        elif verdict.deliver is DeliveryKind.UNDER_WAY:
            self._count("crawlsched/deliveries/under_way")
        elif verdict.reason:
            self.collection.withheld.note(host_of(url), verdict.reason, url, now)

    def _teach(
        self, visit: Visit, page: int, fetched: ResponseFacts, content: Content, verdict: Verdict, now: float
    ) -> Detector | None:
        """Learn about the page's template, its host's validators and wrong pages; return its detector."""
        collection, facts = self.collection, self.collection.facts_of(page)
        detector = None if content.seen is None else self._detector(content)
        if detector is not None:
            is_earlier = verdict.kind == "returned" or verdict.reason == "flapping"
            if visit.probe is not None and is_earlier:  # its page had shown former content again
                detector.noise.n_returns = 0 if verdict.reason == "flapping" else detector.noise.n_returns + 1
            collection.keep_learned(page, content.url, content.fingerprint.recipe, now)
        if verdict.reason == "template":
            self._count("crawlsched/template_edits")
        if page == visit.page:
            self._try_validators(visit, facts, fetched, verdict, now)
            self._note_passing(visit, facts, content, now)
        return detector

    def _note_passing(self, visit: Visit, facts: PageFacts, content: Content, now: float) -> None:
        """Note that another page was served in the place of this page a moment ago, and is not any more."""
        probe = visit.probe
        if probe is None or not probe.is_held or probe.first.likeness == content.likeness:
            return
        wrong_pages = self.collection.wrong_pages
        has_passed = wrong_pages.is_replaced(facts, probe.first) and not wrong_pages.is_replaced(facts, content)
        if has_passed and wrong_pages.passed(visit.host, facts.url, probe.first):
            self.collection.save_host(visit.host, now)

    def _try_validators(
        self, visit: Visit, facts: PageFacts, fetched: ResponseFacts, verdict: Verdict, now: float
    ) -> None:
        """Note, after a request without validators, whether the validators changed as the content did."""
        if visit.validated or verdict.changed is None or (visit.probe is not None and visit.probe.was_conditional):
            return
        before = facts.etag, facts.last_modified
        is_other = bool(verdict.changed or verdict.kind or verdict.reason in _OTHER_CONTENT)
        if self.collection.validators.compared(visit.host, before, fetched.validators, changed=is_other):
            self._count("crawlsched/validators/trials")
            self.collection.save_host(visit.host, now)

    # -- second fetches

    def _second_fetched(self, visit: Visit, fetched: ResponseFacts, content: Content, now: float) -> Verdict:
        """Learn what is noise from a second fetch; the page was judged at the first fetch."""
        assert visit.probe is not None
        if (both := _blocks(visit.probe.first, content)) is not None:
            detector = self._detector(content)
            facts = self.collection.facts_of(visit.page)
            self._learn_at_once(detector, visit.probe, facts, content, now)
            finding = detector.judge(both[1], both[0].trace, now, learns=False)
            if finding.is_change and not finding.is_suspect:
                # The page was edited between the two fetches, so the spider gets the second content, too.
                return self._judged(visit, visit.page, fetched, content, now)
            self.collection.keep_learned(visit.page, content.url, content.fingerprint.recipe, now)
        return self._taught(visit, fetched, now)

    def _taught(self, visit: Visit, fetched: ResponseFacts, now: float) -> Verdict:
        """End a second fetch of a page that was judged at the first fetch."""
        self.ends.end(visit, Outcome.PROBED, now, fetched)
        self._planner.release(visit.page, now)
        return Verdict(Outcome.PROBED)

    def _impossible_answered(self, visit: Visit, probe: Probe, now: float, fetched: ResponseFacts) -> Verdict:
        """Learn what a host serves in the place of pages from its answer for a page that cannot exist."""
        content = None if fetched.is_cut_short else fetched.content
        wrong_pages = self.collection.wrong_pages
        if content is not None and not content.is_empty:
            # Pages that scripts draw have no text, which is normal for them.
            wrong_pages.learn(visit.host, content)
            self.collection.save_host(visit.host, now)
        if content is None or content.likeness != probe.first.likeness:
            self.ends.question_open(visit, probe, now, fetched)
            return Verdict(Outcome.PROBED, refetch=Refetch.PAGE)
        wrong_pages.answered(visit.host, probe.first.likeness)
        url = self.collection.facts_of(visit.page).url
        self.collection.withheld.note(host_of(url), "wrong_page", url, now)
        self.ends.back_off(visit, Outcome.WRONG, now, fetched)
        return Verdict(Outcome.WRONG, reason="wrong_page")

    # -- pages that have moved

    def _moved(self, visit: Visit, to: Request, fetched: ResponseFacts, content: Content, now: float) -> Verdict:
        """Every redirect was permanent, so the content is that of the page at the new address."""
        old = self.collection.facts_of(visit.page)
        name = self.collection.request_fingerprint(to.url)
        page = self.collection.index.page(name)
        if page == visit.page:  # for this project's fingerprinter, both addresses are the same page
            return self._judged(visit, page, fetched, content, now)
        if page < 0:
            importance = float(self._planner.pages.importance[visit.page])
            template = RequestTemplate(dict(old.template_data)) if old.template_data else None
            found = FoundPage(to.url, name, host_of(to.url), None, template, old.depth)
            if not self.admission.is_elsewhere(found, host_of(old.url), now):
                self.collection.rules.count(self.collection.rules.number(to.url))
                page = self.collection.add_pages([found], now, [importance])[0]
                self._count("crawlsched/pages/found")
        if page >= 0:
            self.book.moved(visit.page, page, now)
        if page < 0 or self._planner.in_flight(page):
            # Another process, or an open visit to the new address, delivers the content.
            self._leave_address(visit, to, self.ends.end(visit, Outcome.MOVED, now, fetched), now)
            return Verdict(Outcome.MOVED)
        return self._judged(visit, page, fetched, content, now)

    def _leave_address(self, visit: Visit, to: Request, observation: int | None, now: float) -> None:
        before = self._planner.standing(visit.page)
        self._planner.moved(visit.page, now)
        facts = self.collection.facts_of(visit.page)
        self.collection.put_facts(facts._replace(moved_to=to.url), now)
        self.ends.tell(visit.page, before, observation, now)

    # -- what is learned of a page

    def _learn(
        self, visit: Visit, page: int, fetched: ResponseFacts, verdict: Verdict, now: float, doubt: float = 0.0
    ) -> int | None:
        """Learn from a visit that reached content; return the number under which it is kept."""
        since = None
        if verdict.changed and self.collection.validators.of(visit.host)[1].tells_time:
            since = fetched.since_modified(now)
        before = self._planner.standing(page)
        if self._planner.pages.state.item(page) != LIVE and self._planner.pages.n_errors.item(page):
            self.failing_hosts.returned[self._planner.pages.host.item(page)] += 1
        learned = self._planner.crawled(page, now, verdict.changed, doubt=doubt, time_since_modified=since)
        self.collection.unsaved.page(page, now)
        if verdict.changed:
            self.collection.unsaved.content(page, now, changed_at=now)
        if learned is not None and verdict.changed:
            self._count("crawlsched/changes_found")
        observation = self.ends.end(visit, verdict.outcome, now, fetched, learned=learned, size=verdict.size)
        self.ends.tell(page, before, observation, now)
        return observation
