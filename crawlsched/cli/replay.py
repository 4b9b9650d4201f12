"""``crawlsched replay``: let policies crawl a recorded history, and measure how fresh they keep the pages."""

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
from crawlsched.cli.parsing import option
from crawlsched.exceptions import CrawlschedError
from crawlsched.settings import format_bandwidth
from crawlsched.wording import or_dash, say_duration, say_table

if TYPE_CHECKING:
    from crawlsched.simulation import History, Replayed

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]


HELP = "let policies crawl a recorded history of changes, and measure the freshness"
EXAMPLES = (
    "crawlsched replay --pages pages.csv --changes changes.csv --bandwidth 0.3x --policy posterior",
    "crawlsched replay --pages p.csv --changes c.csv --bandwidth 0.3x 1x --policy round_robin posterior",
)
_BANDWIDTH = "0.5/s, 300/h, 2000/d, or 0.3x for 0.3 crawls per change; several make a table"
_POLICY = f"of {POLICIES_HELP}; several make a table, each NAME or NAME:ESTIMATOR"
OPTIONS = (
    add_history_options,
    option("--bandwidth X", _BANDWIDTH, nargs="+", required=True),
    option("--policy NAME", _POLICY, nargs="+", default=["posterior"]),
    option("--estimator NAME", f"where change rates come from: one of {ESTIMATORS_HELP}"),
    option("--crawls OUT.csv", "write every crawl: page,time,changed"),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Replay, and write what is asked for."""
    from crawlsched.simulation import replay

    history, times = read_options(arguments)
    replays = []
    for name in arguments.policy:
        policy, _, estimator = name.partition(":")
        for text in arguments.bandwidth:
            bandwidth = read_bandwidth(text, history, times)
            done = replay(history, bandwidth, policy, estimator or arguments.estimator, seed=arguments.seed, **times)
            replays.append({**_summary(done), **_further(done)})
    if len(replays) == 1:
        if arguments.crawls:
            _write_crawls(arguments.crawls, history, done)
        return _summary(done)
    if arguments.crawls:
        raise CrawlschedError("--crawls writes those of one policy at one bandwidth; name no more.")
    return {"replays": replays}


def _summary(done: "Replayed") -> dict[str, Any]:
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


def _further(done: "Replayed") -> dict[str, Any]:
    """Return ages and delays, and what the picks of the frontier that crawls are worth beside brute force."""
    times = {name: None if math.isnan(value) else value for name, value in done.timeliness._asdict().items()}
    return times if done.worth is None or not done.worth.size else {**times, "worth": float(done.worth.mean())}


def _row(one: dict[str, Any]) -> list[str]:
    return [
        f"{one['policy']}{':' if one['estimator'] else ''}{one['estimator'] or ''}",
        format_bandwidth(float(f"{one['bandwidth']:.4g}")),
        or_dash(one["freshness"], "{:.4f}"),
        f"{one['crawls']:,}",
        f"{one['changes_found']:,}",
        *("-" if one[name] is None else say_duration(one[name]) for name in ("age", "delay", "delay_95")),
    ]


def _write_crawls(path: str, history: "History", done: "Replayed") -> None:
    from crawlsched.simulation import open_text

    with open_text(path, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["page", "time", "changed"])
        columns = history.page[done.rows].tolist(), done.times.tolist(), done.changed.astype(int).tolist()
        writer.writerows(zip(*columns, strict=True))


def say(report: dict[str, Any]) -> str:
    """Say how it went; of several in a table."""
    if "replays" in report:
        rows = [["policy", "bandwidth", "freshness", "crawls", "found", "mean age", "mean delay", "95 %"]]
        return "\n".join(say_table(rows + [_row(one) for one in report["replays"]], "lrrrrrrr", indent=""))
    fresh = report["freshness"]
    text = "no page was there to be measured" if fresh is None else f"freshness {fresh:.4f}"
    rates = f" with {report['estimator']} rates" if report["estimator"] else ""
    return (
        f"{report['policy']}{rates} at {format_bandwidth(report['bandwidth'])}: {text}; "
        f"{report['crawls']:,} crawls found {report['changes_found']:,} changes ({say_duration(report['seconds'])})."
    )
