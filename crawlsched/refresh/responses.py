"""A response arrives: what a visit found becomes an observation, and a change goes to the spider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any, NamedTuple

from scrapy import Request

from crawlsched.collection.collection import Collection, FoundPage
from crawlsched.collection.request_templates import RequestTemplate
from crawlsched.content.judging import ChangeSize, Verdict, judged, rebaselined
from crawlsched.content.reading import Content
from crawlsched.content.validators import seconds_since
from crawlsched.content.wrong_pages import Suspicion
from crawlsched.pages.variants import variant_fingerprint
from crawlsched.refresh.delivering import Delivering
from crawlsched.refresh.retry_after import retry_after
from crawlsched.refresh.siblings import sibling_of
from crawlsched.store import TRACE_COLUMNS, Outcome, PageFacts, host_of
from crawlsched.visits.probes import Probe, Probes
from crawlsched.visits.visits import Visit, Visits

__all__ = ["Fetched", "ForSpider", "Responses"]

_GONE = frozenset({404, 410})
_REFUSED = frozenset({401, 403, 407, 451})
_MOVED_FOR_GOOD = frozenset({301, 308})
# So many pages of a template are looked at for one edit.
_MOST_SIBLINGS = 3
_NOTHING_KEPT: dict[str, Any] = {
    **dict.fromkeys(("fingerprint", "pending_fingerprint", "recipe", "etag", "last_modified")),
    **dict.fromkeys(TRACE_COLUMNS, b""),
}


class ForSpider(StrEnum):
    """What a response with content is to the spider."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    #: The same as before, and the spider is to get it.
    OWED = "owed"
    #: It was for us alone: the page is fetched again at once, or another one was served in its place.
    NOTHING = "nothing"


class Fetched(NamedTuple):
    """What a response said, as far as the refresher cares.

    `content` is None where there was none; `moved_to` is the final request if every redirect on the way was
    permanent.
    """

    status: int
    content: Content | None
    etag: str | None
    last_modified: str | None
    size: int
    moved_to: Request | None
    retry_after: str | None
    date: str | None = None

    @property
    def validators(self) -> tuple[str | None, str | None]:
        """ETag and Last-Modified."""
        return self.etag, self.last_modified


