"""Options that say which history is replayed, and which part of it."""

import argparse
import re
from typing import TYPE_CHECKING, TypedDict

from crawlsched.exceptions import CrawlschedError
from crawlsched.settings import parse_bandwidth

if TYPE_CHECKING:
    from crawlsched.simulation import History

__all__ = ["ESTIMATORS_HELP", "POLICIES_HELP", "add_history_options", "read_bandwidth", "read_multiple", "read_options"]

# Named here too: the simulation is loaded when it is run, which takes longer than most commands.
POLICIES_HELP = (
    "round_robin, uniform, proportional, square_root, lds, poisson, harmonic, nutch, stormcrawler, greedy, greedy_cis, "
    "greedy_ncis, greedy_cis_plus, greedy_ncis_approx_1, greedy_ncis_approx_2, posterior, frontier"
)
ESTIMATORS_HELP = (
    "naive, bias_reduced, uniform_prior, maximum_likelihood, moment_matching, last_modified, law_of_large_numbers, "
    "stochastic_approximation, momentum, frequency_classes, gamma_posterior, posterior, known, hindsight"
)


class Times(TypedDict):
    """The part of a history that is replayed."""

    start: float | None
    end: float | None
    measure_from: float | None


def add_history_options(parser: argparse.ArgumentParser) -> None:
    """Add them to a command's parser."""
    group = parser.add_argument_group("history", "CSV files, plain or compressed (.gz); all times in POSIX seconds")
    group.add_argument("--changes", metavar="C", required=True, help="page,time")
    group.add_argument(
        "--pages",
        metavar="P",
        required=True,
        help="page,birth,end and optionally importance,change_rate,recall,false_signal_rate (per second)",
    )
    group.add_argument("--signals", metavar="S", help="page,time")
    group.add_argument("--start", metavar="T", type=_time, help="by default the first birth")
    group.add_argument("--end", metavar="T", type=_time, help="by default the last time in the history")
    group.add_argument("--measure-from", metavar="T", type=_time, help="by default the start")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="for poisson, which draws at random")


def _time(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be POSIX seconds, such as 1700000000, got {text!r}.") from None


def read_options(arguments: argparse.Namespace) -> "tuple[History, Times]":
    """Read the history, and the times as `crawlsched.simulation.replay` takes them."""
    from crawlsched.simulation import read_history

    if arguments.seed < 0:
        raise CrawlschedError(f"seed must be a whole number, 0 or more, got {arguments.seed}.")
    history = read_history(arguments.pages, arguments.changes, arguments.signals)
    return history, {"start": arguments.start, "end": arguments.end, "measure_from": arguments.measure_from}


def read_bandwidth(text: str, history: "History", times: Times) -> float:
    """Read a bandwidth, in crawls per second; ``0.3x`` is 0.3 times the history's total change rate."""
    multiple = read_multiple(text)
    if multiple is None:
        try:
            return parse_bandwidth(text)
        except ValueError as error:
            raise CrawlschedError(str(error)) from None
    bandwidth = multiple * float(history.hindsight_rates(history.window(**times)).sum())
    if not bandwidth > 0.0:
        raise CrawlschedError(f"bandwidth must be above 0 times the changes in a history with changes, got {text!r}.")
    return bandwidth


def read_multiple(text: str) -> float | None:
    """Read a multiple such as ``0.3x``: 0 if there is no number before the x, and None if there is no x.

    Examples
    --------
    >>> read_multiple("0.3x"), read_multiple("300/h")
    (0.3, None)
    """
    multiple = re.fullmatch(r"\s*([0-9.eE+-]+)\s*x\s*", text)
    if multiple is None:
        return None
    try:
        return float(multiple[1])
    except ValueError:
        return 0.0
