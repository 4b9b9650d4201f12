"""``crawlsched signal URL...``: announce that pages may have changed; the crawl learns how often that is true."""

import argparse
from typing import Any

from crawlsched.cli.parsing import option
from crawlsched.cli.recrawl import ask_about_pages, say_unknown
from crawlsched.wording import say_count

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]


HELP = "announce that pages may have changed"
EXAMPLES = ("crawlsched signal https://example.com/news/1 --source newsroom",)
OPTIONS = (
    option("URL", "pages that are known", dest="urls", nargs="+"),
    option(
        "--source NAME",
        "who announces it; the crawl learns how often its announcements are true",
        default="command line",
    ),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    return ask_about_pages(arguments, "signal", {"source": arguments.source})


def say(report: dict[str, Any]) -> str:
    pages = say_count(report["pages"], "page")
    if not report["running"]:
        return f"The announcement of {pages} waits for the next crawl; none is running now.{say_unknown(report)}"
    taken = report["taken"]
    text = f"{pages} announced"
    if taken is not None and taken < report["pages"]:
        text += f", {report['pages'] - taken} of them too soon after a crawl or an announcement to count"
    return f"{text}.{say_unknown(report)}"
