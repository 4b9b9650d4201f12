"""``crawlsched whatif``: how fresh the pages would be at other bandwidths, and what a given freshness would take."""

import argparse
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlsched.cli.history_options import read_multiple
from crawlsched.cli.planning import planners, wanted
from crawlsched.cli.stores import Stores, open_stores
from crawlsched.cli.target import Target, common_options, find_target
from crawlsched.cli.wording import say_count, say_duration, say_share, say_table
from crawlsched.exceptions import CrawlschedError
from crawlsched.settings import SECONDS_PER, format_bandwidth, parse_bandwidth
from crawlsched.settings.values import read_positive_seconds

if TYPE_CHECKING:
    from crawlsched.planner.reports.outlook import Outlook
    from crawlsched.store import Source
from crawlsched.cli.parsing import examples

__all__ = ["add_parser", "report", "say"]

# As many pages as a plan takes for its demand curve; of those with announcements, which take longer, an eighth.
_SAMPLE, _OF_SIGNALLED = 4096, 8


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "whatif",
        help="how fresh would the pages be at other bandwidths? which would a freshness, or seeing changes soon, take?",
        parents=[common_options()],
        epilog=examples(
            "crawlsched whatif --bandwidths 10000/d 2x --freshness 90%",
            "crawlsched whatif --seen-within 6h --share 0.95",
        ),
    )
    parser.add_argument(
        "--bandwidths",
        metavar="X",
        nargs="+",
        default=["0.25x", "0.5x", "1x", "2x", "4x"],
        help="each 300/h, 20000/d, or 2x for twice the present one (default: 0.25x 0.5x 1x 2x 4x)",
    )
    parser.add_argument(
        "--freshness",
        metavar="F",
        nargs="+",
        type=_share,
        default=[0.8, 0.9, 0.95],
        help="shares such as 0.9 or 90%% (default: 0.8 0.9 0.95)",
    )
    parser.add_argument(
        "--seen-within", metavar="TIME", type=_seconds, help="which shares of changes are seen within 6h, 30min, 2d?"
    )
    parser.add_argument(
        "--share",
        metavar="S",
        nargs="+",
        type=_share,
        help="with --seen-within: which bandwidth lets this share be seen so soon? (default: 0.95)",
    )
    parser.add_argument(
        "--sample",
        metavar="N",
        type=_count,
        default=_SAMPLE,
        help=f"pages that are looked at, where there are more (default: {_SAMPLE})",
    )
    parser.set_defaults(report=report, say=say)


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        share = math.nan
    if not 0.0 < share < 1.0:
        raise argparse.ArgumentTypeError(f"must be a share between 0 and 1, such as 0.9 or 90%, got {text!r}.")
    return share


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and _OF_SIGNALLED <= int(text) < 10**9):
        raise argparse.ArgumentTypeError(f"must be a whole number, {_OF_SIGNALLED} or more, got {text!r}.")
    return int(text)


