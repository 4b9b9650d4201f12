"""``crawlsched check``: print a sentence for each problem, and return an exit code for cron."""

import argparse
import time
from typing import Any

from crawlsched.cli.parsing import option, whole_number
from crawlsched.cli.stores import open_stores
from crawlsched.exceptions import CrawlschedError
from crawlsched.settings.values import read_seconds, read_share

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]


HELP = "whether the crawl runs, sends, and keeps its pages fresh; exit code 1 if not"
EXAMPLES = ("crawlsched check --freshness 0.9 --undelivered 100", "crawlsched check --last-pass 25h")
OPTIONS = (
    option("--freshness F", "the least expected freshness, such as 0.9", read_share),
    option("--budget F", "the least share of the slots that is used", read_share),
    option("--undelivered N", "how many changes may wait for the spider", whole_number(0)),
    option("--rest SECONDS", "for how long a host may ask for rest", whole_number(0)),
    option("--last-pass TIME", "how long ago the last crawl may have ended, such as 25h", read_seconds),
)

_LIMITS = ("freshness", "budget", "undelivered", "rest", "last_pass")


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Look for problems; without ``--json``, raise an error that has a line for each problem."""
    from crawlsched.web.vitals import checks, vitals

    with open_stores(arguments) as stores:
        limits = {name: getattr(arguments, name) for name in _LIMITS}
        found = checks(vitals(stores.one()), **limits)
    wrong = [check for check in found if not check.is_well]
    if wrong and arguments.json is None:
        raise CrawlschedError("\n".join(f"{check.name}: {check.sentence}" for check in wrong))
    arguments.exit_code = 1 if wrong else 0
    checked = [check._asdict() for check in found]
    return {"collection": stores.name, "time": time.time(), "ok": not wrong, "checks": checked}


def say(report: dict[str, Any]) -> str:
    return "\n".join(f"{check['name']}: {check['sentence']}" for check in report["checks"])
