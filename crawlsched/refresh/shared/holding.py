"""Holding: the shards that this process has; they are claimed, loaded, crawled, and given back or lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from crawlsched.collection.heap import give_memory_back
from crawlsched.collection.side_thread import Aside
from crawlsched.planner import Plan
from crawlsched.refresh.refresher import Refresher
from crawlsched.refresh.shared.inbox import Inbox
from crawlsched.refresh.shared.membership import Membership, Published
from crawlsched.sharing import grown_curve
from crawlsched.showing import in_words
from crawlsched.store.members import Received, SharedCollection

__all__ = ["Holding"]

logger = logging.getLogger(__name__)

# A process that begins loads what it can claim before its spider starts, for so many seconds at most.
_LONGEST_BEGINNING = 10.0
_BETWEEN_LOOKS = 3.0
# A shard that is given away ends its visits first, for so many seconds at most.
_LONGEST_DRAIN = 4.0
# The others are told of a shard that has grown by this share, or was planned anew, at most every so many seconds.
_GROWN, _BETWEEN_NEWS = 0.1, 2.0


class Holding:
    """Follows what the membership has heard: loads what was claimed, and ends what is given away or lost.

    Parameters
    ----------
    parts : dict of int to Refresher
        The shards that are loaded; this alone changes it.
    shared : SharedCollection
    membership : Membership
    inbox : Inbox
    aside : Aside
        Where shards are loaded and written down.
    make : callable
        ``make(shard, epoch)`` gives the refresher of a shard, without its pages.
    came, went : callable
        ``came(shard, part)`` and ``went(shard, part)`` are told of each shard that begins or ends here.
    clock : callable
        Gives POSIX seconds.
    count : callable
        ``count(name)`` adds one to a statistic.
    """

    def __init__(
        self,
        parts: dict[int, Refresher],
        shared: SharedCollection,
        membership: Membership,
        inbox: Inbox,
        aside: Aside,
        *,
        make: Callable[[int, int], Refresher],
        came: Callable[[int, Refresher], None],
        went: Callable[[int, Refresher], None],
        clock: Callable[[], float],
        count: Callable[..., None],
    ) -> None:
        self._parts = parts
        self._shared = shared
        self._membership = membership
        self._inbox = inbox
        self._aside = aside
        self._make, self._came, self._went = make, came, went
        self._clock = clock
        self._count = count
        self._epochs: dict[int, int] = {}
        self._loading: set[int] = set()
        # Until when a shard that is given away may end its visits.
        self._draining: dict[int, float] = {}
        self._closing: dict[int, Iterator[Callable[[], None] | None]] = {}
        self._published: dict[int, tuple[float, int, Plan | None]] = {}

    def going(self) -> Iterator[int]:
        """Give the shards that are not about to be given back."""
        return (shard for shard in self._parts if shard not in self._draining)

    def begin(self) -> None:
        """Load what nobody has, before the spider starts: its first requests are then for pages that are known."""
        until = self._clock() + _LONGEST_BEGINNING
        membership = self._membership
        membership.renewed.wait(_LONGEST_BEGINNING)
        while self._clock() < until:
            claimed = {shard: e for shard, e in membership.mine().items() if shard not in self._parts}
            for shard, epoch in sorted(claimed.items()):
                if self._clock() >= until:
                    break  # the rest is loaded beside the crawl, and others may have some of it
                part = self._make(shard, epoch)
                self._begun(shard, epoch, part, self._opened(shard, part))
            membership.renewed.clear()
            membership.renewed.wait(_BETWEEN_LOOKS)
            is_known = membership.seen is not None and membership.failure is None
            if is_known and self._parts.keys() >= membership.mine().keys() and not membership.is_claiming:
                return

    def look(self, now: float) -> None:
        """Take up what the database said since the last call; a timer calls this several times a second."""
        owned = self._membership.mine()
        for shard in [shard for shard, epoch in self._epochs.items() if owned.get(shard) != epoch]:
            if shard in self._parts:
                self._lose(shard)
        for shard, epoch in owned.items():
            if self._membership.is_leaving and shard not in self._parts:
                self._leave(shard, epoch)
            elif shard not in self._parts and shard not in self._loading and shard not in self._closing:
                self._load(shard, epoch)
        for shard in list(self._parts) if self._membership.is_leaving else self._membership.to_release:
            if shard in self._parts and shard not in self._draining:
                self._draining[shard] = now + _LONGEST_DRAIN
                self._publish(shard, now, ready=False)
        for shard, until in list(self._draining.items()):
            part = self._parts.get(shard)
            if part is None:
                del self._draining[shard]
            elif now >= until or not (part.visits or part.deliveries):
                self._give_back(shard)

    def tell(self, now: float) -> None:
        """Tell the others of the shards that have grown, or were planned anew, since they were told."""
        for shard in self.going():
            part, (at, n_pages, plan) = self._parts[shard], self._published[shard]
            is_new = plan is not part.planner.plan or abs(len(part.collection.index) - n_pages) > _GROWN * n_pages
            if is_new and now - at >= _BETWEEN_NEWS:
                self._publish(shard, now)

    def closing(self) -> Iterator[Callable[[], None] | None]:
        """Give every shard back; see `Refresher.closing`."""
        for shard, epoch in self._membership.mine().items():
            if shard not in self._parts:
                self._leave(shard, epoch)
        for shard in list(self._parts):
            part = self._parts[shard]
            self._stop_for(shard)
            yield from _to_the_end(part)
            del self._parts[shard]
        for closing in list(self._closing.values()):
            yield from closing

    # -- one comes

    def _load(self, shard: int, epoch: int) -> None:
        part = self._make(shard, epoch)
        self._loading.add(shard)

        def load() -> list[Received] | Exception:
            try:
                return self._opened(shard, part)
            except Exception as error:
                return error

        def loaded(found: list[Received] | Exception) -> None:
            self._loading.discard(shard)
            if isinstance(found, Exception):
                logger.error(
                    "The shard %d cannot be loaded, and is left to another process: %s", shard, in_words(found)
                )
                self._membership.stops(shard, epoch, failed=True)
                self._membership.is_done_with(shard)
            elif self._membership.mine().get(shard) != epoch or self._membership.is_leaving:
                part.collection.abandon()
            else:
                self._begun(shard, epoch, part, found)

        self._aside.run(f"loading the shard {shard}", load, loaded)

    def _opened(self, shard: int, part: Refresher) -> list[Received]:
        """Load a shard, and return what waits for it; any thread may."""
        part.collection.open(self._clock())
        try:
            return self._inbox.waiting(shard)
        except BaseException:
            part.collection.abandon()
            raise

    def _begun(self, shard: int, epoch: int, part: Refresher, waiting: list[Received]) -> None:
        """A shard is loaded: from now on it gets its share."""
        part.begin()
        self._parts[shard], self._epochs[shard] = part, epoch
        self._inbox.begun(shard, waiting)
        self._publish(shard, self._clock())
        self._count("crawlsched/shards/claimed")
        self._came(shard, part)

    def _publish(self, shard: int, now: float, *, ready: bool = True) -> None:
        part = self._parts[shard]
        plan, n_pages = part.planner.plan, len(part.collection.index)
        # New pages of a host that may be asked only so often make no demand beyond what it allows.
        curve = None if plan is None else grown_curve(plan.demand, plan.n_pages, n_pages - plan.n_held)
        token = self._shared.lease(shard, self._membership.token, self._epochs[shard]).token
        self._published[shard] = (now, n_pages, plan)
        self._membership.publish(Published(shard, token, n_pages, curve, ready))

    # -- one goes

    def _stop_for(self, shard: int) -> None:
        """Send nothing more for a shard."""
        self._membership.stops(shard, self._epochs.pop(shard))
        self._draining.pop(shard, None)
        self._inbox.ended(shard)
        self._went(shard, self._parts[shard])

    def _leave(self, shard: int, epoch: int) -> None:
        """Give a shard back that is not loaded yet: there is nothing to write down."""
        self._membership.stops(shard, epoch)
        self._membership.is_done_with(shard)

    def _give_back(self, shard: int) -> None:
        """Write a shard down and give it back, for another process should have it."""
        self._stop_for(shard)
        self._count("crawlsched/shards/released")
        self._closing[shard] = _to_the_end(self._parts.pop(shard))
        self._close_on(shard)

    def _lose(self, shard: int) -> None:
        """Another process has claimed a shard, for this one was silent: what is not written is not ours any more."""
        self._stop_for(shard)
        part = self._parts.pop(shard)
        part.is_open = False
        self._count("crawlsched/shards/lost")
        logger.warning("The shard %d was taken over by another process, for this one was silent too long.", shard)
        self._closing[shard] = iter(())
        abandon = partial(_whatever_happens, part.collection.abandon)
        self._aside.run(f"closing the shard {shard}", abandon, self._closed(shard))

    def _close_on(self, shard: int) -> None:
        for step in self._closing[shard]:
            if step is not None:
                self._aside.run(f"closing the shard {shard}", step, self._closed(shard))
                return
        del self._closing[shard]
        self._membership.is_done_with(shard)
        self._aside.run("giving memory back", give_memory_back)

    def _closed(self, shard: int) -> Callable[[Any], None]:
        return lambda _: self._close_on(shard)


def _to_the_end(part: Refresher) -> Iterator[Callable[[], None] | None]:
    """Close a shard as `Refresher.closing` does; what fails on the way keeps neither it nor the others from that."""
    try:
        for step in part.closing():
            yield None if step is None else partial(_whatever_happens, step)
    except Exception as error:
        logger.error("A shard is not closed as it should be: %s", in_words(error), exc_info=error)
        part.is_open = False
        yield partial(_whatever_happens, partial(part.collection.close, part.clock()))


def _whatever_happens(step: Callable[[], None]) -> None:
    """Do a step of closing a shard; the next one comes also if it fails."""
    try:
        step()
    except Exception as error:
        logger.error("A shard is not closed as it should be: %s", in_words(error))
