"""``crawlsched withheld``: what did not reach the spider, and which places of pages are left out, or might be."""

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
    from crawlsched.content.learned import places_of

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
        places = [
            place
            for store in stores
            for place in places_of(store.reader.noise_mask, store.reader.masked_templates())
            if arguments.host in (None, place["template"].partition("/")[0]) and arguments.reason in (None, "noise")
        ]
        return {
            "collection": stores.name, "time": time.time(), "withheld": rows, "known": n_known, "places": places,
        }  # fmt: skip
    finally:
        stores.close()


def say(report: dict[str, Any]) -> str:
    """Put it in words: each host and reason with its newest URLs; each place with its evidence and last words."""
    from crawlsched.content.withheld import REASONS

    lines = [] if report["withheld"] else [f"Nothing of {report['collection']!r} was held back."]
    for row in report["withheld"]:
        times = say_count(row["n"], "time")
        lines.append(f"{row['host']}  {row['reason']}  {times}: pages that {REASONS[row['reason']]}")
        lines += [f"  {say_past(at, report['time'])}  {url}" for url, at in row["urls"]]
    for place in report["places"]:
        if "suggestion" in place:
            lines.append(f"{place['template']}  told: {place['suggestion']}")
        else:
            since = say_past(place["since"], report["time"])
            lines.append(f"{place['template']}  left out since {since}: {place['place']}, which {place['evidence']};")
            lines.append(f"  it said last: {place['said']}")
    if report["known"]:
        lines.append(f"{say_count(report['known'], 'request')} for known pages: `--reason known` lists the newest")
    return "\n".join(lines)
