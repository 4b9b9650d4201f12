"""``crawlsched detect``: judge stored bodies as a crawl would, and list the changes."""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from crawlsched.cli.parsing import option
from crawlsched.cli.table_files import write_table

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]


HELP = "judge recorded bodies as a crawl would, and say why"
EXAMPLES = ("crawlsched detect --visits visits.csv --out judged.csv --set PROBES=False",)
OPTIONS = (
    option("--visits V.csv", "time,url,body and optionally second,status,content_type,...", required=True),
    option("--out O.csv", "a row for each visit: what was delivered, ignored, and why"),
    option("--set NAME=VALUE", "a setting, such as PROBES=False", dest="assigned", action="append", default=[]),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Judge all visits."""
    from crawlsched.jobs.recorded import COLUMNS, judge_all, read_visits, settings_here

    judged = list(judge_all(read_visits(Path(arguments.visits)), settings_here(arguments.assigned)))
    if arguments.out:
        write_table(arguments.out, COLUMNS, (row[: len(COLUMNS)] for row in judged), otherwise=".csv")
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
    """Say how many visits had each outcome, for all visits and for each template."""
    outcomes, kinds = (
        ", ".join(f"{n} {name}" for name, n in sorted(report[of].items())) for of in ("outcomes", "kinds")
    )
    lines = [
        f"{report['visits']} visits, {report['delivered']} delivered ({kinds or 'none'}), "
        f"{report['probes']} second fetches.",
        f"Outcomes: {outcomes}.",
    ]
    for name, n in sorted(report["templates"].items()):
        lines.append(f"  {name}: {n['visits']} visits, {n['delivered']} delivered, {n['probes']} second fetches")
    return "\n".join(lines)
