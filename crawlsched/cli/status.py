"""``crawlsched status``: what the database knows of a collection, and how its budget is used."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from crawlsched.cli.recent import visits_since
from crawlsched.cli.target import Target, common_options, find_target, open_store
from crawlsched.cli.wording import say_count, say_duration, say_moment, say_share, say_table
from crawlsched.settings import format_bandwidth

if TYPE_CHECKING:
    from crawlsched.store import LeaseRow, Store

__all__ = ["add_parser", "report", "say"]

# So many of the best and of the worst sources are shown; --json has them all.
_SHOWN_SOURCES = 5


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "status", help="pages, freshness, use of the budget, sources of announcements", parents=[common_options()]
    )
    parser.set_defaults(report=report, say=say)
