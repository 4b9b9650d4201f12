"""Membership: a thread that renews this process's grant and divides shards among the members of a collection.

This thread and the crawling thread never wait for each other. So a crawl that is busy for some seconds keeps its
shards. A crawl that cannot reach its database stops sending by its own clock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from crawlsched.exceptions import CrawlschedError, StoreError
from crawlsched.sharing import RENEWAL_INTERVAL, Grant, Renewal, assigned, divided, read_curve
from crawlsched.showing import in_words
from crawlsched.slot_clock import TIMER_SLACK
from crawlsched.store import Outgoing
from crawlsched.store.members import Seen, SharedCollection

__all__ = ["HANDED_OVER_AT_ONCE", "Membership"]

logger = logging.getLogger(__name__)

# Seconds to the next renewal after a failure, and while there is something to claim or to report. At the same
# interval the thread checks whether other members' processes on this machine have ended.
_SOON = 0.3
# A renewal claims at most this number of shards, so that all members load some of the shards of a dead member.
_CLAIMED_AT_ONCE = 16
# Shards move at most once in this number of seconds to even out loads. A member that could not load a shard waits for
# the same time before it claims that shard again. A member with less than the share `_STILL_JOINS` of a fair load has
# just joined, and gets shards without waiting.
_BETWEEN_MOVES = 30.0
_STILL_JOINS = 0.75
# A member gives away at most this share of its shards in one renewal. The others are crawled meanwhile.
_GIVEN_AT_ONCE = 0.25
#: At most this number of rows is handed over between two renewals, or taken in together. So a spider which begins with
#: a million pages delays no renewal.
HANDED_OVER_AT_ONCE = 2_000
# If the crawling thread gives no sign for this time (seconds), the process is thought to hang, and gives up its shards.
_LONGEST_SILENCE = 120.0
# The key of a member's status by which it announces its end.
_LEAVES = "leaves"
# A member without a loaded shard gets this share of the rate, since its spider may have to log in first.
_LEAST_WANTED = 0.02


def _clock() -> float:
    """Return the seconds of a clock that goes on while the machine sleeps, if the system has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _staying(seen: Seen) -> set[str]:
    """Return the living members that have not announced their end; only they may have shards."""
    return {token for token, member in seen.members.items() if seen.is_alive(token) and not member.status.get(_LEAVES)}


def _complain(sentence: str, error: Exception) -> None:
    expected = isinstance(error, CrawlschedError)
    logger.error("%s, which is tried again: %s", sentence, in_words(error), exc_info=None if expected else error)


