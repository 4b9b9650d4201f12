"""``crawlsched jobs``: the jobs as a process of their own, beside a crawl with ``CRAWLSCHED_JOBS = False``."""

import argparse
import logging
import signal
import time
from typing import Any

from crawlsched.cli.parsing import examples
from crawlsched.cli.target import common_options, find_target, open_store

__all__ = ["add_parser", "report", "say"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "jobs",
        help="re-plan, poll sitemaps and prune in a process of its own, until it is interrupted",
        parents=[common_options()],
        epilog=examples("crawlsched jobs"),
    )
    parser.set_defaults(report=report, say=say, is_long=True)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run until somebody interrupts it."""
    target = find_target(arguments)
    store = open_store(target, read_only=False)
    # After the database was found: until then a sentence is enough, and this loads Scrapy.
    from crawlsched.jobs.crawl_jobs import JobsProcess

    # What other libraries do is of interest where it goes wrong.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s: %(message)s")
    logging.getLogger("crawlsched").setLevel(logging.INFO)
    # Ended by a service manager or by hand, it ends alike.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started_at = time.time()
    try:
        JobsProcess(store, target.settings, time.time).run()
    except KeyboardInterrupt:
        pass
    finally:
        store.close()
    return {"collection": store.name, "ran_for": time.time() - started_at}


def say(report: dict[str, Any]) -> str:
    """Say nothing: what was done stands in the log."""
    return ""
