"""``crawlsched detect``: what the crawl would make of bodies that were fetched some time ago."""

import argparse
import csv
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from crawlsched.cli.parsing import add_json_option, examples
from crawlsched.exceptions import CrawlschedError

__all__ = ["add_parser", "report", "say"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "detect",
        help="judge recorded bodies as a crawl would, and say why",
        epilog=examples(
            "crawlsched detect --visits visits.csv --out judged.csv --set PROBES=False",
            "crawlsched detect --visits site.warc.gz",
        ),
    )
    parser.add_argument(
        "--visits",
        metavar="V.csv",
        required=True,
        help="time,url,body and optionally second,status,content_type,...; or a WARC, with the extra warc",
    )
    parser.add_argument("--out", metavar="O.csv", help="a row for each visit: what was delivered, ignored, and why")
    parser.add_argument(
        "--set",
        dest="assigned",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting, such as PROBES=False",
    )
    add_json_option(parser)
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Judge all visits."""
    from crawlsched.cli.recorded import COLUMNS, judge_all, read_visits, settings_here
    from crawlsched.cli.warc import is_warc, read_warc

    path, options = Path(arguments.visits), settings_here(arguments.assigned)
    with tempfile.TemporaryDirectory(prefix="crawlsched-warc-") as folder:
        visits = read_warc(path, Path(folder)) if is_warc(path) else read_visits(path)
        judged = list(judge_all(visits, options))
    if arguments.out:
        try:
            with Path(arguments.out).open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(COLUMNS)
                writer.writerows(row[: len(COLUMNS)] for row in judged)
        except OSError as error:
            raise CrawlschedError(f"The judgements cannot be written to {arguments.out}: {error.strerror}.") from error
    templates: dict[str, Counter[str]] = {}
    for row in judged:
        counts = templates.setdefault(row.template, Counter())
        counts.update(visits=1, delivered=row.delivered, probes=row.probes)
        if row.delivered:
            counts[row.kind] += 1
    return {
        "visits": len(judged),
        "delivered": sum(row.delivered for row in judged),
        "probes": sum(row.probes for row in judged),
        "outcomes": dict(Counter(row.outcome for row in judged)),
        "kinds": dict(Counter(row.kind for row in judged if row.delivered)),
        "changes": [
            {"time": row.time, "url": row.url, "place": place, "said": said, "says": says}
            for row in judged
            for place, said, says in row.changes
        ],
        "templates": {name: dict(counts) for name, counts in templates.items()},
    }


def say(report: dict[str, Any]) -> str:
    """Say it by outcome and by template."""
    outcomes = ", ".join(f"{n} {name}" for name, n in sorted(report["outcomes"].items()))
    kinds = ", ".join(f"{n} {name}" for name, n in sorted(report["kinds"].items()))
    lines = [
        f"{report['visits']} visits, {report['delivered']} delivered ({kinds or 'none'}), "
        f"{report['probes']} second fetches.",
        f"Outcomes: {outcomes}.",
    ]
    for name, counts in sorted(report["templates"].items()):
        lines.append(
            f"  {name}: {counts['visits']} visits, {counts['delivered']} delivered, {counts['probes']} second fetches"
        )
    return "\n".join(lines)
