"""``crawlsched db split``: divide a collection among shards."""

import argparse
from typing import Any

from crawlsched.cli.parsing import option
from crawlsched.cli.target import find_target
from crawlsched.settings import format_bandwidth

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]

HELP = "divide a collection among more shards, or one of a single process for the first time"
EXAMPLES = ("crawlsched db split 64 --database postgresql://crawler@db.example/crawls",)
OPTIONS = (option("N", "how many there are to be: a power of two; twice as many by default", int, nargs="?"),)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    from crawlsched.store import schema
    from crawlsched.store.database import Database
    from crawlsched.store.splitting import split as split_collection

    target = find_target(arguments)
    schema.check(target.database)
    # What takes long is no sign that the server hangs.
    database = Database(target.database, answer_within=None)
    try:
        done = split_collection(database, target.collection, arguments.n, target.settings.bandwidth)
    finally:
        database.close()
    return {"collection": target.collection, **done._asdict()}


def say(report: dict[str, Any]) -> str:
    """Say what was divided, and what is left to do."""
    pages, n_after = report["n_pages"], report["n_after"]
    before = "one process" if report["n_before"] == 1 else f"{report['n_before']} shards"
    return (
        f"{report['collection']}: {sum(pages):,} pages of {before} are in {n_after} shards now, {min(pages):,} to "
        f"{max(pages):,} in each; {format_bandwidth(report['rate'])} for all.\n"
        f"Crawls of it need CRAWLSCHED_SHARDS = {n_after}."
    )
