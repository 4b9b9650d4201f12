"""``crawlsched check``: is all well? An exit code for cron, and a sentence for each thing that is not."""

import argparse
import time
from typing import Any

from crawlsched.cli.parsing import examples
from crawlsched.cli.target import common_options, find_target, open_store
from crawlsched.exceptions import CrawlschedError

__all__ = ["add_parser", "report", "say"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "check",
        help="is the crawl running, writing and sending, and are the pages fresh? Exit code 1 if not",
        parents=[common_options()],
        epilog=examples("crawlsched check --freshness 0.9 --undelivered 100"),
    )
    parser.add_argument("--freshness", metavar="F", type=_share, help="the least expected freshness, such as 0.9")
    parser.add_argument("--budget", metavar="F", type=_share, help="the least share of the slots that is used")
    parser.add_argument("--undelivered", metavar="N", type=_count, help="how many changes may wait for the spider")
    parser.add_argument("--rest", metavar="SECONDS", type=_count, help="for how long a host may want to be left alone")
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Look at the vitals.

    Raises
    ------
    CrawlschedError
        If something is not well and no JSON is wanted: what it is, a line each.
    """
    from crawlsched.web.vitals import Limits, checks, vitals

    store = open_store(find_target(arguments))
    try:
        limits = Limits(
            freshness=arguments.freshness,
            budget=arguments.budget,
            undelivered=arguments.undelivered,
            rest=arguments.rest,
        )
        found = checks(vitals(store), limits)
    finally:
        store.close()
    is_well = all(check.is_well for check in found)
    if not is_well and arguments.json is None:
        raise CrawlschedError("\n".join(f"{check.name}: {check.sentence}" for check in found if not check.is_well))
    arguments.exit_code = 0 if is_well else 1
    return {
        "collection": store.name,
        "time": time.time(),
        "ok": is_well,
        "checks": [check._asdict() for check in found],
    }


def say(report: dict[str, Any]) -> str:
    """Say that all is well, and what was looked at."""
    return "\n".join(f"{check['name']}: {check['sentence']}" for check in report["checks"])


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a share between 0 and 1, such as 0.9 or 90%, got {text!r}.")
    return share


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or more, got {text!r}.")
    return int(text)
