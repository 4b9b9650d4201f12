"""``crawlsched replay``: let one policy crawl a recorded history, and measure how fresh it kept the pages."""

import argparse
import csv
import math
from typing import TYPE_CHECKING, Any

from crawlsched.cli.history_options import (
    ESTIMATORS_HELP,
    POLICIES_HELP,
    add_history_options,
    read_bandwidth,
    read_options,
)
from crawlsched.cli.wording import say_duration
from crawlsched.settings import format_bandwidth

if TYPE_CHECKING:
    from crawlsched.simulation import History, Replayed
from crawlsched.cli.parsing import add_json_option, examples

__all__ = ["add_parser", "report", "say", "summary"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "replay",
        help="let a policy crawl a recorded history of changes, and measure how fresh it keeps the pages",
        epilog=examples(
            "crawlsched replay --pages pages.csv --changes changes.csv --bandwidth 0.3x --policy posterior"
        ),
    )
    add_history_options(parser)
    parser.add_argument(
        "--bandwidth", metavar="X", required=True, help="0.5/s, 300/h, 2000/d, or 0.3x for 0.3 crawls per change"
    )
    parser.add_argument("--policy", metavar="NAME", default="posterior", help=f"one of {POLICIES_HELP}")
    parser.add_argument("--estimator", metavar="NAME", help=f"where change rates come from: one of {ESTIMATORS_HELP}")
    parser.add_argument("--crawls", metavar="OUT.csv", help="write every crawl: page,time,changed")
    add_json_option(parser)
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Replay, and write what is asked for."""
    from crawlsched.simulation import replay

    history, times = read_options(arguments)
    bandwidth = read_bandwidth(arguments.bandwidth, history, times)
    done = replay(history, bandwidth, arguments.policy, arguments.estimator, seed=arguments.seed, **times)
    if arguments.crawls:
        _write_crawls(arguments.crawls, history, done)
    return summary(done)


def summary(done: "Replayed") -> dict[str, Any]:
    """Return the figures of a replay as plain numbers and texts."""
    return {
        "freshness": None if math.isnan(done.freshness) else done.freshness,
        "crawls": int(done.rows.size),
        "changes_found": int(done.changed.sum()),
        "policy": done.policy,
        "estimator": done.estimator,
        "bandwidth": done.bandwidth,
        "seconds": done.seconds,
    }


def _write_crawls(path: str, history: "History", done: "Replayed") -> None:
    from crawlsched.simulation import open_text

    with open_text(path, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["page", "time", "changed"])
        columns = history.page[done.rows].tolist(), done.times.tolist(), done.changed.astype(int).tolist()
        writer.writerows(zip(*columns, strict=True))


def say(report: dict[str, Any]) -> str:
    """Say how it went."""
    fresh = report["freshness"]
    text = "no page was there to be measured" if fresh is None else f"freshness {fresh:.4f}"
    rates = f" with {report['estimator']} rates" if report["estimator"] else ""
    return (
        f"{report['policy']}{rates} at {format_bandwidth(report['bandwidth'])}: {text}; "
        f"{report['crawls']:,} crawls found {report['changes_found']:,} changes ({say_duration(report['seconds'])})."
    )
