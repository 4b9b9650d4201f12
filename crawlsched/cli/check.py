"""``crawlsched check``: is all well? An exit code for cron, and a sentence for each thing that is not."""

import argparse
import time
from typing import Any

from crawlsched.cli.parsing import examples
from crawlsched.cli.target import common_options, find_target, open_store
from crawlsched.exceptions import CrawlschedError
from crawlsched.settings.values import read_seconds

__all__ = ["add_parser", "report", "say"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "check",
        help="does the crawl run, write and send, do hosts answer, are pages fresh? Exit code 1 if not",
        parents=[common_options()],
        epilog=examples("crawlsched check --freshness 0.9 --undelivered 100", "crawlsched check --last-pass 25h"),
    )
    parser.add_argument("--freshness", metavar="F", type=_share, help="the least expected freshness, such as 0.9")
    parser.add_argument("--budget", metavar="F", type=_share, help="the least share of the slots that is used")
    parser.add_argument("--undelivered", metavar="N", type=_count, help="how many changes may wait for the spider")
    parser.add_argument("--rest", metavar="SECONDS", type=_count, help="for how long a host may want to be left alone")
    parser.add_argument(
        "--last-pass", metavar="TIME", type=_duration, help="no crawl need run if one ended in this time, such as 25h"
    )
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
            last_pass=arguments.last_pass,
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


def _duration(text: str) -> float:
    try:
        return read_seconds(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a duration such as 25h or 90m, got {text!r}.") from None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or more, got {text!r}.")
    return int(text)
