"""``crawlsched diff URL``: what changed in a page, where its texts are kept."""

import argparse
import time
from typing import TYPE_CHECKING, Any

from crawlsched.cli.stores import open_stores
from crawlsched.cli.target import common_options, find_target
from crawlsched.cli.wording import say_past
from crawlsched.exceptions import CrawlschedError

if TYPE_CHECKING:
    from crawlsched.store import KeptText, Store
from crawlsched.cli.parsing import examples

__all__ = ["add_parser", "report", "say"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "diff",
        help="what changed in a page, where its texts are kept",
        parents=[common_options()],
        epilog=examples("crawlsched diff https://example.com/news/1"),
    )
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--context", metavar="N", type=int, default=1, help="lines around each change (1)")
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Compare the last two texts."""
    stores = open_stores(find_target(arguments))
    try:
        store, page = stores.find_page(arguments.url)
        kept = _kept(store, page, arguments.url)
        last = next((row for row in store.reader.observations_of(page, 100) if row.changed), None)
    finally:
        stores.close()
    assert kept.before is not None
    from crawlsched.content.kept_texts import differences

    return {
        "url": arguments.url,
        "page": page,
        "time": time.time(),
        "before_seen_at": kept.before_seen_at,
        "seen_at": kept.seen_at,
        "changed_share": None if last is None else last.changed_share,
        "similarity": None if last is None else last.similarity,
        "diff": differences(kept.before, kept.text, arguments.context),
    }


def _kept(store: "Store", page: int, url: str) -> "KeptText":
    kept = store.reader.text_of(page)
    if kept is None or kept.before is None:
        what = "No text of" if kept is None else "Only one text of"
        raise CrawlschedError(
            f"{what} {url} is kept; texts are kept of changes that are found with CRAWLSCHED_KEPT_TEXT_BYTES above 0, "
            "and it takes two to compare."
        )
    return kept


def say(report: dict[str, Any]) -> str:
    """Show the lines that went and those that came."""
    now = report["time"]
    lines = [
        report["url"],
        f"--- {say_past(report['before_seen_at'], now)}",
        f"+++ {say_past(report['seen_at'], now)}",
    ]
    return "\n".join([*lines, *(report["diff"] or ["(nothing that is kept of them differs)"])])
