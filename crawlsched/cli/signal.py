"""``crawlsched signal URL...``: announce that pages may have changed; what that is worth is learned."""

import argparse
from typing import Any

from crawlsched.cli.asking import ask_about_pages, say_unknown
from crawlsched.cli.parsing import examples
from crawlsched.cli.target import common_options
from crawlsched.cli.wording import say_count

__all__ = ["add_parser", "report", "say"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "signal",
        help="announce that pages may have changed",
        parents=[common_options()],
        epilog=examples("crawlsched signal https://example.com/news/1 --source newsroom"),
    )
    parser.add_argument("urls", metavar="URL", nargs="+")
    parser.add_argument(
        "--source",
        metavar="NAME",
        default="command line",
        help="who says so: what the announcements of each name prove to be worth is learned by itself",
    )
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Tell the running crawl, or leave word for the next one."""
    return ask_about_pages(arguments, "signal", {"source": arguments.source})


def say(report: dict[str, Any]) -> str:
    """Say what was taken up."""
    pages = say_count(report["pages"], "page")
    if not report["running"]:
        return f"The announcement of {pages} waits for the next crawl; none is running now.{say_unknown(report)}"
    taken = report["taken"]
    text = f"{pages} announced"
    if taken is not None and taken < report["pages"]:
        text += f", {report['pages'] - taken} of them too soon after a crawl or a signal to count"
    return f"{text}.{say_unknown(report)}"
