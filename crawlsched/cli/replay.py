"""``crawlsched replay``: let policies crawl a recorded history, and measure how fresh they keep the pages."""

import argparse
import csv
import math
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import option
from crawlsched.exceptions import CrawlschedError
from crawlsched.settings import format_bandwidth, parse_bandwidth
from crawlsched.wording import or_dash, say_count, say_duration, say_table

if TYPE_CHECKING:
    from crawlsched.simulation import History, Replayed

__all__ = [
    "ESTIMATORS_HELP",
    "EXAMPLES",
    "HELP",
    "OPTIONS",
    "POLICIES_HELP",
    "bandwidth_of",
    "read_bandwidth",
    "read_options",
]

# The names are repeated here, since loading the simulation takes longer than most commands run.
POLICIES_HELP = (
    "round_robin, uniform, proportional, square_root, lds, poisson, harmonic, nutch, stormcrawler, greedy, greedy_cis, "
    "greedy_ncis, greedy_cis_plus, greedy_ncis_approx_1, greedy_ncis_approx_2, posterior, frontier"
)
ESTIMATORS_HELP = (
    "naive, bias_reduced, uniform_prior, maximum_likelihood, moment_matching, last_modified, law_of_large_numbers, "
    "stochastic_approximation, momentum, frequency_classes, gamma_posterior, posterior, known, hindsight"
)


_OPTIONAL = "importance,change_rate,recall,false_signal_rate"


def _add_history_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("history", "CSV files, plain or compressed (.gz); all times in POSIX seconds")
    for add in (
        option("--changes C", "page,time", required=True),
        option("--pages P", f"page,birth,end and optionally {_OPTIONAL} (per second)", required=True),
        option("--signals S", "page,time"),
        option("--start T", "by default the first birth", _read_time),
        option("--end T", "by default the last time in the history", _read_time),
        option("--measure-from T", "by default the start", _read_time),
        option("--seed S", "for poisson, which draws at random", int, default=0),
    ):
        add(group)


def _read_time(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("POSIX seconds, such as 1700000000") from None


def read_options(arguments: argparse.Namespace) -> "tuple[History, dict[str, Any]]":
    """Read the history, and the times as arguments of `crawlsched.simulation.replay`."""
    from crawlsched.simulation import read_history

    if arguments.seed < 0:
        raise CrawlschedError(f"seed must be a whole number, 0 or more, got {arguments.seed}.")
    history = read_history(arguments.pages, arguments.changes, arguments.signals)
    return history, {"start": arguments.start, "end": arguments.end, "measure_from": arguments.measure_from}


def read_bandwidth(text: str, history: "History", times: dict[str, Any]) -> float:
    """Read a bandwidth, in crawls per second; ``0.3x`` is 0.3 times the history's total change rate."""
    once = float(history.hindsight_rates(history.window(**times)).sum()) if text.endswith("x") else 1.0
    return bandwidth_of(text, once, "the change rate of the history")


def bandwidth_of(text: str, once: float, times: str) -> float:
    """Read a bandwidth (``300/h``), or a multiple of `once` (``0.3x``); return crawls per second.

    >>> bandwidth_of("0.5x", 10.0, "the present one"), bandwidth_of("7200/h", 10.0, "the present one")
    (5.0, 2.0)
    """
    try:
        bandwidth = (
            float(text.strip().removesuffix("x")) * once if text.strip().endswith("x") else parse_bandwidth(text)
        )
    except ValueError:
        bandwidth = 0.0
    if not 0.0 < bandwidth < math.inf:
        raise CrawlschedError(
            f"A bandwidth must be such as 5/s, 300/h or 20000/d, or 2x for twice {times}, got {text!r}."
        )
    return bandwidth


HELP = "let policies crawl a recorded history of changes, and measure the freshness"
EXAMPLES = (
    "crawlsched replay --pages pages.csv --changes changes.csv --bandwidth 0.3x --policy posterior",
    "crawlsched replay --pages p.csv --changes c.csv --bandwidth 0.3x 1x --policy round_robin posterior",
)
_BANDWIDTH = "0.5/s, 300/h, 2000/d, or 0.3x for 0.3 crawls per change; several make a table"
_POLICY = f"of {POLICIES_HELP}; several make a table, each NAME or NAME:ESTIMATOR"
OPTIONS = (
    _add_history_options,
    option("--bandwidth X", _BANDWIDTH, nargs="+", required=True),
    option("--policy NAME", _POLICY, nargs="+", default=["posterior"]),
    option("--estimator NAME", f"where change rates come from: one of {ESTIMATORS_HELP}"),
    option("--crawls OUT.csv", "write every crawl: page,time,changed"),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Replay, and write the files that were asked for."""
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
        raise CrawlschedError("--crawls writes the crawls of one policy at one bandwidth; name one of each.")
    return {"replays": replays}


def _summary(done: "Replayed") -> dict[str, Any]:
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
    times = {name: None if math.isnan(value) else value for name, value in done.timeliness.items()}
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
    """Say the results of a replay in a sentence, or of several replays in a table."""
    if "replays" in report:
        rows = [["policy", "bandwidth", "freshness", "crawls", "found", "mean age", "mean delay", "95 %"]]
        return "\n".join(say_table(rows + [_row(one) for one in report["replays"]], "lrrrrrrr", indent=""))
    fresh = report["freshness"]
    text = "there was no page to measure" if fresh is None else f"freshness {fresh:.4f}"
    rates = f" with {report['estimator']} rates" if report["estimator"] else ""
    return (
        f"{report['policy']}{rates} at {format_bandwidth(report['bandwidth'])}: {text}; "
        f"{say_count(report['crawls'], 'crawl')} found {say_count(report['changes_found'], 'change')} "
        f"({say_duration(report['seconds'])})."
    )
