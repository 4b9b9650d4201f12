"""``crawlsched recrawl URL``: crawl pages next, before anything that is worth more."""

import argparse
from typing import Any

from crawlsched.cli.asking import ask_about_pages, say_unknown
from crawlsched.cli.target import common_options
from crawlsched.cli.wording import say_count

__all__ = ["add_parser", "report", "say"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser("recrawl", help="crawl pages next", parents=[common_options()])
    parser.add_argument("urls", metavar="URL", nargs="+")
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Ask the running crawl, or leave word for the next one."""
    return ask_about_pages(arguments, "recrawl", {})


def say(report: dict[str, Any]) -> str:
    """Say what will happen."""
    pages = say_count(report["pages"], "page")
    when = "next" if report["running"] else "first when a crawl starts; none is running now"
    return f"{pages} will be crawled {when}.{say_unknown(report)}"
