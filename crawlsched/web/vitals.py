"""Vitals: the few numbers that show whether a crawl works, read from the database in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import func, select

from crawlsched.feed import Feed
from crawlsched.slot_clock import DAY
from crawlsched.store import Host, Store, models
from crawlsched.store.lease import STALE_AFTER, LeaseRow
from crawlsched.store.records import samples_since
from crawlsched.wording import say_count, say_duration, say_share

__all__ = ["Check", "Vitals", "checks", "of_pages", "say_failing", "slots_of", "vitals"]

_LONGEST_UNSAVED = 10.0


@dataclass(frozen=True, kw_only=True)
class Vitals:
    """The vitals of a collection at a moment."""

    time: float  # POSIX seconds, by the clock of the database
    owner: LeaseRow | None  # the crawl that runs now, or ran last
    is_running: bool
    status: dict[str, Any]  # the newest status that the crawl wrote
    sample: dict[str, Any]  # the newest row of `samples`; empty if there is no row
    undelivered: int  # the number of pages whose last change has not passed callback and pipelines
    delivered: int  # the number of lines in the change feed since the collection began
    resting: list[Host]  # the hosts that get no requests for now, because they asked for it
    withheld: dict[str, int]  # how many responses were withheld, by reason
    # The hosts whose pages mostly fail, each with the time of its first failure, its answer, and its pages by state.
    failing: dict[str, dict[str, Any]]


def vitals(store: Store) -> Vitals:
    """Read the vitals of a collection."""
    owner, now = store.owner(), store.clock()
    page = models.pages
    pending = (
        select(func.count())
        .select_from(page)
        .where(page.c.shard == store.key[0], page.c.collection == store.key[1], page.c.pending_fingerprint.is_not(None))
    )
    with store.database.reading() as connection:
        undelivered = int(connection.execute(pending).scalar_one())
    withheld: dict[str, int] = {}
    hosts = store.reader.hosts(notable_at=now)
    for host in hosts:
        for reason, row in host.counts.get("withheld", {}).items():
            withheld[reason] = withheld.get(reason, 0) + int(row.get("n", 0))
    samples = samples_since(store, now - 3 * 60.0)
    return Vitals(
        time=now,
        owner=owner,
        is_running=owner is not None and owner.is_held(now),
        status={} if owner is None else owner.status,
        sample=samples[-1] if samples else {},
        undelivered=undelivered,
        delivered=sum(Feed(store, own_shard=True).end().positions.values()),
        resting=[host for host in hosts if host.rest_until > now],
        withheld=withheld,
        failing={host.host: host.counts["failing"] for host in hosts if host.counts.get("failing")},
    )


class Check(NamedTuple):
    """One condition of a healthy crawl."""

    name: str
    is_well: bool
    sentence: str

    @property
    def is_of_process(self) -> bool:
        """Whether a restart of the crawl may help."""
        return self.name in ("leased", "writing", "dispatching")


def checks(
    seen: Vitals,
    *,
    freshness: float | None = None,
    budget: float | None = None,
    undelivered: int | None = None,
    rest: float | None = None,
    last_pass: float | None = None,
) -> list[Check]:
    """Check that the crawl runs, writes and sends, that hosts answer, and that the given limits are met.

    `freshness` is the least expected freshness, and `budget` is the least used share of a minute's slots. At most
    `undelivered` changes may wait for the spider, and a host may rest for at most `rest` seconds. The last pass must
    have ended at most `last_pass` seconds ago. With this limit, the check also succeeds if no crawl runs.
    """
    status = seen.status
    found = [_leased(seen) if last_pass is None else _passed(seen, last_pass)]
    if seen.is_running:
        unsaved = float(status.get("unsaved_for") or 0.0)
        said = (
            "what is learned is written at once"
            if unsaved <= _LONGEST_UNSAVED
            else f"unwritten for {say_duration(unsaved)}"
        )
        found.append(Check("writing", unsaved <= _LONGEST_UNSAVED, said))
        found.append(_dispatching(status))
    if (paused_since := status.get("paused_since")) is not None:
        paused = max(seen.time - paused_since, 0.0)
        # If a pause is longer than a day, somebody probably forgot it.
        found.append(Check("pause", paused <= DAY, f"paused by hand for {say_duration(paused)}"))
    failing = [say_failing(host, known, seen.time) for host, known in seen.failing.items()]
    more = f" and {len(failing) - 5:,} more" if len(failing) > 5 else ""
    said = "; ".join(failing[:5]) + more if failing else "no host fails"
    found.append(Check("answering", not failing, said))
    share = seen.sample.get("expected_freshness")
    if freshness is not None:
        is_well = share is not None and share >= freshness
        said = "not known yet" if share is None else f"{say_share(share)}{of_pages(seen.sample)} expected to be fresh"
        found.append(Check("freshness", is_well, f"{said}, wanted: {say_share(freshness)}"))
    if budget is not None and (slots := slots_of(seen.sample)):
        used = seen.sample["used"] / slots
        found.append(Check("budget", used >= budget, f"{say_share(used)} of the slots of a minute used"))
    if undelivered is not None:
        is_well = seen.undelivered <= undelivered
        found.append(
            Check(
                "deliveries", is_well, f"{say_count(seen.undelivered, 'change')} not through callback and pipelines yet"
            )
        )
    if rest is not None:
        resting = [host for host in seen.resting if host.rest_until - seen.time > rest]
        names = ", ".join(host.host for host in resting[:5]) or "none"
        found.append(Check("hosts", not resting, f"hosts that rest for more than {say_duration(rest)}: {names}"))
    return found


def say_failing(host: str, known: dict[str, Any], now: float) -> str:
    """Return a sentence about the failures of a host.

    >>> say_failing("shop.example", {"since": 0.0, "answer": "403", "pages": {"live": 1, "refused": 20}}, now=7200.0)
    'shop.example fails (403) for 2 h: 20 of its 21 pages'
    """
    n_pages = sum(known["pages"].values())
    n_failing = n_pages - known["pages"].get("live", 0)
    failing_for = say_duration(max(now - known["since"], 0.0))
    return f"{host} fails ({known['answer']}) for {failing_for}: {n_failing:,} of its {n_pages:,} pages"


def of_pages(sample: dict[str, Any]) -> str:
    """Return a text about the pages from which freshness is computed, and how many of these fail."""
    if sample.get("wanted") is None:
        return ""
    failing = f"; {sample['failing']:,.0f} of them fail" if sample.get("failing") else ""
    return f" of {sample['wanted']:,.0f} pages{failing}"


def _leased(seen: Vitals) -> Check:
    if seen.owner is None:
        return Check("leased", False, "it was never crawled")
    age = max(seen.time - seen.owner.heartbeat_at, 0.0)
    if seen.is_running:
        return Check("leased", True, f"the crawl runs (last sign of life {say_duration(age)} ago)")
    ended = "ended" if seen.owner.released_at is not None else "broke off"
    return Check(
        "leased", False, f"no crawl runs; the last one {ended}, and its last sign of life was {say_duration(age)} ago"
    )


def _passed(seen: Vitals, longest: float) -> Check:
    """Check whether the last pass (a crawl that cron starts, for example) is recent enough."""
    owner = seen.owner
    if owner is None:
        return Check("passed", False, "it was never crawled")
    if seen.is_running:
        ago, said = seen.time - owner.started_at, "a pass runs, and began"
    elif owner.released_at is None:
        return Check("passed", False, f"the last pass broke off {say_duration(seen.time - owner.heartbeat_at)} ago")
    else:
        # A command that wrote to the store, such as `crawlsched import`, does not count as a pass.
        ended = seen.status.get("last_sent_at") if owner.spider.startswith("crawlsched ") else owner.released_at
        if ended is None:
            return Check("passed", False, "it was never crawled")
        ago, said = seen.time - ended, "the last pass ended"
    return Check("passed", ago <= longest, f"{said} {say_duration(ago)} ago, wanted: {say_duration(longest)}")


def _dispatching(status: dict[str, Any]) -> Check:
    if status.get("paused_since") is not None:
        return Check("dispatching", True, "paused by hand")
    if status.get("rests"):
        return Check("dispatching", True, "nothing goes out at this hour (CRAWLSCHED_BANDWIDTH)")
    silence = float(status.get("silence") or 0.0)
    # A crawl that uses no slot ends by itself after twice this time (four slots at a low bandwidth).
    longest = max(STALE_AFTER, 2.0 / float(status.get("bandwidth") or 1.0))
    said = (
        "requests go out as they should" if silence <= longest else f"nothing has gone out for {say_duration(silence)}"
    )
    return Check("dispatching", silence <= longest, said)


def slots_of(sample: dict[str, Any]) -> float:
    """Return the number of slots in the minute of a sample."""
    return float(sum(sample.get(name) or 0.0 for name in ("used", "idle", "no_free_host", "missed")))
