"""``crawlsched withheld``: the pages that did not reach the spider, and ignored places of pages."""

import argparse
import time
from typing import Any

from crawlsched.cli.parsing import option
from crawlsched.cli.stores import open_stores
from crawlsched.crawl.withheld import REASONS
from crawlsched.wording import say_count, say_past

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]


HELP = "what was not delivered to the spider, and why"
EXAMPLES = ("crawlsched withheld --host example.com",)
OPTIONS = (
    option("--reason REASON", ", ".join(sorted(REASONS)), choices=sorted(REASONS)),
    option("--host HOST", "only of this host"),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    from crawlsched.crawl.learned import places_of
    from crawlsched.store.models import SITE

    with open_stores(arguments) as stores:
        rows = [
            {"host": host.host, "reason": reason, **row}
            for store in stores
            for host in store.reader.hosts()
            for reason, row in host.counts.get("withheld", {}).items()
            if arguments.host in (None, host.host) and arguments.reason in (None, reason)
        ]
        places = [
            place
            for store in stores
            for template in store.reader.learned()
            if not template.startswith(SITE)
            for place in places_of(store.reader.noise_mask, [template])
            if arguments.host in (None, place["template"].partition("/")[0]) and arguments.reason in (None, "noise")
        ]
    # Requests for known pages need no attention; they are listed only with `--reason known`.
    n_known = sum(row["n"] for row in rows if row["reason"] == "known")
    rows = [row for row in rows if row["reason"] != "known" or arguments.reason == "known"]
    rows.sort(key=lambda row: row["last_at"], reverse=True)
    found = {"withheld": rows, "known": n_known, "places": places}
    return {"collection": stores.name, "time": time.time(), **found}


def say(report: dict[str, Any]) -> str:
    """List each host and reason with the newest URLs, and each place with its evidence and last text."""
    lines = [] if report["withheld"] else [f"Nothing of {report['collection']!r} was held back."]
    for row in report["withheld"]:
        times = say_count(row["n"], "time")
        lines.append(f"{row['host']}  {row['reason']}  {times}: pages that {REASONS[row['reason']]}")
        lines += [f"  {say_past(at, report['time'])}  {url}" for url, at in row["urls"]]
    for place in report["places"]:
        if "suggestion" in place:
            lines.append(f"{place['template']}  delivered: {place['suggestion']}")
        else:
            since = say_past(place["since"], report["time"])
            lines.append(f"{place['template']}  left out since {since}: {place['place']}, which {place['evidence']};")
            lines.append(f"  its last text: {place['said']}")
    if report["known"]:
        lines.append(f"{say_count(report['known'], 'request')} for known pages: `--reason known` lists the newest")
    return "\n".join(lines)