class Responses:
    """How visits end.

    changed? → observation → posterior → crawl value → wake time → frontier; the page is marked for the next write.

    Parameters
    ----------
    collection : Collection
        The pages.
    visits : Visits
        The open visits.
    probes : Probes
        What is to be fetched a second time.
    count : callable
        ``count(name, n=1)`` adds to a statistic.
    request_fingerprint : callable
        Gives the 20-byte request fingerprint of a URL.
    source_ended : callable
        Told of a source whose visit brought nothing: its number, the time.
    delivering : Delivering
        How responses get to the spider.
    min_change : float
        A smaller change counts as none; see `judging.judged`.
    """

    def __init__(
        self,
        collection: Collection,
        visits: Visits,
        probes: Probes,
        count: Callable[..., None],
        request_fingerprint: Callable[[str], bytes],
        source_ended: Callable[[int, float], None],
        delivering: Delivering,
        min_change: float = 0.0,
    ) -> None:
        self._delivering = delivering
        self._observation = -1
        self._collection = collection
        self._planner = collection.planner
        self._visits = visits
        self._probes = probes
        self._min_change = min_change
        self._count = count
        self._request_fingerprint = request_fingerprint
        self._source_ended = source_ended

    def crawled(self, visit: Visit, fetched: Fetched, now: float) -> ForSpider | None:
        """A visit got a response; return what its content is to the spider, None if there was none."""
        if self._was_forgotten(visit, now):
            return None
        if visit.probe is not None and visit.probe.impossible_url is not None:
            return self._impossible_answered(visit, visit.probe, now, fetched)
        status = fetched.status
        if status == 304:
            return self._not_modified(visit, fetched, now)
        if fetched.content is not None:
            if visit.probe is not None and not visit.probe.is_held:
                return self._probed(visit, fetched, fetched.content, now)
            if fetched.moved_to is not None:
                return self._moved(visit, fetched.moved_to, fetched, fetched.content, now)
            return self._seen(visit, visit.page, fetched, fetched.content, now)
        if status in _GONE:
            self.end(visit, Outcome.GONE, now, fetched)
            self._planner.gone(visit.page, now)
        elif status in _REFUSED:
            self.end(visit, Outcome.REFUSED, now, fetched)
            self._planner.refused(visit.page, now)
        elif status in _MOVED_FOR_GOOD:  # redirects are not followed in this project
            self.end(visit, Outcome.MOVED, now, fetched)
            self._planner.moved(visit.page, now)
        else:
            self.failed(visit, now, retry_at=retry_after(fetched.retry_after, now), fetched=fetched)
        return None

    def _was_forgotten(self, visit: Visit, now: float) -> bool:
        # `crawlsched forget` may take a page away while it is being visited; then there is nothing left to learn.
        if visit.page < 0 or self._collection.knows(visit.page):
            return False
        self.end(visit, Outcome.DROPPED, now)
        return True

    def _not_modified(self, visit: Visit, fetched: Fetched, now: float) -> ForSpider:
        known = self._collection.facts_of(visit.page).fingerprint is not None
        doubt = self._collection.validators.doubt(visit.host, *visit.sent)
        # A 304 that our validators did not bring, or that came of validators which lie, says nothing.
        changed = False if known and doubt is not None else None
        self._observe(visit, Verdict(Outcome.NOT_MODIFIED, changed), visit.page, fetched, now, doubt=doubt or 0.0)
        return ForSpider.UNCHANGED

    def _seen(self, visit: Visit, page: int, fetched: Fetched, content: Content, now: float) -> ForSpider:
        """Content was seen at a page: did it change since it was last seen, and is it new to the spider?"""
        facts = self._collection.facts_of(page)
        verdict = judged(facts, content, fetched.validators, self._min_change)
        self._take_note(content, now)
        if content.is_template_edit and verdict.outcome is Outcome.UNCHANGED:
            self._count("crawlsched/template_edits")
        is_probed = False
        # A sibling's visit is as any other, but for what it tells of the page that waits for it.
        probe = None if visit.probe is None or visit.probe.sibling is not None else visit.probe
        if visit.probe is not None and probe is None:
            self._sibling_seen(visit, visit.probe, content, verdict)
        if page == visit.page:
            suspicion = self._collection.wrong_pages.suspect(visit.host, facts, content, verdict)
            if suspicion is Suspicion.WRONG:
                return self._wrong(visit, fetched, content, now)
            if suspicion is Suspicion.ASK and probe is None:
                url = self._collection.wrong_pages.impossible_url(facts.url)
                return self._put_off(visit, fetched, content, now, impossible_url=url)
            if (sibling := self._sibling(visit, facts, content, verdict)) is not None:
                return self._put_off(visit, fetched, content, now, sibling=sibling)
            is_probed = self._probes.is_wanted(page, content, verdict.changed, returned=verdict.returned)
            if is_probed and verdict.changed:
                # Noise that is not known yet may have made it look so; the second fetch will tell.
                return self._put_off(visit, fetched, content, now)
            self._try_validators(visit, facts, fetched, verdict, probe, now)
        else:
            verdict = verdict._replace(outcome=Outcome.MOVED)
        reason = withheld_for(verdict, content)
        before = self._delivering.before(facts, is_new=verdict.is_new, reason=reason, now=now)
        self._observe(visit, verdict, page, fetched, now)
        self._collection.put_facts(verdict.facts or facts, now)
        if is_probed:
            self._planner.hold(page)
            self._probes.ask(Probe(page, visit.host, content, False, visit.validated, now))
        if verdict.is_new and content.packed_text is not None:
            self._collection.keep_text(page, content.packed_text, now)
        if before is None:
            return ForSpider.UNCHANGED
        before = before._replace(observation=self._observation)
        is_other = self._delivering.begin(visit.token, before, is_new=verdict.is_new, changed=verdict.changed, now=now)
        if is_other is None:  # the same content is on its way already
            return ForSpider.NOTHING
        return ForSpider.CHANGED if is_other else ForSpider.OWED

    def _put_off(
        self,
        visit: Visit,
        fetched: Fetched,
        content: Content,
        now: float,
        *,
        impossible_url: str | None = None,
        sibling: int | None = None,
    ) -> ForSpider:
        """Ask for another fetch before the page is judged; until then it is in flight, and what was kept stays."""
        self.end(visit, Outcome.PROBED, now, fetched)
        self._probes.ask(Probe(visit.page, visit.host, content, True, visit.validated, now, impossible_url, sibling))
        return ForSpider.NOTHING

    def _sibling(self, visit: Visit, facts: PageFacts, content: Content, verdict: Verdict) -> int | None:
        """Return the page that tells whether an edit is the template's; None if that is not to be asked."""
        if not verdict.changed or facts.pending_fingerprint is not None:
            return None
        if visit.probe is None:
            is_wanted = self._probes.is_sibling_wanted(visit.page, content)
            return sibling_of(self._collection, visit.page, content) if is_wanted else None
        # Others were looked at, and it is still open: they have no such words.
        looked_at = visit.probe.looked_at
        if (
            visit.probe.sibling is not None
            or not 0 < len(looked_at) < _MOST_SIBLINGS
            or not content.may_be_template_edit
        ):
            return None
        return sibling_of(self._collection, visit.page, content, but=looked_at)

    def _sibling_seen(self, visit: Visit, probe: Probe, content: Content, verdict: Verdict) -> None:
        """A sibling shows the same edit, or not; or both it and its own: then the next one may tell."""
        looked_at = (*probe.looked_at, visit.page)
        told_nothing = bool(verdict.changed) and not content.is_template_edit and len(looked_at) < _MOST_SIBLINGS
        visit.probe = replace(probe, looked_at=looked_at, told_nothing=told_nothing)
        if not told_nothing:
            self._probes.sibling_told(probe.template, is_template_edit=content.is_template_edit)

    def _judge_waiting(self, probe: Probe, now: float) -> None:
        """A sibling was visited: another one is, or the page that waits for it."""
        sibling = None
        if probe.told_nothing and self._collection.knows(probe.page):
            sibling = sibling_of(self._collection, probe.page, probe.first, but=probe.looked_at)
        self._probes.ask(replace(probe, sibling=sibling, asked_at=now, told_nothing=False))

    def _take_note(self, content: Content, now: float) -> None:
        """Count what content says beside whether it changed, and write down what was learned from it."""
        if content.fingerprint.is_empty:
            self._count("crawlsched/content/empty")
        if content.site is not None:
            self._collection.keep_site(*content.site, now)
        if content.is_surprised is not None:
            assert content.template is not None
            self._collection.keep_mask(content.template, now)
            self._probes.learned(content.template, is_surprised=content.is_surprised)
            self._count("crawlsched/probes/made")
            if content.is_surprised:
                self._count("crawlsched/probes/noise_found")

    def _try_validators(
        self, visit: Visit, facts: PageFacts, fetched: Fetched, verdict: Verdict, probe: Probe | None, now: float
    ) -> None:
        """Content came that nobody had made conditional: did the validators move as it did?"""
        if visit.validated or verdict.changed is None or (probe is not None and probe.was_conditional):
            return
        before = facts.etag, facts.last_modified
        is_other = bool(verdict.changed) or verdict.size is not None
        if self._collection.validators.compared(visit.host, before, fetched.validators, changed=is_other):
            self._count("crawlsched/validators/trials")
            self._collection.save_host(visit.host, now)

    def _probed(self, visit: Visit, fetched: Fetched, content: Content, now: float) -> ForSpider:
        """A second fetch taught what is noise, and nothing else: whether the page changed was judged by the first."""
        self._take_note(content, now)
        facts = self._collection.facts_of(visit.page)
        if facts.recipe != content.fingerprint.recipe:
            self._collection.put_facts(rebaselined(facts, content, fetched.validators), now)
        self.end(visit, Outcome.PROBED, now, fetched)
        self._planner.release(visit.page, now)
        return ForSpider.NOTHING

    def _impossible_answered(self, visit: Visit, probe: Probe, now: float, fetched: Fetched | None = None) -> ForSpider:
        """A host was asked for a page that cannot exist: what it answers with is served in the place of pages."""
        content = None if fetched is None else fetched.content
        is_wrong = content is not None and content.likeness == probe.first.likeness
        self.end(visit, Outcome.WRONG if is_wrong else Outcome.PROBED, now, fetched)
        self._collection.wrong_pages.answered(visit.host, probe.first.likeness)
        if content is not None:
            self._learn_wrong(visit.host, content, now, is_told=True)
        if is_wrong:
            self._planner.failed(visit.page, now)
            self._collection.unsaved.page(visit.page, now)
        else:
            self._probes.ask(replace(probe, impossible_url=None, asked_at=now))
        return ForSpider.NOTHING

    def _wrong(self, visit: Visit, fetched: Fetched, content: Content, now: float) -> ForSpider:
        """Another page was served in the place of this one: nothing is learned, and it backs off as after an error."""
        self._collection.withheld.note(host_of(visit.url), "wrong_page", visit.url, now)
        self.end(visit, Outcome.WRONG, now, fetched)
        self._learn_wrong(visit.host, content, now)
        self._planner.failed(visit.page, now)
        return ForSpider.NOTHING

    def _learn_wrong(self, host: int, content: Content, now: float, *, is_told: bool = False) -> None:
        if content.fingerprint.is_empty:  # pages that scripts draw have no text, and are none the worse for it
            return
        for page, digest in self._collection.wrong_pages.learn(host, content, is_told=is_told):
            facts = self._collection.facts_of(page) if self._collection.knows(page) else None
            if facts is not None and digest == (facts.pending_fingerprint or facts.fingerprint):
                # It was taken for this page's content. What comes next is new to the spider, and no observation.
                self._collection.put_facts(facts._replace(**_NOTHING_KEPT), now)
        self._collection.save_host(host, now)

    def _moved(self, visit: Visit, to: Request, fetched: Fetched, content: Content, now: float) -> ForSpider:
        """Every redirect was permanent: the page lives elsewhere now, and what came is that page's content."""
        old = self._collection.facts_of(visit.page)
        base = self._request_fingerprint(to.url)
        name = variant_fingerprint(base, old.variant)
        page = self._collection.index.page(name)
        if page == visit.page:  # an address that this project's fingerprinter takes for the same
            return self._seen(visit, page, fetched, content, now)
        self._planner.moved(visit.page, now)
        self._collection.put_facts(old._replace(moved_to=to.url), now)
        if page < 0:
            importance = float(self._planner.pages.importance[visit.page])
            template = RequestTemplate(old.template_data) if old.template_data else None
            found = FoundPage(to.url, base, host_of(to.url), importance, template, old.depth, old.variant)
            page = self._collection.add_pages([found], now)[0]
            self._count("crawlsched/pages/found")
        elif self._planner.in_flight(page):
            # The page itself is being visited at this moment; that visit will tell.
            self.end(visit, Outcome.MOVED, now, fetched)
            return ForSpider.UNCHANGED
        return self._seen(visit, page, fetched, content, now)

    def _observe(
        self, visit: Visit, verdict: Verdict, page: int, fetched: Fetched, now: float, doubt: float = 0.0
    ) -> None:
        """Learn from a visit that reached content."""
        since = None
        if verdict.changed and self._collection.validators.tells_time(visit.host):
            since = seconds_since(fetched.last_modified, fetched.date, now)
        observation = self._planner.crawled(page, now, verdict.changed, doubt=doubt, time_since_modified=since)
        self._collection.unsaved.page(page, now)
        if verdict.changed:
            self._collection.unsaved.changed(page, now)
        if observation is not None and verdict.changed:
            self._count("crawlsched/changes_found")
        self.end(visit, verdict.outcome, now, fetched, observation=observation, size=verdict.size)

    def failed(
        self, visit: Visit, now: float, *, retry_at: float | None = None, fetched: Fetched | None = None
    ) -> None:
        """A visit ended with an error: the page is tried again later, ever more rarely."""
        if self._was_forgotten(visit, now):
            return
        if visit.probe is not None and visit.probe.impossible_url is not None:
            self._impossible_answered(visit, visit.probe, now)
            return
        self.end(visit, Outcome.ERROR, now, fetched)
        if visit.source >= 0:
            self._source_ended(visit.source, now)
        elif visit.page >= 0:
            free_at = self._collection.hosts.free_at(visit.host, now)
            rests_until = free_at if free_at > now else 0.0
            self._planner.failed(visit.page, now, max(retry_at or 0.0, rests_until) or None)
            self._collection.unsaved.page(visit.page, now)

    def resolve(self, visit: Visit, outcome: Outcome, now: float) -> None:
        """A visit ended without a response."""
        if self._was_forgotten(visit, now):
            return
        if outcome is Outcome.ERROR or (visit.probe is not None and visit.probe.impossible_url is not None):
            self.failed(visit, now)
            return
        self.end(visit, outcome, now)
        if visit.source >= 0:
            self._source_ended(visit.source, now)
        elif visit.page >= 0:
            if outcome is Outcome.REFUSED:
                self._planner.refused(visit.page, now)
            else:
                # Dropped by some other component. It would be picked again at once, so it backs off like an error.
                self._planner.failed(visit.page, now)
            self._collection.unsaved.page(visit.page, now)

    def end(
        self,
        visit: Visit,
        outcome: Outcome,
        now: float,
        fetched: Fetched | None = None,
        *,
        observation: Any = None,
        size: ChangeSize | None = None,
    ) -> None:
        """Resolve a visit: the one place where it is counted and written down."""
        if self._visits.resolve(visit.token, outcome) is None or not visit.tracked:
            return
        self._count("crawlsched/resolved")
        self._count(f"crawlsched/resolved/{outcome}")
        self._hear_of_host(visit, outcome, fetched, now)
        self._planner.release_host(visit.host)
        if visit.probe is not None:
            self._probes.ended(visit.probe)
            if visit.probe.sibling is not None:  # however that ended
                self._judge_waiting(visit.probe, now)
        if visit.page < 0 or not self._collection.knows(visit.page):
            return
        if outcome is not Outcome.PROBED:
            self._delivering.ended_pages.append(visit.page)
        self._observation = self._collection.unsaved.observation(
            now,
            visit.page if observation is None else observation.page,
            elapsed=None if observation is None else observation.elapsed,
            n_signals=0 if observation is None else observation.n_signals,
            source=-1 if observation is None else observation.source,
            further=() if observation is None else observation.further,
            changed=None if observation is None else observation.changed,
            outcome=str(outcome),
            status=None if fetched is None else fetched.status,
            size=None if fetched is None else fetched.size,
            changed_share=None if size is None else size.changed_share,
            similarity=None if size is None else size.similarity,
        )
        self._collection.unsaved.page(visit.page, now)

    def _hear_of_host(self, visit: Visit, outcome: Outcome, fetched: Fetched | None, now: float) -> None:
        """Errors of a server, or no answer at all, are its host's: pages on it are not tried one after the other."""
        if outcome is Outcome.ERROR:
            status = None if fetched is None else fetched.status
            if status is None or status >= 500 or status == 429:
                wait = self._collection.settings.error_interval
                self._collection.hosts.failed(visit.host, visit.opened_at, now, wait)
        elif outcome not in (Outcome.REFUSED, Outcome.DROPPED):
            self._collection.hosts.answered(visit.host)


def withheld_for(verdict: Verdict, content: Content) -> str | None:
    """Return the reason for which content that is another one is not delivered; None: it is the same."""
    if verdict.outcome is Outcome.FLAPPING:
        return "flapping"
    if content.is_template_edit:
        return "template"
    return "minimum_change" if verdict.size is not None and verdict.outcome is Outcome.UNCHANGED else None