class Membership:
    """The shards that this process owns, and the rate at which it may send, kept up to date by a thread.

    Attributes
    ----------
    owned : dict of int to int
        Shards and their epochs, from the database's last answer. Replaced as a whole, before the grant is prolonged.
    """

    def __init__(
        self,
        shared: SharedCollection,
        token: str,
        about: Mapping[str, Any],
        *,
        rate_now: Callable[[float], float] | None = None,
        pass_since: float | None = None,
        clock: Callable[[], float] = _clock,
    ) -> None:
        self.grant = Grant()
        self.owned: dict[int, int] = {}
        self.to_release: frozenset[int] = frozenset()  # shards that another member should have
        self.targets: dict[str, float] = {}  # by member with a loaded shard: its part of the rate
        self.seen: Seen | None = None  # the collection at the last renewal
        self.failure: str | None = None  # why the last renewal failed
        self.paused_since: float | None = None
        self.rests_by_hours = False
        self.is_claiming = True
        self._is_given_some = False
        #: The status that this process reports with each renewal (`fares`), and whether a renewal has sent it.
        self.status: dict[str, Any] = {}
        self._is_said = True
        self._heard_at: float | None = None
        self._unsaid = False
        self.token = token
        self._shared = shared
        self._about = about
        self._rate_now = rate_now
        self._clock = clock
        self._ready: set[int] = set()
        self._released: dict[int, int] = {}
        self._done_with: dict[int, int] = {}
        self._given_up: dict[int, float] = {}
        self._passed_by: set[int] = set()
        self._published: deque[tuple[int, str, int, bool]] = deque()
        self.outgoing: deque[Outgoing] = deque()  # rows for other shards that are not written yet
        self._moved_at = self._clock()
        self._owners: dict[int, str | None] = {}
        self.is_leaving = False  # whether this process is ending, and claims no more shards
        self.pass_since = pass_since
        self.pass_is_over = False  # whether all members have finished the pass
        # The members' reports when all had finished, and the time when these were read.
        self._done: tuple[object, float] | None = None
        self._ends = threading.Event()
        self._poked = threading.Event()
        self.renewed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="crawlsched-membership", daemon=True)

    # -- called by the crawling thread

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def fares(self, work: Mapping[str, Any], status: Callable[[], dict[str, Any]]) -> None:
        """Report the work left and, once for each renewal, the status. `_LONGEST_SILENCE` begins to apply."""
        self.status = {**(status() if self._is_said else self.status), **work}
        self._is_said = False
        self._heard_at = self._clock()

    def may_send(self, rate: float, shard: int | None = None) -> bool:
        """Whether a request may be sent now, at this rate and for this shard (None: for no shard)."""
        # The deadline is read before `owned`, since a lost shard leaves `owned` before the deadline is prolonged.
        if self._clock() >= self.grant.deadline or rate > self.grant.rate * (1.0 + 1e-9):
            return False
        return shard is None or self.owned.get(shard, 0) > self._released.get(shard, 0)

    def mine(self) -> dict[int, int]:
        """Return our shards with their epochs, without shards that are being given back."""
        # The answer to a renewal may be older than our message that a shard is given back.
        return {shard: epoch for shard, epoch in self.owned.items() if epoch > self._released.get(shard, 0)}

    def publish(self, shard: int, token: str, n_pages: int, *, ready: bool = True) -> None:
        """Write a shard's size, and whether it gets a part of the rate: if it is `ready` (loaded, not given away)."""
        if ready and shard not in self._ready:
            self.status = {**self.status, "is_done": False}  # the last report was made without this shard
        (self._ready.add if ready else self._ready.discard)(shard)
        self._published.append((shard, token, n_pages, ready))
        self._poked.set()

    def hand_over(self, row: Outgoing) -> None:
        """Queue a row for another shard, if no visit caused the row; rows of visits are written with their batches."""
        self.outgoing.append(row)
        self._poked.set()

    def stops(self, shard: int, epoch: int, *, failed: bool = False) -> None:
        """Send no more requests for a shard, which will be given back; `failed` if it could not be loaded."""
        self._released[shard] = max(epoch, self._released.get(shard, 0))
        self._ready.discard(shard)
        if failed:
            self._given_up[shard] = self._clock()

    def is_done_with(self, shard: int) -> None:
        """Let a shard be given back, since its last changes are written."""
        self._done_with[shard] = self._released[shard]
        self._poked.set()

    def leaves(self) -> None:
        """Claim no more shards, and tell the other members, since writing the last changes may take long."""
        if not self.is_leaving:
            self.is_leaving = True
            self._heard_at = None
            self._poked.set()

    @property
    def has_others(self) -> bool:
        """Whether there are other members that would take shards over."""
        seen = self.seen
        return seen is not None and any(token != self.token for token in _staying(seen))

    def end(self, timeout: float) -> None:
        """End the thread and the membership, so that others can use the rate at once."""
        self.is_leaving = True
        self._ends.set()
        self._poked.set()
        self._thread.join(timeout)
        try:
            if not self._thread.is_alive():  # a thread that still runs may be writing the same rows
                while not self._say():
                    pass
            self._shared.leave(self.token)
        except CrawlschedError as error:
            logger.warning("Other processes notice the end of this process only after some seconds: %s", error)
        if self.outgoing:
            logger.error("%d links and signals for other shards are lost with this process.", len(self.outgoing))

    # -- the thread

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                wait = self.renew()
                if self.failure is not None:
                    logger.warning("The grant is renewed again; nothing is lost.")
                    self.failure = None
            except Exception as error:  # if the database is away for long, sending stops by our own clock
                if self.failure is None:
                    _complain("This process will stop sending, since its grant cannot be renewed", error)
                self.failure = in_words(error)
                wait = _SOON
            self.renewed.set()
            self._wait(wait)
            self._poked.clear()

    def _wait(self, seconds: float) -> None:
        """Wait for the next renewal, for news, or for the end of another member's process on this machine."""
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0 and not self._poked.wait(min(left, _SOON)):
            if self.failure is None and self.seen is not None and self._ended(self.seen):
                return

    def _ended(self, seen: Seen) -> list[str]:
        """Return the members whose lease is still valid, although their processes are known to have ended."""
        return [token for token, member in seen.members.items() if seen.is_alive(token) and member.has_ended]

    def renew(self) -> float:
        """Renew the grant, and follow the answer; return the seconds until the next renewal."""
        if self._heard_at is not None and self._clock() - self._heard_at > _LONGEST_SILENCE:
            raise StoreError(
                f"The crawl has done nothing for {_LONGEST_SILENCE:g} s (a callback that blocks?), and others take its "
                "shards over. The crawl goes on by itself."
            )
        is_all_said = self._try_to_say()
        seen = self._shared.look()
        for token in self._ended(seen):  # so nobody waits for the end of its lease
            self._shared.leave(token)
            del seen.members[token]
        self._follow_hours(seen)
        if self.pass_since is not None and not self.pass_is_over:
            self._look_at_pass(seen, self.pass_since)
        claims = self._decide(seen)
        asked_at = self._clock()
        number = self.grant.ask(asked_at)
        is_loaded = bool(self._ready & self.mine().keys())
        wants = self.targets.get(self.token, 0.0) if is_loaded else _LEAST_WANTED * seen.rate
        said = Renewal(self.token, number, self.grant.using(asked_at), wants, tuple(claims))
        answer = self._shared.renew(said, self._about, {**self.status, _LEAVES: self.is_leaving})
        self._is_said = True
        if answer is None:
            return _SOON
        self.owned = answer.shards
        self.grant.answered(number, answer.granted)
        self.seen = seen
        self.paused_since = answer.paused_since
        self.is_claiming = bool(claims)
        self._free(seen, set(claims).difference(self.owned))
        self._give_back()
        is_rising = answer.granted < wants * 0.99
        # This process gives up a part of its rate. It renews soon, since others get that part only after its renewal.
        is_falling = answer.granted < said.using * 0.99
        is_moving = (is_rising or is_falling) and not self.paused_since
        if claims or self._is_given_some or not is_all_said or is_moving:
            return _SOON
        # A living member renews long before its lease ends. So if a lease is about to end, the next
        # renewal waits for its end.
        others = [member for token, member in seen.members.items() if token != self.token and seen.is_alive(token)]
        next_expiry = min((member.expires_at - seen.now for member in others), default=inf)
        return min(RENEWAL_INTERVAL, next_expiry + TIMER_SLACK)

    def _free(self, seen: Seen, passed_by: set[int]) -> None:
        """End the connections of dead owners that still lock their shards' rows, so that these can be claimed."""
        for shard in passed_by & self._passed_by:
            owner = seen.shards[shard].member
            if owner is not None and not seen.is_alive(owner) and (n := self._shared.end_sessions(owner)):
                logger.warning("A silent process had locked the shard %d, so its %d connections were ended.", shard, n)
        self._passed_by = passed_by

    def _give_back(self) -> None:
        """Give back finished shards; after a failure, try again, since nobody else can crawl these shards."""
        for shard, epoch in self.owned.items():
            if self._done_with.get(shard, 0) >= epoch:
                try:
                    self._shared.lease(shard, self.token, epoch).release()
                except StoreError as error:
                    logger.warning("The shard %d could not be given back, which is tried again: %s", shard, error)

    def _try_to_say(self) -> bool:
        """Write the news for other members, and only log a failure, which must not cost the grant."""
        try:
            is_all_said, self._unsaid = self._say(), False
        except Exception as error:
            if not self._unsaid:
                _complain("Rows for the other processes cannot be written", error)
            is_all_said, self._unsaid = False, True
        return is_all_said

    def _say(self) -> bool:
        """Write the crawling thread's news for other members; return whether all of it was written."""
        while self._published:
            shard, token, n_pages, ready = self._published[0]
            self._shared.publish(shard, token, n_pages=n_pages, ready=ready)
            self._published.popleft()
        rows = [self.outgoing.popleft() for _ in range(min(len(self.outgoing), HANDED_OVER_AT_ONCE))]
        try:
            self._shared.hand_over(rows)
        except BaseException:
            self.outgoing.extendleft(reversed(rows))
            raise
        return not self.outgoing

    def _follow_hours(self, seen: Seen) -> None:
        if self._rate_now is None:
            return
        rate = self._rate_now(seen.now)
        self.rests_by_hours = rate == 0.0
        if rate not in (0.0, seen.rate):
            self._shared.set_rate(rate)

    def _look_at_pass(self, seen: Seen, since: float) -> None:
        """Notice that a pass is over: another member has ended it, or all members have finished."""
        if seen.pass_since != since:
            self.pass_is_over = True
            return
        found = self._all_done(seen)
        if found is None:
            self._done = None
        elif self._done is None or self._done[0] != found:
            self._done = (found, seen.now)
        elif all(member.renewed_at > self._done[1] for token, member in seen.members.items() if seen.is_alive(token)):
            # All members have reported again, and none has sent a request meanwhile. At the first reports all had
            # finished and no row was waiting, so no new work can follow.
            self._shared.end_pass(since)
            self.pass_is_over = True

    def _all_done(self, seen: Seen) -> object | None:
        """Return the shards' epochs and the members' counts of requests if all members have finished, else None."""
        alive = {token: member for token, member in seen.members.items() if seen.is_alive(token)}
        if not all(row.ready and row.member in alive for row in seen.shards.values()):
            return None
        if not all(member.status.get("is_done") for member in alive.values()) or self._shared.waits(0):
            return None
        epochs = {shard: row.epoch for shard, row in seen.shards.items()}
        return epochs, {token: member.status.get("dispatched") for token, member in alive.items()}

    def _decide(self, seen: Seen) -> list[int]:
        """Divide shards and rate by the rule that all members follow; return the shards to claim."""
        owners = {
            shard: row.member if seen.is_alive(row.member) or row.member == self.token else None
            for shard, row in seen.shards.items()
        }
        self._divide(seen, owners)
        if self.is_leaving or self.pass_is_over:
            self.to_release, self._is_given_some = frozenset(), False
            return []
        n, now = len(owners), self._clock()
        pages = sum(row.n_pages for row in seen.shards.values()) or 1
        weights = {shard: 1.0 / n + row.n_pages / pages for shard, row in seen.shards.items()}
        members = _staying(seen) | {self.token}
        held = {shard: member for shard, member in owners.items() if member is not None}
        target = assigned(weights, held, members)
        if any(self._owners.get(shard) not in (None, member) for shard, member in held.items()):
            self._moved_at = now
        self._owners = {shard: member or self._owners.get(shard) for shard, member in owners.items()}
        moving = self._moving(held, target, weights, members)
        mine = [shard for shard, member in moving.items() if member == self.token]
        n_mine = sum(member == self.token for member in held.values())
        self.to_release = frozenset(mine[: max(1, int(_GIVEN_AT_ONCE * n_mine))])
        self._is_given_some = any(target[shard] == self.token for shard in moving)
        return [
            shard
            for shard, member in owners.items()
            if member is None
            and target[shard] == self.token
            and now - self._given_up.get(shard, -inf) >= _BETWEEN_MOVES
        ][:_CLAIMED_AT_ONCE]

    def _moving(
        self, held: dict[int, str], target: dict[int, str], weights: dict[int, float], members: set[str]
    ) -> dict[int, str]:
        """Return the shards that should be given away now, each with its present owner."""
        load = dict.fromkeys(members, 0.0)
        for shard, member in held.items():
            if member in load:
                load[member] += weights[shard]
        somebody_joins = min(load.values()) < _STILL_JOINS * sum(load.values()) / len(load)
        somebody_leaves = not load.keys() >= set(held.values())
        if not (somebody_joins or somebody_leaves or self._clock() - self._moved_at >= _BETWEEN_MOVES):
            return {}
        return {shard: member for shard, member in held.items() if target[shard] != member}

    def _divide(self, seen: Seen, owners: dict[int, str | None]) -> None:
        n_pages: dict[str, int] = {}
        for shard, row in seen.shards.items():
            owner = owners[shard]
            if owner is not None and (shard in self._ready if owner == self.token else row.ready):
                n_pages[owner] = n_pages.get(owner, 0) + row.n_pages
        statuses = {token: member.status for token, member in seen.members.items()} | {self.token: self.status}
        curves = {token: read_curve(statuses.get(token, {}).get("curve")) for token in n_pages}
        self.targets = divided(seen.rate, curves, n_pages)
