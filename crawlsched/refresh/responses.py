"""A response arrives: what a visit found becomes an observation, and a change goes to the spider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

from scrapy import Request

from crawlsched.change_detection import Detector, Finding
from crawlsched.collection.collection import Collection, FoundPage
from crawlsched.collection.request_templates import RequestTemplate
from crawlsched.content.reading import Content
from crawlsched.content.ruling import Ask, ChangeSize, ForSpider, Ruling, Suspicion, given_trace, is_new, ruling
from crawlsched.content.validators import seconds_since
from crawlsched.pages import LIVE
from crawlsched.pages.variants import variant_fingerprint
from crawlsched.refresh.delivering import Delivering
from crawlsched.refresh.failing_hosts import FailingHosts
from crawlsched.refresh.growth import Growth
from crawlsched.refresh.retry_after import retry_after
from crawlsched.store import Outcome, PageFacts, host_of
from crawlsched.visits.probes import APART, Probe, Probes
from crawlsched.visits.visits import Visit, Visits

__all__ = ["Fetched", "ForSpider", "Responses"]

_GONE = frozenset({404, 410})
_REFUSED = frozenset({401, 403, 407, 451})
# What was cut short is asked for again after so many seconds, and each further time in a row after twice as many.
_CUT_SHORT_WAIT = 2.0
_MOVED_FOR_GOOD = frozenset({301, 308})
_REACHED = frozenset(
    {Outcome.CHANGED, Outcome.UNCHANGED, Outcome.NOT_MODIFIED, Outcome.FLAPPING, Outcome.MOVED},
)


class Fetched(NamedTuple):
    """What a response said, as far as the refresher cares.

    `content` is None where there was none; `moved_to` is the final request if every redirect on the way was
    permanent, `location` the URL of one that was not followed.
    """

    status: int
    content: Content | None = None
    etag: str | None = None
    last_modified: str | None = None
    size: int = 0
    moved_to: Request | None = None
    retry_after: str | None = None
    date: str | None = None
    location: str | None = None

    @property
    def validators(self) -> tuple[str | None, str | None]:
        """ETag and Last-Modified."""
        return self.etag, self.last_modified


def _is_like(first: Content, second: Content) -> bool:
    """Whether two contents can be compared block by block."""
    both = first.seen is not None and second.seen is not None
    return both and first.fingerprint.recipe == second.fingerprint.recipe


def _was_earlier(visit: Visit, ruled: Ruling) -> bool:
    """Whether a visit was put off because the page said what it had said before."""
    return visit.probe is not None and (ruled.kind == "returned" or ruled.reason == "flapping")


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
    failing_hosts : FailingHosts
        Hears how pages fail and come back.
    min_change : float
        A smaller change counts as none; see `ruling.ruling`.
    is_elsewhere : callable
        Hands a page over if it is another shard's, and says whether it was.
    growth : Growth, optional
        Hears of what visits brought.
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
        failing_hosts: FailingHosts,
        min_change: float = 0.0,
        is_elsewhere: Callable[[FoundPage, str, float], bool] = lambda found, found_on, now: False,
        growth: Growth | None = None,
    ) -> None:
        self._growth = growth
        self._delivering = delivering
        self._failing_hosts = failing_hosts
        self._observation = -1
        # By page, how many bodies in a row were cut short.
        self._cut_short: dict[int, int] = {}
        self._collection = collection
        self._planner = collection.planner
        self._visits = visits
        self._probes = probes
        self._min_change = min_change
        self._count = count
        self._request_fingerprint = request_fingerprint
        self._source_ended = source_ended
        self._is_elsewhere = is_elsewhere
        #: Told of each ruling on content: the visit, the content, the ruling.
        self.on_ruling: Callable[[Visit, Content, Ruling], None] = lambda visit, content, ruled: None

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
            self._leave(visit, now, self._planner.gone)
        elif status in _REFUSED:
            self.end(visit, Outcome.REFUSED, now, fetched)
            self._leave(visit, now, self._planner.refused)
        elif status in _MOVED_FOR_GOOD:  # redirects are not followed in this project
            self.end(visit, Outcome.MOVED, now, fetched)
            facts = self._collection.facts_of(visit.page)
            self._collection.put_facts(facts._replace(moved_to=fetched.location), now)
            self._leave(visit, now, self._planner.moved)
        else:
            self.failed(visit, now, retry_at=retry_after(fetched.retry_after, now), fetched=fetched)
        return None

    def truncated(self, visit: Visit, fetched: Fetched, now: float) -> ForSpider | None:
        """A body was cut short: it is evidence of nothing, and the page is asked for again soon.

        The spider gets it where the page was never delivered, once, or where a delivery is owed.
        """
        self._count("crawlsched/truncated")
        if self._was_forgotten(visit, now):
            return None
        if visit.probe is not None and visit.probe.impossible_url is not None:
            return self._impossible_answered(visit, visit.probe, now)
        page, is_lesson = visit.page, visit.probe is not None and not visit.probe.is_held
        self.end(visit, Outcome.PROBED if is_lesson else Outcome.ERROR, now, fetched)
        self._planner.release(page, now)
        if is_lesson:
            return ForSpider.NOTHING
        facts, n_before = self._collection.facts_of(page), self._cut_short.get(page, 0)
        self._cut_short[page] = n_before + 1
        wait = min(_CUT_SHORT_WAIT * 2.0**n_before, self._collection.settings.error_interval)
        self._planner.put_off(page, now + wait, now)
        is_first = facts.fingerprint is None and facts.pending_fingerprint is None and not n_before
        before = self._delivering.before(facts, is_new=is_first, reason=None, now=now)
        if before is None:
            self._collection.withheld.note(host_of(facts.url), "truncated", facts.url, now)
            return ForSpider.UNCHANGED
        begun = self._delivering.begin(visit.token, before, is_new=False, changed=None, now=now)
        if begun is None:
            return ForSpider.NOTHING
        return ForSpider.CHANGED if begun else ForSpider.OWED

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
        ruled = Ruling(Outcome.NOT_MODIFIED, ForSpider.UNCHANGED, changed)
        self._observe(visit, ruled, visit.page, fetched, now, doubt=doubt or 0.0)
        return ForSpider.UNCHANGED

    def _seen(self, visit: Visit, page: int, fetched: Fetched, content: Content, now: float) -> ForSpider:
        """Content was seen at a page: did it change since it was last seen, and is it new to the spider?"""
        self._cut_short.pop(page, None)
        facts = self._collection.facts_of(page)
        first = visit.probe.first if visit.probe is not None else None
        if content.fingerprint.is_empty:
            self._count("crawlsched/content/empty")
        detector, finding = self._found(visit, page, facts, content, now)
        suspicion = Suspicion.NONE
        if page == visit.page:
            suspicion = self._collection.wrong_pages.suspect(visit.host, facts, content)
            self._probes.visited(is_again=facts.fingerprint is not None)
        noise = None if detector is None else detector.noise
        ruled = ruling(
            facts,
            content,
            finding,
            fetched.validators,
            suspicion,
            first=first,
            may_ask=page == visit.page and first is None and self._probes.may_ask(page, visit.host, noise),
            confirms_return=self._probes.confirms_return(noise),
            knows_template=self._probes.knows(noise, announced=not self._planner.announcements.is_silent(page)),
            min_change=self._min_change,
        )
        self.on_ruling(visit, content, ruled)
        if page != visit.page:
            ruled = ruled._replace(outcome=Outcome.MOVED)
        return self._carry_out(visit, page, fetched, content, facts, ruled, detector, finding, now)

    def _found(
        self, visit: Visit, page: int, facts: PageFacts, content: Content, now: float
    ) -> tuple[Detector | None, Finding | None]:
        """Let the detector judge content, and learn from a second fetch."""
        if content.seen is None:
            return None, None
        detector = self._detector(content)
        given, probe = given_trace(facts, content), visit.probe
        if probe is None and given is not None and content.text is None:  # the digest says that it is as it was
            content.seen.trace = given
        if probe is not None and _is_like(probe.first, content):
            self._learn_at_once(detector, probe, facts, content, now)
        return detector, detector.judge(content.seen, given, now, asked_at=visit.opened_at, learns=probe is None)

    def _learn_at_once(self, detector: Detector, probe: Probe, facts: PageFacts, content: Content, now: float) -> None:
        self._count("crawlsched/probes/made")
        if now - probe.asked_at < APART:  # what counts seconds may agree by chance
            return
        may_be_old = content.fingerprint != probe.first.fingerprint and not is_new(facts, content)
        assert probe.first.seen is not None
        assert content.seen is not None
        apart = (now - probe.asked_at) / max(probe.elapsed, now - probe.asked_at)
        is_surprised = detector.learn_at_once(probe.first.seen, content.seen, now, apart, may_be_old=may_be_old)
        if is_surprised:
            self._count("crawlsched/probes/noise_found")

    def _detector(self, content: Content) -> Detector:
        return self._collection.learned.detector(content.url, content.fingerprint.recipe)

    def _carry_out(
        self,
        visit: Visit,
        page: int,
        fetched: Fetched,
        content: Content,
        facts: PageFacts,
        ruled: Ruling,
        detector: Detector | None,
        finding: Finding | None,
        now: float,
    ) -> ForSpider:
        """Do what a ruling says: note, observe, end, keep, ask, deliver; each once, in this order."""
        elapsed = now - self._planner.pages.crawled_at.item(page)
        if ruled.outcome is Outcome.WRONG:
            self._collection.withheld.note(host_of(facts.url), "wrong_page", facts.url, now)
            self.end(visit, Outcome.WRONG, now, fetched)
            self._leave(visit, now, self._planner.failed)
            return ForSpider.NOTHING
        if ruled.ask is not None:
            is_impossible = ruled.ask is Ask.IMPOSSIBLE
            url = self._collection.wrong_pages.impossible_url(facts.url) if is_impossible else None
            self.end(visit, Outcome.PROBED, now, fetched)
            self._probes.ask(
                Probe(visit.page, visit.host, content, True, visit.validated, now, elapsed, is_impossible, url)
            )
            return ForSpider.NOTHING
        if detector is not None and _was_earlier(visit, ruled):
            detector.noise.n_returns = 0 if ruled.reason == "flapping" else detector.noise.n_returns + 1
        if ruled.reason == "template":
            self._count("crawlsched/template_edits")
        if detector is not None and content.seen is not None and finding is not None:
            self._collection.keep_learned(page, content.url, content.fingerprint.recipe, now)
        if page == visit.page:
            self._try_validators(visit, facts, fetched, ruled, now)
            self._note_passing(visit, facts, content, now)
        before = self._delivering.before(facts, is_new=ruled.is_new, reason=ruled.reason or None, now=now)
        is_first = self._planner.pages.crawled_at.item(page) == -inf
        self._observe(visit, ruled, page, fetched, now)
        self._collection.put_facts(ruled.facts or facts, now)
        if self._growth is not None:
            self._growth.visited(facts.url, content.fingerprint.digest, is_first=is_first)
        may_teach = page == visit.page and visit.probe is None and finding is not None and detector is not None
        if may_teach and self._probes.is_wanted(visit.host, finding, detector.noise):  # type: ignore[union-attr, arg-type]
            self._planner.hold(page)
            self._probes.ask(Probe(page, visit.host, content, False, visit.validated, now, elapsed))
        if ruled.is_new and content.packed_text is not None:
            self._collection.keep_text(page, content.packed_text, now)
        if before is None:
            return ForSpider.UNCHANGED
        before = before._replace(observation=self._observation)
        changed = True if ruled.is_new and ruled.kind != "first" else ruled.changed
        is_other = self._delivering.begin(visit.token, before, is_new=ruled.is_new, changed=changed, now=now)
        if is_other is None:  # the same content is on its way already
            return ForSpider.NOTHING
        return ForSpider.CHANGED if is_other else ForSpider.OWED

    def _note_passing(self, visit: Visit, facts: PageFacts, content: Content, now: float) -> None:
        """Something else was served in the place of this page a moment ago, and now the page is itself again."""
        probe = visit.probe
        if probe is None or not probe.is_held or probe.first.likeness == content.likeness:
            return
        wrong_pages = self._collection.wrong_pages
        has_passed = wrong_pages.is_replaced(facts, probe.first) and not wrong_pages.is_replaced(facts, content)
        if has_passed and wrong_pages.passed(visit.host, facts.url, probe.first):
            self._collection.save_host(visit.host, now)

    def _try_validators(self, visit: Visit, facts: PageFacts, fetched: Fetched, ruled: Ruling, now: float) -> None:
        """Content came that nobody had made conditional: did the validators move as it did?"""
        if visit.validated or ruled.changed is None or (visit.probe is not None and visit.probe.was_conditional):
            return
        before = facts.etag, facts.last_modified
        is_other = bool(ruled.changed) or ruled.is_new or ruled.reason in ("template", "minimum_change", "flapping")
        if self._collection.validators.compared(visit.host, before, fetched.validators, changed=is_other):
            self._count("crawlsched/validators/trials")
            self._collection.save_host(visit.host, now)

    def _probed(self, visit: Visit, fetched: Fetched, content: Content, now: float) -> ForSpider:
        """A second fetch taught what is noise, and nothing else: whether the page changed was judged by the first."""
        assert visit.probe is not None
        first = visit.probe.first.seen
        if _is_like(visit.probe.first, content):
            detector = self._detector(content)
            facts = self._collection.facts_of(visit.page)
            self._learn_at_once(detector, visit.probe, facts, content, now)
            assert first is not None
            assert content.seen is not None
            finding = detector.judge(content.seen, first.trace, now, learns=False)
            if finding.is_change and not finding.is_suspect:
                # It was edited between the two fetches: the spider is to have what came second, too.
                return self._seen(visit, visit.page, fetched, content, now)
            self._collection.keep_learned(visit.page, content.url, content.fingerprint.recipe, now)
        self.end(visit, Outcome.PROBED, now, fetched)
        self._planner.release(visit.page, now)
        return ForSpider.NOTHING

    def _impossible_answered(self, visit: Visit, probe: Probe, now: float, fetched: Fetched | None = None) -> ForSpider:
        """A host was asked for a page that cannot exist: what it answers with is served in the place of pages."""
        content = None if fetched is None else fetched.content
        is_wrong = content is not None and content.likeness == probe.first.likeness
        self.end(visit, Outcome.WRONG if is_wrong else Outcome.PROBED, now, fetched)
        self._collection.wrong_pages.answered(visit.host, probe.first.likeness)
        if content is not None and not content.fingerprint.is_empty:
            # Pages that scripts draw have no text, and are none the worse for it.
            self._collection.wrong_pages.learn(visit.host, content)
            self._collection.save_host(visit.host, now)
        if is_wrong:
            self.on_ruling(visit, probe.first, Ruling(Outcome.WRONG, ForSpider.NOTHING, reason="wrong_page"))
            url = self._collection.facts_of(visit.page).url
            self._collection.withheld.note(host_of(url), "wrong_page", url, now)
            self._leave(visit, now, self._planner.failed)
        else:
            self._probes.ask(replace(probe, impossible_url=None, asked_at=now))
        return ForSpider.NOTHING

    def _moved(self, visit: Visit, to: Request, fetched: Fetched, content: Content, now: float) -> ForSpider:
        """Every redirect was permanent: the page lives elsewhere now, and what came is that page's content."""
        old = self._collection.facts_of(visit.page)
        name = variant_fingerprint(self._request_fingerprint(to.url), old.variant)
        page = self._collection.index.page(name)
        if page == visit.page:  # an address that this project's fingerprinter takes for the same
            return self._seen(visit, page, fetched, content, now)
        before = self._planner.standing(visit.page)
        self._planner.moved(visit.page, now)
        self._collection.put_facts(old._replace(moved_to=to.url), now)
        found = self._arrived(visit, page, to, old, fetched, content, now)
        self._tell(visit.page, before, now)
        return found

    def _arrived(
        self, visit: Visit, page: int, to: Request, old: PageFacts, fetched: Fetched, content: Content, now: float
    ) -> ForSpider:
        """Content came of the page to which another one has moved; -1: it is no page yet."""
        if page < 0:
            importance = float(self._planner.pages.importance[visit.page])
            data = self._collection.credentials.complete(old.template, old.template_data)
            template = RequestTemplate(dict(data)) if data else None
            base = self._request_fingerprint(to.url)
            found = FoundPage(to.url, base, host_of(to.url), importance, template, old.depth, old.variant)
            if self._is_elsewhere(found, host_of(old.url), now):  # its owner crawls it, and delivers what it says
                self.end(visit, Outcome.MOVED, now, fetched)
                return ForSpider.UNCHANGED
            self._collection.limits.count(self._collection.rules.number(to.url))
            page = self._collection.add_pages([found], now)[0]
            self._count("crawlsched/pages/found")
        self._delivering.moved(visit.page, page, now)
        if self._planner.in_flight(page):
            # The page itself is being visited at this moment; that visit will tell.
            self.end(visit, Outcome.MOVED, now, fetched)
            return ForSpider.UNCHANGED
        return self._seen(visit, page, fetched, content, now)

    def _observe(
        self, visit: Visit, ruled: Ruling, page: int, fetched: Fetched, now: float, doubt: float = 0.0
    ) -> None:
        """Learn from a visit that reached content."""
        since = None
        if ruled.changed and self._collection.validators.tells_time(visit.host):
            since = seconds_since(fetched.last_modified, fetched.date, now)
        before = self._planner.standing(page)
        if self._planner.pages.state.item(page) != LIVE and self._planner.pages.n_errors.item(page):
            self._failing_hosts.returned(self._planner.pages.host.item(page))
        observation = self._planner.crawled(page, now, ruled.changed, doubt=doubt, time_since_modified=since)
        self._collection.unsaved.page(page, now)
        if ruled.changed:
            self._collection.unsaved.changed(page, now)
        if observation is not None and ruled.changed:
            self._count("crawlsched/changes_found")
        self.end(visit, ruled.outcome, now, fetched, observation=observation, size=ruled.size)
        self._tell(page, before, now)

    def _leave(self, visit: Visit, now: float, leave: Callable[..., None], retry_at: float | None = None) -> None:
        """A visit ended without content: its page backs off, and whoever follows the feed hears if that is news."""
        page, hosts = visit.page, self._collection.hosts
        before = self._planner.standing(page)
        free_at = hosts.free_at(visit.host, now)
        retry_at = max(retry_at or 0.0, free_at if free_at > now else 0.0) or None
        leave(page, now, retry_at, of_host=hosts.fails(visit.host))
        self._failing_hosts.have_news = True
        self._collection.unsaved.page(page, now)
        self._tell(page, before, now)

    def _tell(self, page: int, before: str, now: float) -> None:
        """Put it into the feed if a page stands otherwise than before; the same batch has its state."""
        standing = self._planner.standing(page)
        if standing == before:
            return
        back = "recovered" if before == "failing" else "back"
        self._collection.unsaved.told(page, now, back if standing == "live" else standing, self._observation)

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
            self._leave(visit, now, self._planner.failed, retry_at)

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
            # What some other component dropped would be picked again at once, so it backs off like an error.
            refused = outcome is Outcome.REFUSED
            self._leave(visit, now, self._planner.not_allowed if refused else self._planner.failed)

    def not_sent(self, visit: Visit, now: float) -> None:
        """A visit was taken back before anything was sent: its page is as if it had not been picked."""
        if self._was_forgotten(visit, now):
            return
        self.end(visit, Outcome.DROPPED, now)
        if visit.source >= 0:
            self._source_ended(visit.source, now)
        elif visit.page >= 0:
            self._planner.release(visit.page, now)

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
        self._planner.frontier.release_host(visit.host)
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
            time_since_modified=None if observation is None else observation.time_since_modified,
            outcome=str(outcome),
            status=None if fetched is None else fetched.status,
            size=None if fetched is None else fetched.size,
            changed_share=None if size is None else size.changed_share,
            similarity=None if size is None else size.similarity,
        )
        self._collection.unsaved.page(visit.page, now)

    def _hear_of_host(self, visit: Visit, outcome: Outcome, fetched: Fetched | None, now: float) -> None:
        """Errors of a server, refusals and wrong pages are the host's: its pages are not tried one after the other."""
        hosts, host = self._collection.hosts, visit.host
        status = 0 if fetched is None else fetched.status
        is_whole = host in self._collection.failing_hosts
        if outcome in _REACHED:
            if visit.page >= 0 or not is_whole:  # a sitemap says nothing of the pages
                hosts.answered(host)
            return
        is_of_host = outcome is Outcome.ERROR and (visit.unanswered or status >= 500 or status == 429)
        if fetched is not None and visit.page >= 0 and outcome in (Outcome.REFUSED, Outcome.WRONG, Outcome.GONE):
            # That pages of which one knows it are forbidden or gone is no news of their host.
            is_news = self._planner.pages.state.item(visit.page) == LIVE or hosts.fails(host)
            is_of_host = is_news and (outcome is not Outcome.GONE or is_whole)
        if is_of_host:
            hosts.failed(host, visit.opened_at, now, self._collection.settings.error_interval)
        if visit.page >= 0 and outcome not in (Outcome.PROBED, Outcome.DROPPED):
            said = "another page in their place" if outcome is Outcome.WRONG else str(status or "no answer")
            self._failing_hosts.answers[host] = said
