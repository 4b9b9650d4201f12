"""Routing: which shard a visit is of, and what Scrapy asks of all visits and deliveries together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

from crawlsched.collection.hosts import Hosts
from crawlsched.refresh.refresher import Refresher
from crawlsched.sharing import LARGEST_NUMBER
from crawlsched.store import Outcome
from crawlsched.visits.deliveries import Deliveries, Delivery
from crawlsched.visits.visits import Visit, Visits

__all__ = ["AllDeliveries", "AllVisits", "Tokens"]

# As many kinds of tokens as a collection may have shards, and one for what is of none.
_STEP = LARGEST_NUMBER + 1


class Tokens:
    """The tokens of visits, from which their shard can be told.

    Examples
    --------
    >>> tokens = Tokens()
    >>> [tokens.shard_of(next(tokens.of(shard))) for shard in (0, 3, None)]
    [0, 3, None]
    """

    def __init__(self) -> None:
        # They go on counting when a shard is claimed again: an old request must never be taken for a new visit.
        self._counts: dict[int, Iterator[int]] = {}

    def of(self, shard: int | None) -> Iterator[int]:
        """Give the tokens of a shard; None: of requests that are of none."""
        number = 0 if shard is None else shard + 1
        return self._counts.setdefault(number, itertools.count(_STEP + number, _STEP))

    def shard_of(self, token: object) -> int | None:
        """Return the shard of a token; None: it is of none."""
        if not isinstance(token, int) or token < _STEP:
            return None
        number = token % _STEP
        return number - 1 if number else None


class AllVisits:
    """The visits of all shards of this process, and the requests that are of none."""

    def __init__(
        self, tokens: Tokens, parts: Mapping[int, Refresher], hosts: Hosts, part_of: Callable[[str], Refresher | None]
    ) -> None:
        self._tokens = tokens
        self._parts = parts
        self._hosts = hosts
        self._part_of = part_of
        self._others = Visits(tokens.of(None))

    def _of(self, token: object) -> Visits:
        part = self._parts.get(shard) if (shard := self._tokens.shard_of(token)) is not None else None
        return self._others if part is None else part.visits

    def get(self, token: object) -> Visit | None:
        """Return the open visit with this token; None if it has ended, never was, or its shard is another's now."""
        return self._of(token).get(token)

    def follow(self, url: str, now: float) -> Visit:
        """Follow a request of the fallback scheduler; see `Visits.follow`."""
        return self._others.follow(url, now)

    def resolve(self, token: object, outcome: Outcome) -> Visit | None:
        """End a visit; return it, or None if it had ended already."""
        return self._of(token).resolve(token, outcome)

    def open_on(self, host: int) -> int:
        """How many visits to this host are open."""
        part = self._part_of(self._hosts.names[host])
        return 0 if part is None else part.visits.open_on(host)

    def older_than(self, opened_before: float) -> list[Visit]:
        """Return the old ones among those that are of no shard."""
        return self._others.older_than(opened_before)


class AllDeliveries:
    """The deliveries of all shards, and of requests that are of none; each may wait for one of another."""

    def __init__(self, tokens: Tokens, parts: Mapping[int, Refresher]) -> None:
        self._tokens = tokens
        self._parts = parts
        nobody: Callable[[Delivery, float], None] = lambda delivery, now: None  # noqa: E731
        self._others = Deliveries(delivered=nobody, failed=nobody, given_up=nobody, tell_parent=self.untracked_ended)

    def _of(self, token: object) -> Deliveries:
        part = self._parts.get(shard) if (shard := self._tokens.shard_of(token)) is not None else None
        return self._others if part is None else part.deliveries

    @property
    def n_untracked(self) -> int:
        """How many requests that are no pages are under way."""
        return self._others.n_untracked

    def get(self, token: object) -> Delivery | None:
        """Return the open delivery of this visit."""
        return self._of(token).get(token)

    def is_waited_for(self, token: int) -> bool:
        """Whether the response of a request that is no page, or its callback, is still to come."""
        return self._others.is_waited_for(token)

    def untracked_waits(self, parent: int) -> None:
        """See `Deliveries.untracked_waits`."""
        self._of(parent).untracked_waits(parent)

    def untracked_sent(self, token: int, parent: int | None, now: float) -> None:
        """See `Deliveries.untracked_sent`."""
        self._others.untracked_sent(token, parent, now)

    def untracked_ended(self, parent: int, now: float) -> None:
        """See `Deliveries.untracked_ended`."""
        self._of(parent).untracked_ended(parent, now)

    def yielded(self, token: int) -> None:
        """See `Deliveries.yielded`."""
        self._of(token).yielded(token)

    def called_back(self, token: int, now: float) -> None:
        """See `Deliveries.called_back`."""
        self._of(token).called_back(token, now)

    def output_ended(self, token: object, now: float) -> None:
        """See `Deliveries.output_ended`."""
        self._of(token).output_ended(token, now)

    def failed(self, token: object, now: float) -> None:
        """See `Deliveries.failed`."""
        self._of(token).failed(token, now)

    def give_up(self, started_before: float, now: float) -> int:
        """Give up the old ones among those that are of no shard."""
        return self._others.give_up(started_before, now)