def _seconds(text: str) -> float:
    try:
        return read_positive_seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be {error}, got {text!r}.") from None


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Look at the pages as the planner sees them, and ask what other bandwidths would give."""
    within = arguments.seen_within
    if arguments.share and within is None:
        raise CrawlschedError("--share needs --seen-within, which says how soon changes are to be seen, such as 6h.")
    target = find_target(arguments)
    now = time.time()
    stores = open_stores(target)
    try:
        present = _present_bandwidth(stores, target)
        asked = [_read_bandwidth(text, present) for text in arguments.bandwidths]
        polls = sum(_polls(source) for store in stores for source in store.reader.sources())
        looked = _look(stores, target, now, present, within, arguments.sample)
        outlook: Outlook = looked.pop("outlook")
        result = {
            "collection": stores.name,
            "shard": target.shard or 0,
            "database": stores.database.name,
            "time": now,
            "bandwidth": present,
            "polls": polls,
            **looked,
            "bandwidths": [_at(outlook, each, present, polls, seen=within is not None) for each in asked],
            "needed": [
                {"freshness": share, **_needed(outlook, outlook.bandwidth(share), present, polls)}
                for share in arguments.freshness
            ],
            "seen_within": within,
            "needed_to_see": [
                {"share": share, **_needed(outlook, outlook.bandwidth_to_see(share), present, polls)}
                for share in ((arguments.share or [0.95]) if within is not None else [])
            ],
        }
    finally:
        stores.close()
    return result


def _present_bandwidth(stores: Stores, target: Target) -> float:
    if stores.shared is not None:
        return stores.shared.look().rate
    owner = stores.all[0].owner()
    said = owner.status.get("bandwidth") if owner is not None else None
    return float(said or target.settings.bandwidth)


def _read_bandwidth(text: str, present: float) -> float:
    multiple = read_multiple(text)
    try:
        bandwidth = parse_bandwidth(text) if multiple is None else multiple * present
    except ValueError:
        bandwidth = 0.0
    if not 0.0 < bandwidth < math.inf:
        raise CrawlschedError(
            f"--bandwidths must be such as 5/s, 300/h or 20000/d, or 2x for twice the present one, got {text!r}."
        )
    return bandwidth


def _polls(source: "Source") -> float:
    """Return how often a source is read, per second."""
    polled, following = source.polled_at, source.next_poll_at
    return 1.0 / (following - polled) if polled is not None and following is not None and following > polled else 0.0


def _look(
    stores: Stores, target: Target, now: float, bandwidth: float, within: float | None, most: int
) -> dict[str, Any]:
    """Look at all pages of which a fresh copy is wanted, or at an even sample of them."""
    from crawlsched.planner.reports.outlook import Outlook

    last = {store: store.reader.next_page() for store in stores}
    every = max(1, -(-sum(last.values()) // most))
    sampled = ((store, None if every == 1 else list(range(0, n, every))) for store, n in last.items())
    outlook, signalled_pages, n_new = None, 0, 0
    totals = {"importance": 0.0, "fresh": 0.0, "pages": 0}
    looked = (found for store, sample in sampled for found in planners(store, target, now, sample))
    for planner, numbers in looked:
        rows = wanted(planner, np.arange(numbers.size))
        if not rows.size:
            continue
        outlook = outlook or Outlook(len(stores.all) * rows.size * every / bandwidth, within)
        importance = planner.pages.importance[rows].astype(np.float64)
        totals["pages"] += rows.size
        totals["importance"] += float(importance.sum())
        totals["fresh"] += float(importance @ planner.values.fresh(rows, now))
        n_new += int(np.isneginf(planner.pages.crawled_at[rows]).sum())
        _, weight = planner.announcements.signals(rows)
        signalled = rows[weight > 0]
        signalled_pages += signalled.size
        of_these = max(1, -(-signalled.size // (most // _OF_SIGNALLED)))
        chosen = signalled[::of_these]
        outlook.add(planner, rows[weight == 0], every)
        if chosen.size:
            outlook.add(planner, chosen, every * signalled.size / chosen.size)
    if outlook is None or not totals["importance"]:
        raise CrawlschedError(
            f"The collection {stores.name!r} holds no page yet of which a fresh copy is wanted; crawl first."
        )
    return {
        "outlook": outlook,
        "pages": totals["pages"] * every,
        "without_copy": n_new * every,
        "discovery_share": target.settings.share_of_first_copies,
        "sample": totals["pages"],
        "sample_with_signals": min(signalled_pages, most // _OF_SIGNALLED),
        "pages_with_signals": signalled_pages * every,
        "fresh_now": totals["fresh"] / totals["importance"],
    }


def _at(outlook: "Outlook", bandwidth: float, present: float, polls: float, *, seen: bool = False) -> dict[str, float]:
    left = max(bandwidth - polls, 1e-3 * bandwidth)
    return {
        "bandwidth": bandwidth,
        "times_present": bandwidth / present,
        "freshness": outlook.freshness(left),
        "freshness_in_turn": outlook.freshness_in_turn(left),
        **({"seen": outlook.seen(left)} if seen else {}),
    }


def _needed(outlook: "Outlook", for_pages: float, present: float, polls: float) -> dict[str, float | None]:
    found = for_pages + polls if math.isfinite(for_pages) else None
    return {
        "bandwidth": found,
        "times_present": None if found is None else found / present,
        "largest_useful": outlook.largest_bandwidth + polls,
    }


def say(report: dict[str, Any]) -> str:
    """Say it in two tables."""
    unit = format_bandwidth(report["bandwidth"]).partition("/")[2]
    sitemaps = f", of which {_short(report['polls'], unit)} for sitemaps" if report["polls"] else ""
    lines = [
        f"{report['collection']}  ({report['database']})",
        f"  {say_count(report['pages'], 'page')} to be kept fresh on {_short(report['bandwidth'], unit)}{sitemaps}",
        f"  expected to be fresh now, by importance: {say_share(report['fresh_now'])}",
        "",
    ]
    within = report["seen_within"]
    seen = [] if within is None else [f"changes seen within {say_duration(within)}"]
    new, share = report["without_copy"], report["discovery_share"]
    copies = ["first copies take"] if new and share else []
    rows = [["bandwidth", "", "freshness", "all in turn", *seen, *copies]]
    for one in report["bandwidths"]:
        shares = [say_share(one[name]) for name in ("freshness", "freshness_in_turn", "seen") if name in one]
        times = [say_duration(new / (share * one["bandwidth"])) for _ in copies]
        rows.append([_short(one["bandwidth"], unit), f"{one['times_present']:.3g}x", *shares, *times])
    lines += ["in the long run, by what is known now", *say_table(rows, "rrrrrr"[: len(rows[0])])]
    rows = [["freshness", "takes", ""]]
    for one in report["needed"]:
        rows.append([say_share(one["freshness"]), *_say_needed(one, unit)])
    lines += ["", *say_table(rows, "rrr")]
    if seen:
        rows = [[*seen, "takes", ""]]
        rows += [[say_share(one["share"]), *_say_needed(one, unit)] for one in report["needed_to_see"]]
        lines += ["", *say_table(rows, "rrr")]
    if report["sample"] < report["pages"] or report["sample_with_signals"] < report["pages_with_signals"]:
        lines += ["", _say_sample(report)]
    return "\n".join(lines)


def _say_needed(one: dict[str, Any], unit: str) -> list[str]:
    if one["bandwidth"] is None:
        return [f"not reached with {_short(one['largest_useful'], unit)}", ""]
    return [_short(one["bandwidth"], unit), f"{one['times_present']:.3g}x"]


def _say_sample(report: dict[str, Any]) -> str:
    text = f"Computed from an even sample of {say_count(report['sample'], 'page')}"
    if report["sample_with_signals"] < report["pages_with_signals"]:
        text += f", {report['sample_with_signals']:,} of those with announcements"
    return f"{text}."


def _short(bandwidth: float, unit: str) -> str:
    return f"{bandwidth * SECONDS_PER[unit]:,.4g}/{unit}"
