"""The refresher of a process that crawls some shards of a shared collection.

To Scrapy it is what `Refresher` is for a collection of one process. It has one slot clock, at the rate that this
process was granted, and one refresher for each shard; each of its flows finds the shard and goes on there.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from scrapy.crawler import Crawler

from crawlsched.collection.hosts import Hosts
from crawlsched.collection.shard import Shard
from crawlsched.collection.side_thread import Aside
from crawlsched.exceptions import StoreError
from crawlsched.frontier import DiscoveryShare
from crawlsched.refresh.guard import Guard
from crawlsched.refresh.handing_over import PAGE, HandingOver
from crawlsched.refresh.pacing import Line, Pace
from crawlsched.refresh.pings import announce, known_pages
from crawlsched.refresh.refresher import (
    SLOTS_OF_PATIENCE,
    Body,
    Content,
    Fetched,
    ForSpider,
    OneOfSeveral,
    Refresher,
)
from crawlsched.refresh.requested import Admitted, Asked
from crawlsched.refresh.retry_after import retry_after
from crawlsched.refresh.shared.holding import Holding
from crawlsched.refresh.shared.inbox import SIGNAL, Inbox
from crawlsched.refresh.shared.membership import Membership
from crawlsched.refresh.shared.routing import AllDeliveries, AllVisits, Tokens
from crawlsched.refresh.shared.turns import RoundRobin, Turns
from crawlsched.refresh.watchdog import Watchdog
from crawlsched.settings import Settings
from crawlsched.sharing import shard_of
from crawlsched.slot_clock import SlotClock
from crawlsched.sources.source_reading import SourceRead
from crawlsched.store import Outcome, PageFacts, Source, host_of, schema
from crawlsched.store.database import Database
from crawlsched.store.members import SharedCollection, about_me, application_of, new_token
from crawlsched.visits.starts import Starts
from crawlsched.visits.visits import Visit

__all__ = ["AnyRefresher", "SharedRefresher", "refresher_of"]

logger = logging.getLogger(__name__)

_Begun = TypeVar("_Begun")

# All processes pay back at once what they owe after a restart of their server: together 2 % of ten seconds.
_LONGEST_DEBT = 0.2
# A grant below this is none.
_LEAST_RATE = 1e-6
# Renewals wait for the database for so long, and are then tried again; a lease is twice as long.
_ANSWER_WITHIN = 3.0
# A process that ends writes the shards down that it was giving back, for so many seconds at most.
_LONGEST_LAST_WRITES = 20.0
_COUNTED_OVER = 60.0
_SLOT_KINDS = ("used", "idle", "no_free_host", "paid", "paused")


class SharedRefresher:
    """Some shards of a collection, kept fresh together.

    Parameters
    ----------
    settings : Settings
        With `shards`.
    spider : str
        The spider's name.
    clock : callable
        Gives POSIX seconds and never goes back.
    count : callable
        ``count(name, n=1)`` adds to a statistic.
    **others
        As for `Refresher`, of which there is one for each shard.

    Attributes
    ----------
    on_part : callable or None
        ``on_part(refresher, is_open)`` is told of each shard that begins or ends here.
    """

    def __init__(
        self, settings: Settings, spider: str, *, clock: Callable[[], float], count: Callable[..., None], **others: Any
    ) -> None:
        assert settings.shards is not None
        self.settings = settings
        self.clock = clock
        self.count = count
        self.hosts = Hosts(shares=dict(settings.host_shares))
        self.hosts.least_delay = others.pop("least_delay", 0.0)
        self.guard = Guard(count, clock)
        self.slots = SlotClock(settings.bandwidth, clock(), debt=_LONGEST_DEBT)
        self.line: Line[Any] = Line(Pace(settings.bandwidth))
        self.starts = Starts(settings.starts_first)
        self.one_pass = settings.one_pass or None
        #: Whether Scrapy has requests in line; the scheduler says how to know.
        self.has_requests: Callable[[], bool] = lambda: True
        #: Whether Scrapy closes the spider, and sends nothing any more; what is under way may take minutes still.
        self.is_ending: Callable[[], bool] = lambda: False
        self.last_sent_at: float | None = None
        self.lost_database: str | None = None
        self.not_data: dict[str, int] = {}
        self.is_open = False
        self.on_rate: Callable[[], None] | None = None
        self.on_part: Callable[[Refresher, bool], None] | None = None
        self.mishaps = self
        self.planner = self
        self.collection = self
        self.withheld = self
        self._on_work: Callable[[], None] | None = None
        self._spider = spider
        self._others = others
        self._token = new_token()
        self._parts: dict[int, Refresher] = {}
        self._tokens = Tokens()
        self.visits = AllVisits(self._tokens, self._parts, self.hosts, self._part_of_host)
        self.deliveries = AllDeliveries(self._tokens, self._parts)
        self._turns = Turns()
        self._rounds: dict[str, RoundRobin] = {}
        self._aside = Aside()
        self._watchdog = Watchdog(clock())
        self._rate = 0.0
        self._paused_by = False
        self._rested_at = -inf
        self._slot_counts = dict.fromkeys(_SLOT_KINDS, 0)
        self._sent: deque[tuple[float, int]] = deque()
        self._n_before = 0

    # -- opening and closing

    def open(self) -> None:
        """Join those who share the collection, and load the shards that nobody has."""
        settings = self.settings
        assert settings.collection is not None
        assert settings.shards is not None
        schema.prepare(settings.database_url)
        application = application_of(self._token)
        self._database = Database(settings.database_url, application=application)
        self._renewing = Database(settings.database_url, answer_within=_ANSWER_WITHIN, application=application)
        self._discovery_share = DiscoveryShare(settings.share_of_first_copies)
        self.shared = SharedCollection.open(self._database, settings.collection, settings.shards, settings.bandwidth)
        try:
            self._agree()
        except BaseException:
            self._renewing.close()
            self._database.close()
            raise
        n = self.shared.n_shards
        if n != settings.shards:
            logger.warning(
                "The collection %r has %d shards, and keeps them: CRAWLSCHED_SHARDS = %d counts where one is made.",
                settings.collection,
                n,
                settings.shards,
            )
        self._handing_over = HandingOver(self._token, n)
        self._inbox = Inbox(self.shared, self._parts, self.guard, self.count, self.clock)
        hours = settings.hours
        self._membership = Membership(
            SharedCollection(self._renewing, self.shared.name, self.shared.number, n),
            self._token,
            about_me(self._spider),
            rate_now=None if hours is None else hours.rate_at,
            pass_since=None if self.one_pass is None else self.shared.join_pass(),
        )
        self._holding = Holding(
            self._parts,
            self.shared,
            self._membership,
            self._inbox,
            self._aside,
            make=self._part,
            came=self._came,
            went=self._went,
            clock=self.clock,
            count=self.count,
        )
        self._membership.status = self._aims
        self._membership.start()
        try:
            self._holding.begin()
            if self._membership.seen is None:
                raise StoreError(f"The collection {self.shared.name!r} cannot be joined: {self._membership.failure}")
        except BaseException:
            # Who does not crawl keeps no shard from the others.
            self._membership.leaves()
            for part in self.parts:
                part.collection.abandon()
            self._end()
            raise
        self.is_open = True
        seen = self._membership.seen
        logger.info(
            "Collection %r in %s is shared: this process has %d of its %d shards, and %g of %g requests a second; "
            "`crawlsched status` shows all.",
            self.shared.name,
            self.shared.database.name,
            len(self._parts),
            n,
            self._membership.grant.rate,
            settings.bandwidth if seen is None else seen.rate,
        )
        if seen is not None and hours is None and seen.rate != settings.bandwidth:
            logger.warning(
                "The rate of the collection %r is %g requests a second, and that of these settings, %g, is not used; "
                "`crawlsched bandwidth` sets it for all processes.",
                self.shared.name,
                seen.rate,
                settings.bandwidth,
            )

    @property
    def _aims(self) -> dict[str, str]:
        """What all processes have to agree on, for others to see."""
        names = "crawl_value", "one_pass"
        return {name: str(getattr(self.settings, name)) for name in names}

    def _agree(self) -> None:
        """Refuse to join processes that crawl by other aims: one plan is made for all shards."""
        seen, mine = self.shared.look(), self._aims
        for member in seen.members.values():
            differ = [name for name in mine if member.status.get(name, mine[name]) != mine[name]]
            if differ and seen.is_alive(member.token):
                name = differ[0]
                raise StoreError(
                    f"The collection {self.shared.name!r} is crawled with CRAWLSCHED_{name.upper()} = "
                    f"{member.status[name]} ({member.spider} on {member.host}, process {member.pid}), and here it is "
                    f"{mine[name]}; set it to the same, or end all other processes first."
                )

    def _part(self, shard: int, epoch: int) -> Refresher:
        """Make the refresher of a shard, without its pages."""
        several = OneOfSeveral(
            Shard(self.shared, shard, self.shared.lease(shard, self._token, epoch), self.hosts),
            self._tokens.of(shard),
            self.guard,
            self.deliveries.untracked_ended,
            self._handing_over,
            self.starts.has_ended,
            self._discovery_share,
        )
        part = Refresher(
            self.settings, self._spider, clock=self.clock, count=self.count, several=several, **self._others
        )
        part.planner.set_bandwidth(self.settings.bandwidth / self.shared.n_shards, self.clock())
        return part

    def _came(self, shard: int, part: Refresher) -> None:
        """A shard begins here."""
        part.on_work = self._work_came
        if part.one_pass is not None and self._membership.pass_since is not None:
            part.one_pass.tried_since(self._membership.pass_since)
        # What a former stay of the shard here has found may be lost with it, and is handed over again when it is found.
        self._handing_over.forget(shard)
        if part.has_work:
            self._work_came()
        if self.on_part is not None:
            self.on_part(part, True)

    def _went(self, shard: int, part: Refresher) -> None:
        """A shard ends here: nothing more is sent for it."""
        self._turns.leave(shard)
        self._n_before += part.visits.dispatched
        if self.on_part is not None:
            self.on_part(part, False)

    def start_slots(self) -> None:
        """Let the grid of slots begin now: the time that loading took is not paid back."""
        now = self.clock()
        self.slots = SlotClock(max(self._rate, _LEAST_RATE), now, debt=_LONGEST_DEBT)
        self.line.pace = Pace(max(self._rate, _LEAST_RATE), now)
        self.starts.begin(now, self.settings.bandwidth)

    def closing(self) -> Iterator[Callable[[], None] | None]:
        """Give every shard back, then the rate; see `Refresher.closing`."""
        if not self.is_open:
            return
        self.is_open = False
        self._membership.leaves()
        yield from self._holding.closing()
        yield lambda: self._end()

    def _end(self) -> None:
        # A shard that is given back just now is written down there.
        self._aside.close(_LONGEST_LAST_WRITES)
        self._inbox.close(_ANSWER_WITHIN)
        self._membership.end(_ANSWER_WITHIN)
        self._renewing.close()
        self._database.close()

    # -- shards come and go

    @property
    def parts(self) -> Sequence[Refresher]:
        """The refreshers of the shards that this process has loaded."""
        return list(self._parts.values())

    def look(self, now: float) -> None:
        """Follow what the membership has heard since the last time; a timer calls this some times a second."""
        if not self.is_open:
            return
        self._aside.collect()
        self._adopt_rate(now)
        if self._membership.seen is not None:
            self.hosts.bandwidth = self._membership.seen.rate
        if self.is_ending() and self._membership.has_others:
            self._membership.leaves()
        self._holding.look(now)
        self._divide(now)
        self._inbox.look(now)

    def _adopt_rate(self, now: float) -> None:
        rate = self._membership.grant.rate
        rests = self.rests
        if rate != self._rate:
            self._rate = rate
            if rate > _LEAST_RATE:
                self.slots.set_rate(rate, now)
                self.line.pace.set_rate(rate, now)
        elif rests == self._paused_by:
            return
        self._paused_by = rests
        if self.on_rate is not None:
            self.on_rate()

    def _divide(self, now: float) -> None:
        """Tell each shard what it gets: it reckons its rounds by that, and the others what it would make of more."""
        targets = self._membership.targets
        for shard, part in self._parts.items():
            target = targets.get(shard, 0.0)
            if target > _LEAST_RATE and abs(target - part.planner.bandwidth) > 0.01 * target:
                part.planner.set_bandwidth(target, now)
        self._holding.tell(now)
        n = self._n_before + sum(part.visits.dispatched for part in self._parts.values())
        self._sent.append((now, n))
        while now - self._sent[0][0] > _COUNTED_OVER:
            self._sent.popleft()
        since, n_then = self._sent[0]
        rates = [(targets.get(s, 0.0), part.planner.threshold) for s, part in self._parts.items()]
        total = sum(rate for rate, _ in rates)
        status = {
            **self._aims,
            "shards": len(self._parts),
            "pages": sum(len(part.collection.index) for part in self._parts.values()),
            "dispatched": n,
            "sent_per_second": (n - n_then) / (now - since) if now > since else 0.0,
            "threshold": sum(rate * threshold for rate, threshold in rates) / total if total else None,
            "slots": {**self._slot_counts, "missed": self.slots.missed},
            "rests": self.rests,
            "is_done": self.one_pass is not None and self._is_done(now),
            "last_sent_at": self.last_sent_at,
        }
        self._membership.fares(status)

    # -- what is for other shards

    def signal(self, urls: Sequence[str], source: str, now: float) -> int:
        """Announce that pages may have changed, wherever they are; return how many of this process's were taken."""
        taken, elsewhere = 0, dict[str, list[str]]()
        for url in urls:
            part = self._part_of_host(host := host_of(url))
            if part is None:
                elsewhere.setdefault(host, []).append(url)
                continue
            pages, _ = known_pages(part, [url])
            taken += announce(part, pages, source, now)
        for host, some in elsewhere.items():
            row = self._handing_over.row(host, SIGNAL, {"urls": some, "source": source, "again": True}, now, of=None)
            assert row is not None
            self._membership.hand_over(row)
        return taken

    # -- which shard

    def _part_of_host(self, host: str) -> Refresher | None:
        return self._parts.get(shard_of(host, self.shared.n_shards))

    def _part_of(self, visit: Visit) -> Refresher | None:
        shard = self._tokens.shard_of(visit.token)
        return None if shard is None else self._parts.get(shard)

    def _own(self, visit: Visit) -> Refresher:
        part = self._part_of(visit)
        if part is None:
            raise KeyError(f"{visit} is of a shard that this process does not have any more.")
        return part

    def may_send(self, token: object = None) -> bool:
        """Say whether a request may be written at this moment: the last look, right before it goes."""
        shard = self._tokens.shard_of(token)
        if shard is not None and shard not in self._parts:
            return False
        if self._membership.may_send(self._rate, shard):
            return True
        if (visit := self.visits.get(token)) is not None and (part := self._part_of(visit)) is not None:
            part.not_sent(visit, self.clock())
        return False

    # -- a request is made

    def knows(self, asked: Asked) -> bool:
        """Whether a request would add nothing here; owners of other shards judge for themselves."""
        part = self._part_of_host(asked.host)
        return part is None or part.knows(asked)

    def requested(self, asked: Asked, now: float) -> Admitted:
        """The spider asks for a page: of a shard that is here, or it is handed over.

        What a visit of another shard makes new is handed over even if the shard is here. The two are written down one
        after the other, and a crash between them would keep the visit and lose the page.
        """
        found_in = None if asked.call is None else self._tokens.shard_of(asked.call.token)
        if found_in not in self._parts:
            found_in = None  # its delivery fails, and the next owner makes the visit again
        part = self._part_of_host(asked.host)
        if part is not None and found_in is not None and part is self._parts[found_in]:
            return part.requested(asked, now)
        asked = asked.of_another_shard()
        if part is not None and (found_in is None or part.knows(asked)):
            return part.requested(asked, now)
        row = self._handing_over.row(asked.host, PAGE, asked.to_dict(), now, of=found_in, says=asked.says())
        if row is None:
            self.count("crawlsched/known")
            return Admitted.KNOWN
        self.count("crawlsched/handed_over")
        if found_in is None:
            self._membership.hand_over(row)
        else:
            # With what the visit has taught, so that a crash loses both and the visit is made again, or neither.
            self._parts[found_in].collection.unsaved.outgoing(row, now)
        return Admitted.ELSEWHERE

    # -- a slot ticks

    def _in_turn(self, what: str, begin: Callable[[Refresher], _Begun | None]) -> _Begun | None:
        """Begin what the next shard that has such a thing has, and ask that shard last from now on."""
        rounds = self._rounds.setdefault(what, RoundRobin())
        for shard in rounds.order(self._holding.going()):
            if (begun := begin(self._parts[shard])) is not None:
                rounds.took(shard)
                return begun
        return None

    def next_page(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, PageFacts] | None:
        """Return the page that is worth most, of all shards, and begin its visit."""
        targets, parts = self._membership.targets, self._parts
        going = (shard for shard in self._holding.going() if not parts[shard].must_wait(now))
        shares = {shard: targets.get(shard, 0.0) for shard in going}

        def bound(shard: int) -> float:
            return parts[shard].planner.frontier.bound(now)

        def value(shard: int) -> float:
            return parts[shard].planner.frontier.best_value(now, host_free_at)

        def has_risen(shard: int) -> bool:
            return parts[shard].planner.frontier.host_returns(now)

        for shard in self._turns.order(shares, bound, value, has_risen):
            if (begun := parts[shard].next_page(now, host_free_at)) is not None:
                self._turns.took(shard, shares)
                return begun
        for shard in shares:
            if (one_pass := parts[shard].one_pass) is not None:
                one_pass.is_drained = True
        return None

    def next_start(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, PageFacts] | None:
        """Return the page of the next start request that goes before all others, and begin its visit."""
        return self._in_turn("start", lambda part: part.next_start(now, host_free_at))

    def next_source(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, str] | None:
        """Return the URL of a sitemap that is due, and begin its visit."""
        return self._in_turn("source", lambda part: part.next_source(now, host_free_at))

    def next_probe(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, PageFacts] | None:
        """Return what has to be fetched before a visit can be judged, and begin its visit."""
        return self._in_turn("probe", lambda part: part.next_probe(now, host_free_at))

    def others_may_go(self, now: float) -> bool:
        """Whether the pages that wait for the first start requests may go."""
        is_over = self.starts.look(now, lambda page: False, self.deliveries.is_waited_for)
        still_first = [part for part in self._parts.values() if not part.others_may_go(now)]  # each has to be asked
        return is_over and not still_first

    def must_wait(self, now: float) -> bool:
        """Whether nothing may be dispatched until the stores of all shards, or their inboxes, have caught up."""
        return self._inbox.is_full or (bool(self._parts) and all(part.must_wait(now) for part in self.parts))

    def waits_for_host(self) -> bool:
        """Whether some page could go if its host did not rest."""
        return any(part.planner.frontier.waits_for_host() for part in self._parts.values())

    def is_quiet(self) -> bool:
        """Whether start(), and all pages and requests that this run has asked for here, have ended."""
        return self.starts.has_ended and not self.deliveries.n_untracked and all(p.is_quiet() for p in self.parts)

    def pass_is_over(self, now: float) -> bool:
        """Whether the pass of the collection is over, and not only that of the shards that are here."""
        return self._membership.pass_is_over

    def _is_done(self, now: float) -> bool:
        """Whether nothing is left to try here, and nothing is on its way that may lead to more."""
        if not self.starts.has_ended or self.deliveries.n_untracked or self.has_requests():
            return False
        is_written = self._membership.has_said_all and not any(p.collection.unsaved_for(now) for p in self.parts)
        return is_written and all(part.pass_is_over(now) and not part.deliveries for part in self.parts)

    def start_ended(self) -> None:
        """start() has ended."""
        self.starts.has_ended = True
        for part in self._parts.values():
            part.start_ended()

    def leads(self, page: int, token: int) -> bool:
        """Whether a response is of a start request that goes first, or of what it led to."""
        shard = self._tokens.shard_of(token)
        if shard is not None and shard in self._parts:
            return self._parts[shard].leads(page, token)
        return self.starts.leads(-1, token)

    # -- a visit goes on and ends

    def validators(self, visit: Visit) -> tuple[str | None, str | None]:
        """See `Refresher.validators`."""
        return self._own(visit).validators(visit)

    def reading(self, visit: Visit, body: Body, meant: object) -> tuple[partial[Content], bool]:
        """See `Refresher.reading`."""
        return self._own(visit).reading(visit, body, meant)

    def page_names(self, visit: Visit, url: str, body: bytes, now: float) -> None:
        """See `Refresher.page_names`."""
        if (part := self._part_of(visit)) is not None:
            part.page_names(visit, url, body, now)

    def crawled(self, visit: Visit, fetched: Fetched, now: float) -> ForSpider | None:
        """See `Refresher.crawled`; of a shard that has gone the spider gets what it would get without us."""
        part = self._part_of(visit)
        return None if part is None else part.crawled(visit, fetched, now)

    def truncated(self, visit: Visit, fetched: Fetched, now: float) -> ForSpider | None:
        """See `Refresher.truncated`; as `crawled`."""
        part = self._part_of(visit)
        return None if part is None else part.truncated(visit, fetched, now)

    def failed(self, visit: Visit, now: float, *, retry_at: float | None = None) -> None:
        """A visit ended with an error."""
        if (part := self._part_of(visit)) is not None:
            part.failed(visit, now, retry_at=retry_at)
        else:
            self.visits.resolve(visit.token, Outcome.ERROR)

    def came_late(self, token: int, now: float) -> Visit | None:
        """See `Refresher.came_late`."""
        part = self._parts[self._tokens.shard_of(token)]  # type: ignore[index]
        return part.came_late(token, now)

    def resolve(self, visit: Visit, outcome: Outcome, now: float) -> None:
        """A visit ended without a response."""
        if (part := self._part_of(visit)) is not None:
            part.resolve(visit, outcome, now)
        else:
            self.visits.resolve(visit.token, outcome)
            self.deliveries.failed(visit.token, now)

    def is_asked_for(self, visit: Visit) -> bool:
        """See `Refresher.is_asked_for`."""
        return self._own(visit).is_asked_for(visit)

    def of_visit(self, visit: Visit, error: Exception, now: float) -> None:
        """Something went wrong with a visit; see `Mishaps.of_visit`."""
        if (part := self._part_of(visit)) is not None:
            part.mishaps.of_visit(visit, error, now)

    def not_the_page(self, token: object, url: str, now: float) -> None:
        """The spider's callback says that a response is not the page it should be."""
        shard = self._tokens.shard_of(token)
        if shard is not None and shard in self._parts:
            self._parts[shard].not_the_page(token, url, now)

    def visited_source(self, visit: Visit) -> Source:
        """Return the source that a visit is to."""
        return self._own(visit).visited_source(visit)

    def read_source(self, visit: Visit, url: str, body: bytes) -> SourceRead:
        """Read a sitemap or robots.txt; runs in a thread, and changes nothing."""
        return self._own(visit).read_source(visit, url, body)

    def source_read(
        self, visit: Visit, read: SourceRead, etag: str | None, last_modified: str | None, now: float
    ) -> None:
        """A source was read."""
        if (part := self._part_of(visit)) is not None:
            part.source_read(visit, read, etag, last_modified, now)

    def source_answered(self, visit: Visit, status: int, now: float) -> None:
        """A source gave no new content."""
        if (part := self._part_of(visit)) is not None:
            part.source_answered(visit, status, now)

    def sent(self, now: float, unpaid: bool) -> None:
        """A request is written now; `unpaid` says that no slot was taken for it yet."""
        self.last_sent_at = now
        if unpaid:
            self.slots.pay(now)
            self.count_slots("paid")

    # -- what hosts ask for

    def host_rests(self, host: str, value: str, now: float) -> None:
        """A host sent Retry-After."""
        if (part := self._part_of_host(host)) is not None:
            part.host_rests(host, value, now)
        elif (until := retry_after(value, now)) is not None:
            self.hosts.rest(self.hosts.number(host), until)

    def robots_seen(self, url: str, host: str, sitemaps: list[str], crawl_delay: float | None, now: float) -> None:
        """A robots.txt was read."""
        if (part := self._part_of_host(host)) is not None:
            part.robots_seen(url, host, sitemaps, crawl_delay, now)
        else:
            self.hosts.set_crawl_delay(self.hosts.number(host), crawl_delay)

    def ask_again(self, host: str, now: float) -> None:
        """A host's robots.txt has changed: what it had forbidden may be asked for at once."""
        if (part := self._part_of_host(host)) is not None:
            part.ask_again(host, now)

    # -- rates

    def set_bandwidth(self, bandwidth: float, now: float) -> None:
        """Crawl at another rate from now on: all processes together, within some seconds."""
        self._aside.run("setting the bandwidth", lambda: self.shared.set_rate(bandwidth))

    @property
    def rests(self) -> bool:
        """Whether nothing may go out: in a pause, by the hours of CRAWLSCHED_BANDWIDTH, or without a grant."""
        membership = self._membership
        if membership.paused_since is not None or membership.rests_by_hours:
            return True
        return self._rate <= _LEAST_RATE or not membership.may_send(0.0)

    # -- what timers call

    def flush(self, now: float) -> None:
        """Hand what is not written yet to the stores."""
        if self.rests:
            self._rested_at = now
        with self.shared.writing.together():
            for part in self.parts:
                part.rested_at = self._rested_at
                part.flush(now)
        patience = max(self.settings.visit_timeout, SLOTS_OF_PATIENCE / self.slots.rate)
        if now - self._rested_at <= patience:
            return
        old = now - patience
        for visit in self.visits.older_than(old):
            self.resolve(visit, Outcome.DROPPED, now)
        self.deliveries.give_up(old, now)

    def heartbeat(self, now: float) -> bool:
        """Say of each shard how it fares; that the process lives is said with each renewal."""
        for part in self.parts:
            part.heartbeat(now)
        return True

    def stuck(self, now: float, *, may_send: bool) -> str | None:
        """Return why this crawl has to end if nothing goes out although something could; None: all is well."""
        parts = [part for part in self.parts if not part.must_wait(now) and not part.planner.frontier.waits_for_host()]
        return self._watchdog.look(
            now,
            dispatched=self._n_before + sum(part.visits.dispatched for part in self.parts) + self.slots.taken,
            may=may_send
            and not self.rests
            and not self._inbox.is_full
            and (self.slots.is_due(now) or any(part.planner.frontier.next_event(now) <= now for part in parts)),
            distance=1.0 / self.slots.rate,
        )

    def count_slots(self, kind: str, n: int = 1) -> None:
        """Count what became of slots."""
        self._slot_counts[kind] += n
        self.count(f"crawlsched/slots/{kind}", n)

    def known_pages(self) -> tuple[int, int]:
        """Return how many pages are known here, and how many of them were crawled; O(pages)."""
        known = [part.known_pages() for part in self.parts]
        return sum(n for n, _ in known), sum(n for _, n in known)

    def note(self, host: str, reason: str, url: str, now: float) -> None:
        """Note that something does not reach the spider; see `Withheld.note`."""
        if (part := self._part_of_host(host)) is not None:
            part.collection.withheld.note(host, reason, url, now)

    @property
    def n_noted(self) -> int:
        """How much was withheld in this run, of the shards that are here."""
        return sum(part.collection.withheld.n_noted for part in self.parts)

    # -- long work in slices

    @property
    def on_work(self) -> Callable[[], None] | None:
        """What is called when long work comes."""
        return self._on_work

    @on_work.setter
    def on_work(self, listener: Callable[[], None] | None) -> None:
        self._on_work = listener

    def _work_came(self) -> None:
        if self._on_work is not None:
            self._on_work()

    @property
    def has_work(self) -> bool:
        """Whether long work waits for `work`."""
        return any(part.has_work for part in self.parts)

    def work(self, seconds: float) -> bool:
        """Go on with long work for about so long; return whether there is more."""
        busy = [part for part in self.parts if part.has_work]
        for part in busy:
            part.work(seconds / len(busy))
        return self.has_work


AnyRefresher = Refresher | SharedRefresher

_shared: WeakKeyDictionary[Crawler, SharedRefresher | None] = WeakKeyDictionary()


def refresher_of(crawler: Crawler) -> AnyRefresher:
    """Return the refresher of a crawler, making it if it is the first to be asked for."""
    if crawler not in _shared:
        settings, spider, others = Refresher.arguments_for(crawler)
        _shared[crawler] = None if settings.shards is None else SharedRefresher(settings, spider, **others)
    shared = _shared[crawler]
    return Refresher.of(crawler) if shared is None else shared
