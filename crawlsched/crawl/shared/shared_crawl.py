"""SharedCrawl: the additional work of a crawl whose collection is shared by several processes."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any

from scrapy.crawler import Crawler

from crawlsched.crawl.collection import FoundPage
from crawlsched.crawl.page_requests import FOUND, PAGE, AdmissionResult, Handover, PageRequest, to_data
from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.request_templates import RequestTemplate
from crawlsched.crawl.shared.holding import Holding
from crawlsched.crawl.shared.inbox import SIGNAL, Inbox
from crawlsched.crawl.shared.membership import Membership
from crawlsched.crawl.side_thread import Aside
from crawlsched.exceptions import StoreError
from crawlsched.sharing import LEASE, written_curve
from crawlsched.store import Batch, host_of, schema
from crawlsched.store.database import Database
from crawlsched.store.lease import me
from crawlsched.store.members import SharedCollection, application_of, new_token

__all__ = ["SharedCrawl", "refresher_of"]

logger = logging.getLogger(__name__)

# A smaller grant counts as no grant.
_LEAST_RATE = 1e-6
# A renewal waits for the database for this number of seconds, and is then tried again.
_ANSWER_WITHIN = LEASE / 2
_COUNTED_OVER = 60.0


class SharedCrawl:
    """A process among those that share a collection: its grant, its shards, and its rows for the others.

    Parameters
    ----------
    refresher : Refresher
        The crawl of the shards that are here.
    spider : str
        The spider's name.

    Attributes
    ----------
    handing_over : Handover
        Numbers the rows for shards of other processes; made by `open`.
    pass_since : float, optional
        The start of the pass in which this process takes part; set by `open`.
    """

    handing_over: Handover

    def __init__(self, refresher: Refresher, spider: str) -> None:
        self._refresher = refresher
        self._spider = spider
        self._token = new_token()
        self._aside = Aside(refresher.guard_beside)
        self._granted = 0.0
        #: What the last look has found: the rate per second, whether nothing may go out, whether the receivers of rows
        #: have to catch up, and whether the pass of all processes is over.
        self.rate, self.rests, self.is_full, self.pass_is_over = _LEAST_RATE, True, False, False
        self._sent: deque[tuple[float, int]] = deque()

    # -- opening and closing

    def open(self) -> None:
        """Join the processes that share the collection, and load shards that have no owner."""
        settings, collection = self._refresher.settings, self._refresher.collection
        assert settings.collection is not None
        assert settings.shards is not None
        schema.prepare(settings.database_url)
        application = application_of(self._token)
        self._database = Database(settings.database_url, application=application)
        self._renewing = Database(settings.database_url, answer_within=_ANSWER_WITHIN, application=application)
        try:
            self.shared = SharedCollection.open(
                self._database, settings.collection, settings.shards, settings.bandwidth
            )
            self._agree()
        except BaseException:
            self._renewing.close()
            self._database.close()
            raise
        n = collection.shards.n = self.shared.n_shards
        self.handing_over = Handover(self._token, n)
        self._inbox = Inbox(self.shared, self._refresher)
        self.pass_since = None if self._refresher.one_pass is None else self.shared.join_pass()
        hours = settings.hours
        self._membership = Membership(
            SharedCollection(self._renewing, self.shared.name, self.shared.number, n),
            self._token,
            me(self._spider),
            rate_now=None if hours is None else hours.rate_at,
            pass_since=self.pass_since,
        )
        self._holding = Holding(self._refresher, self.shared, self._membership, self._inbox, self._aside)
        self._membership.status = self._aims
        self._membership.start()
        try:
            self._holding.begin()
            if self._membership.seen is None:
                raise StoreError(f"The collection {self.shared.name!r} cannot be joined: {self._membership.failure}")
        except BaseException:
            # This process will not crawl, so the other processes must get its shards.
            self._membership.leaves()
            self.close(self._refresher.clock())
            raise
        seen = self._membership.seen
        logger.info(
            "Collection %r in %s is shared: this process has %d of its %d shards, and %g of %g requests a second; "
            "`crawlsched status` shows all.",
            *(self.shared.name, self.shared.database.name, len(collection.shards.here), n),
            *(self._membership.grant.rate, seen.rate),
        )
        if n != settings.shards or (hours is None and seen.rate != settings.bandwidth):
            logger.warning(
                "The collection %r keeps its %d shards and its %g requests a second: CRAWLSCHED_SHARDS = %d and "
                "CRAWLSCHED_BANDWIDTH are used only for new collections; `crawlsched bandwidth` sets the common rate.",
                *(self.shared.name, n, seen.rate, settings.shards),
            )

    @property
    def _aims(self) -> dict[str, str]:
        """Return the settings that must be the same in all processes."""
        names = "crawl_value", "one_pass"
        return {name: str(getattr(self._refresher.settings, name)) for name in names}

    def _agree(self) -> None:
        """Refuse to join processes with other settings, since the settings decide how the rate is divided."""
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

    def ends(self) -> None:
        """Claim no more shards, and tell the other members."""
        self._membership.leaves()

    def close(self, now: float) -> None:
        """Write all changes, and give back all shards and the rate."""
        collection = self._refresher.collection
        try:
            collection.write_last(now)
            self.shared.beat(self._said_of_shards())
        except StoreError as error:
            logger.error("Not all changes of the shards could be written: %s", error)
        finally:
            self._aside.close(_ANSWER_WITHIN)
            self._inbox.close(_ANSWER_WITHIN)
            self._membership.end(_ANSWER_WITHIN)
            self._renewing.close()
            self._database.close()

    # -- called by timers

    def look(self, now: float) -> None:
        """Follow the membership's newest renewal. A timer calls this several times a second."""
        refresher, membership = self._refresher, self._membership
        self._aside.collect()
        self._adopt_rate(now)
        self.is_full, self.pass_is_over = self._inbox.is_full, membership.pass_is_over
        if membership.seen is not None:
            refresher.hosts.bandwidth = membership.seen.rate
            here, shards = refresher.collection.shards.here, membership.seen.shards.items()
            refresher.collection.rules.n_elsewhere = sum(row.n_pages for n, row in shards if n not in here)
        if refresher.is_ending() and membership.has_others:
            membership.leaves()
        self._holding.look(now)
        share = membership.targets.get(self._token, 0.0)
        if share > _LEAST_RATE and abs(share - refresher.planner.bandwidth) > 0.01 * share:
            refresher.planner.set_bandwidth(share, now)
        while left_out := refresher.collection.write_behind.left_out:
            self._hand_on(left_out.popleft(), now)
        is_done = refresher.one_pass is not None and self._is_done(now)
        membership.fares({"is_done": is_done, "dispatched": refresher.visits.dispatched}, lambda: self._status(now))
        self._inbox.look(now)

    def _adopt_rate(self, now: float) -> None:
        membership, rate = self._membership, self._membership.grant.rate
        is_paused = membership.paused_since is not None or membership.rests_by_hours
        rests = is_paused or rate <= _LEAST_RATE or not membership.may_send(0.0)
        if rate == self._granted and rests == self.rests:
            return
        if rate != self._granted and rate > _LEAST_RATE:
            self._refresher.rate.slots.set_rate(rate, now)
            self._refresher.rate.pace.set_rate(rate, now)
        self._granted, self.rate, self.rests = rate, max(rate, _LEAST_RATE), rests
        self._refresher.rate.on_rate()

    def _status(self, now: float) -> dict[str, Any]:
        """Return the status that this process reports with each renewal."""
        refresher = self._refresher
        n = refresher.visits.dispatched
        self._sent.append((now, n))
        while now - self._sent[0][0] > _COUNTED_OVER:
            self._sent.popleft()
        since, n_then = self._sent[0]
        return {
            **refresher.status(now),
            **self._aims,
            "shards": len(refresher.collection.shards.here),
            "sent_per_second": (n - n_then) / (now - since) if now > since else 0.0,
            "curve": self._demand(),
        }

    def _demand(self) -> str | None:
        """Return the packed demand curve of this process's pages: the rate that they want at each crawl value."""
        plan, n_pages = self._refresher.planner.plan, len(self._refresher.collection.index)
        if plan is None:
            return None
        # Pages of hosts with a limit of their own are not scaled up, since they cannot use a higher rate.
        return written_curve(plan.demand, plan.n_pages, n_pages - plan.n_held)

    def _is_done(self, now: float) -> bool:
        """Whether this process has no page to crawl, and no work under way from which pages may come."""
        refresher = self._refresher
        if len(refresher.book) or refresher.has_requests() or self._membership.outgoing:
            return False
        return refresher.nothing_is_left(now) and not refresher.collection.unsaved_for(now)

    def heartbeat(self) -> None:
        """Write for each shard what its next owner has to know. Renewals report that the process lives."""
        if not self._aside.is_busy_with("the heartbeat"):
            said = self._said_of_shards()
            self._aside.run("the heartbeat", lambda: self.shared.beat(said))

    def _said_of_shards(self) -> list[tuple[int, str, int, dict[str, Any]]]:
        return [
            (shard.number, shard.store.lease.token, shard.n_pages, self._refresher.status_of_shard())
            for shard in self._refresher.collection.shards
            if shard.store.lease is not None
        ]

    # -- called by the crawl

    def may_send(self, shard: int | None) -> bool:
        """Return whether a request for a shard (None: for no shard) may be sent at this moment."""
        return self._membership.may_send(self._granted, shard)

    def set_bandwidth(self, bandwidth: float) -> None:
        """Set the rate of all processes together, which they follow within some seconds."""
        self._aside.run("setting the bandwidth", lambda: self.shared.set_rate(bandwidth))

    def hand_over(self, asked: PageRequest, now: float) -> AdmissionResult:
        """Hand the spider's request for a page of a shard that is not here to the shard's owner."""
        refresher = self._refresher
        shard = refresher.collection.shards.of_page(asked.found_on) if asked.found_on >= 0 else None
        of = None if shard is None else shard.number
        row = self.handing_over.row(asked.page.host, PAGE, asked.to_dict(), now, of=of, says=asked.says())
        if row is None:
            refresher.count("crawlsched/known")
            return AdmissionResult.KNOWN
        refresher.count("crawlsched/handed_over")
        if of is None:
            self._membership.hand_over(row)
        else:
            # One transaction writes the row and the result of the visit that found it. So after a crash both are
            # stored, or the visit is made again.
            refresher.collection.unsaved.of_shard(of, now).outgoing.append(row)
        return AdmissionResult.ELSEWHERE

    def _hand_on(self, batch: Batch, now: float) -> None:
        """Hand over the new pages of a batch that was not written, since its shard was lost.

        The visits that found the pages may be stored already. Then nothing would find these pages again.
        """
        for new in batch.new_pages.values():
            data = batch.templates.get(new.template or b"")
            template = RequestTemplate(dict(data)) if data else None
            page = FoundPage(new.url, new.request_fingerprint, new.host, None, template, new.depth)
            row = self.handing_over.row(new.host, FOUND, to_data(page), now, of=None)
            if row is not None:
                self._membership.hand_over(row)

    def signal(self, urls: Sequence[str], source: str, now: float) -> int:
        """Announce that pages of any shard may have changed; return how many announcements this process took."""
        here, elsewhere = list[str](), dict[str, list[str]]()
        for url in urls:
            host = host_of(url)
            is_here = self._refresher.collection.shards.of_name(host) is not None
            (here if is_here else elsewhere.setdefault(host, [])).append(url)
        for host, some in elsewhere.items():
            row = self.handing_over.row(host, SIGNAL, {"urls": some, "source": source, "again": True}, now, of=None)
            assert row is not None
            self._membership.hand_over(row)
        return self._refresher.polls.signal(here, source, now)


def refresher_of(crawler: Crawler) -> Refresher:
    """Return the refresher of a crawler, which is made at the first call."""
    return Refresher.of(crawler, SharedCrawl)
