"""Options that say which history is replayed, and which part of it."""

import argparse
import math
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import option
from crawlsched.exceptions import CrawlschedError
from crawlsched.settings import parse_bandwidth

if TYPE_CHECKING:
    from crawlsched.simulation import History

__all__ = ["ESTIMATORS_HELP", "POLICIES_HELP", "add_history_options", "bandwidth_of", "read_bandwidth", "read_options"]

# Named here too: the simulation is loaded when it is run, which takes longer than most commands.
POLICIES_HELP = (
    "round_robin, uniform, proportional, square_root, lds, poisson, harmonic, nutch, stormcrawler, greedy, greedy_cis, "
    "greedy_ncis, greedy_cis_plus, greedy_ncis_approx_1, greedy_ncis_approx_2, posterior, frontier"
)
ESTIMATORS_HELP = (
    "naive, bias_reduced, uniform_prior, maximum_likelihood, moment_matching, last_modified, law_of_large_numbers, "
    "stochastic_approximation, momentum, frequency_classes, gamma_posterior, posterior, known, hindsight"
)


_OPTIONAL = "importance,change_rate,recall,false_signal_rate"


def add_history_options(parser: argparse.ArgumentParser) -> None:
    """Add them to the parser of a command."""
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
    """Read the history, and the times as `crawlsched.simulation.replay` takes them."""
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
    """Read a bandwidth, in crawls per second (``300/h``), or a multiple of one (``0.3x``).

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
