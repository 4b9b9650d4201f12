"""``crawlsched withheld``: what did not reach the spider, by host and reason, and when that was last."""

import argparse
import time
from typing import Any

from crawlsched.cli.parsing import examples
from crawlsched.cli.stores import open_stores
from crawlsched.cli.target import common_options, find_target
from crawlsched.cli.wording import say_count, say_past

__all__ = ["add_parser", "report", "say"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    from crawlsched.content.withheld import REASONS

    parser = commands.add_parser(
        "withheld",
        help="what was not delivered to the spider, and why",
        parents=[common_options()],
        epilog=examples("crawlsched withheld --host example.com"),
    )
    parser.add_argument("--reason", metavar="REASON", choices=sorted(REASONS), help=", ".join(sorted(REASONS)))
    parser.add_argument("--host", metavar="HOST", help="only of this host")
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Gather it, what was last first."""
    stores = open_stores(find_target(arguments))
    try:
        rows = [
            {"host": host.host, "reason": reason, **row}
            for store in stores
            for host in store.reader.hosts()
            for reason, row in host.counts.get("withheld", {}).items()
            if arguments.host in (None, host.host) and arguments.reason in (None, reason)
        ]
        # Requests for known pages are as they should be; they are listed where somebody asks for them.
        n_known = sum(row["n"] for row in rows if row["reason"] == "known")
        rows = [row for row in rows if row["reason"] != "known" or arguments.reason == "known"]
        rows.sort(key=lambda row: row["last_at"], reverse=True)
        return {"collection": stores.name, "time": time.time(), "withheld": rows, "known": n_known}
    finally:
        stores.close()


def say(report: dict[str, Any]) -> str:
    """Put it in words: each host and reason with its newest URLs."""
    from crawlsched.content.withheld import REASONS

    known = f"{say_count(report['known'], 'request')} for known pages: `--reason known` lists the newest"
    if not report["withheld"]:
        nothing = f"Nothing of {report['collection']!r} was held back."
        return f"{nothing}\n{known}" if report["known"] else nothing
    lines = []
    for row in report["withheld"]:
        times = say_count(row["n"], "time")
        lines.append(f"{row['host']}  {row['reason']}  {times}: pages that {REASONS[row['reason']]}")
        lines += [f"  {say_past(at, report['time'])}  {url}" for url, at in row["urls"]]
    return "\n".join([*lines, known] if report["known"] else lines)
