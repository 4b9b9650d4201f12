"""``crawlsched whatif``: the freshness at other bandwidths, and the bandwidth that a given freshness needs."""

import argparse
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlsched.cli.parsing import option, whole_number
from crawlsched.cli.replay import bandwidth_of
from crawlsched.cli.stores import Stores, open_stores
from crawlsched.exceptions import CrawlschedError
from crawlsched.jobs.stored_planners import planners, wanted
from crawlsched.planner.plans.plan import DEMAND_SAMPLE
from crawlsched.settings import SECONDS_PER, format_bandwidth
from crawlsched.settings.values import read_positive_seconds, read_share
from crawlsched.wording import say_count, say_duration, say_rate, say_share, say_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlsched.planner.reports.outlook import Outlook
    from crawlsched.store import Source

__all__ = ["EXAMPLES", "HELP", "OPTIONS", "report_of"]

# Pages with announcements take longer to compute, so their sample is smaller, by up to this factor.
_OF_SIGNALLED = 8


HELP = "freshness at other bandwidths, and the bandwidth that a freshness takes"
EXAMPLES = (
    "crawlsched whatif --bandwidths 10000/d 2x --freshness 90%",
    "crawlsched whatif --seen-within 6h --share 0.95",
)
_TIMES = ["0.25x", "0.5x", "1x", "2x", "4x"]
OPTIONS = (
    option("--bandwidths X", f"300/h, 20000/d, or 2x the present one ({' '.join(_TIMES)})", nargs="+", default=_TIMES),
    option("--freshness F", "such as 0.9 or 90%% (0.8 0.9 0.95)", read_share, nargs="+", default=[0.8, 0.9, 0.95]),
    option("--seen-within TIME", "which shares of changes are seen within 6h, 30min, 2d?", read_positive_seconds),
    option("--share S", "which bandwidth lets this share be seen so soon? (0.95)", read_share, nargs="+"),
    option("--sample N", "pages in the sample (%(default)s)", whole_number(_OF_SIGNALLED), default=DEMAND_SAMPLE),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    within, seen = arguments.seen_within, arguments.share or [0.95]
    if arguments.share and within is None:
        raise CrawlschedError("--share needs --seen-within, which says how soon changes are to be seen, such as 6h.")
    with open_stores(arguments) as stores:
        return report_of(
            stores, arguments.bandwidths, arguments.freshness, sample=arguments.sample, within=within, seen=seen
        )


def report_of(
    stores: Stores,
    bandwidths: "Sequence[str]",
    freshness: "Sequence[float]",
    *,
    sample: int,
    within: float | None = None,
    seen: "Sequence[float]" = (),
) -> dict[str, Any]:
    """Compute the freshness at other bandwidths from the planner's estimates."""
    now = time.time()
    present = _present_bandwidth(stores)
    asked = [bandwidth_of(text, present, "the present one") for text in bandwidths]
    polls = sum(_polls(source) for store in stores for source in store.reader.sources())
    outlook, looked = _look(stores, now, present, within, sample)

    def needed(for_pages: float) -> dict[str, float | None]:
        found = for_pages + polls if math.isfinite(for_pages) else None
        return {
            "bandwidth": found,
            "times_present": None if found is None else found / present,
            "largest_useful": outlook.largest_bandwidth + polls,
        }

    return {
        "collection": stores.name,
        "shard": stores.target.shard or 0,
        "database": stores.database.name,
        "time": now,
        "bandwidth": present,
        "polls": polls,
        **looked,
        "bandwidths": [_at(outlook, each, present, polls, seen=within is not None) for each in asked],
        "needed": [{"freshness": share, **needed(outlook.bandwidth(share))} for share in freshness],
        "seen_within": within,
        "needed_to_see": [
            {"share": share, **needed(outlook.bandwidth_to_see(share))} for share in seen if within is not None
        ],
    }


def _present_bandwidth(stores: Stores) -> float:
    if stores.shared is not None:
        return stores.shared.look().rate
    owner = stores.all[0].owner()
    known = owner.status.get("bandwidth") if owner is not None else None
    return float(known or stores.target.settings.bandwidth)


def _polls(source: "Source") -> float:
    """Return how often a source is read, per second."""
    polled, following = source.polled_at, source.next_poll_at
    return 1.0 / (following - polled) if polled is not None and following is not None and following > polled else 0.0


def _look(
    stores: Stores, now: float, bandwidth: float, within: float | None, most: int
) -> "tuple[Outlook, dict[str, Any]]":
    """Return the outlook for all pages that should be kept fresh, or for an even sample, and figures of the sample."""
    from crawlsched.planner.reports.outlook import Outlook

    last = {store: store.reader.next_page() for store in stores}
    every = max(1, -(-sum(last.values()) // most))
    sampled = ((store, None if every == 1 else list(range(0, n, every))) for store, n in last.items())
    outlook, n_signalled, n_new, n_pages, total, fresh = None, 0, 0, 0, 0.0, 0.0
    for planner, numbers in (
        found for store, some in sampled for found in planners(store, stores.settings_of(store), now, some)
    ):
        rows = wanted(planner, np.arange(numbers.size))
        if not rows.size:
            continue
        outlook = outlook or Outlook(len(stores.all) * rows.size * every / bandwidth, within)
        importance = planner.pages.importance[rows].astype(np.float64)
        n_pages += rows.size
        total += float(importance.sum())
        fresh += float(importance @ planner.values.fresh(rows, now))
        n_new += int(np.isneginf(planner.pages.crawled_at[rows]).sum())
        _, weight = planner.announcements.signals(rows)
        signalled = rows[weight > 0]
        n_signalled += signalled.size
        chosen = signalled[:: max(1, -(-signalled.size // (most // _OF_SIGNALLED)))]
        outlook.add(planner, rows[weight == 0], every)
        if chosen.size:
            outlook.add(planner, chosen, every * signalled.size / chosen.size)
    if outlook is None or not total:
        raise CrawlschedError(
            f"The collection {stores.name!r} holds no page yet that is to be kept fresh; crawl first."
        )
    return outlook, {
        "pages": n_pages * every,
        "without_copy": n_new * every,
        "discovery_share": stores.target.settings.share_of_first_copies,
        "sample": n_pages,
        "sample_with_signals": min(n_signalled, most // _OF_SIGNALLED),
        "pages_with_signals": n_signalled * every,
        "fresh_now": fresh / total,
    }


def _at(outlook: "Outlook", bandwidth: float, present: float, polls: float, *, seen: bool) -> dict[str, float]:
    left = max(bandwidth - polls, 1e-3 * bandwidth)
    return {
        "bandwidth": bandwidth,
        "times_present": bandwidth / present,
        "freshness": outlook.freshness(left),
        "freshness_in_turn": outlook.freshness_in_turn(left),
        **({"seen": outlook.seen(left)} if seen else {}),
    }


def say(report: dict[str, Any]) -> str:
    """Say the results in two tables, or with ``--seen-within`` in three."""
    unit = format_bandwidth(report["bandwidth"]).partition("/")[2]
    sitemaps = f", {say_rate(report['polls'])} of that for sitemaps" if report["polls"] else ""
    within = report["seen_within"]
    seen = [] if within is None else [f"changes seen within {say_duration(within)}"]
    new, share = report["without_copy"], report["discovery_share"]
    copies = ["first copies take"] if new and share else []
    rows = [["bandwidth", "", "freshness", "all in turn", *seen, *copies]]
    for one in report["bandwidths"]:
        shares = [say_share(one[name]) for name in ("freshness", "freshness_in_turn", "seen") if name in one]
        times = [say_duration(new / (share * one["bandwidth"])) for _ in copies]
        rows.append([_short(one["bandwidth"], unit), f"{one['times_present']:.3g}x", *shares, *times])
    lines = [
        f"{report['collection']}  ({report['database']})",
        f"  {say_count(report['pages'], 'page')} to be kept fresh on {_short(report['bandwidth'], unit)}{sitemaps}",
        f"  expected to be fresh now, by importance: {say_share(report['fresh_now'])}",
        "",
        "in the long run, by what is known now",
        *say_table(rows, "r" * len(rows[0])),
        "",
        *_say_needed("freshness", "freshness", report["needed"], unit),
    ]
    if seen:
        lines += ["", *_say_needed(seen[0], "share", report["needed_to_see"], unit)]
    if report["sample"] < report["pages"] or report["sample_with_signals"] < report["pages_with_signals"]:
        text = f"Computed from an even sample of {say_count(report['sample'], 'page')}"
        if report["sample_with_signals"] < report["pages_with_signals"]:
            text += f", {report['sample_with_signals']:,} of those with announcements"
        lines += ["", f"{text}."]
    return "\n".join(lines)


def _say_needed(title: str, name: str, needed: list[dict[str, Any]], unit: str) -> list[str]:
    rows = [[title, "takes", ""]]
    for one in needed:
        takes = [f"not reached with {_short(one['largest_useful'], unit)}", ""]
        if one["bandwidth"] is not None:
            takes = [_short(one["bandwidth"], unit), f"{one['times_present']:.3g}x"]
        rows.append([say_share(one[name]), *takes])
    return say_table(rows, "rrr")


def _short(bandwidth: float, unit: str) -> str:
    return f"{bandwidth * SECONDS_PER[unit]:,.4g}/{unit}"
