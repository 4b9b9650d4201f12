"""``crawlsched db shards`` and ``db split``: who crawls which part of a collection that processes share."""

import argparse
from typing import Any

from crawlsched.cli.members import say_processes, sharing
from crawlsched.cli.parsing import examples
from crawlsched.cli.stores import not_one_shard, open_stores
from crawlsched.cli.target import common_options, find_target
from crawlsched.cli.wording import say_table
from crawlsched.settings import format_bandwidth

__all__ = ["add_parser", "report", "say"]


def add_parser(actions: Any) -> None:
    """Add both actions."""
    action = actions.add_parser(
        "shards",
        help="the shards of a collection that processes share: who crawls each, and how large it is",
        parents=[common_options()],
        epilog=examples("crawlsched db shards --database postgresql://crawler@db.example/crawls"),
    )
    action.set_defaults(report=report, say=say)
    action = actions.add_parser(
        "split",
        help="divide a collection among more shards, or one of a single process for the first time",
        parents=[common_options()],
        epilog=examples("crawlsched db split 64 --database postgresql://crawler@db.example/crawls"),
    )
    action.add_argument(
        "n", metavar="N", nargs="?", type=int, help="how many there are to be: a power of two; twice as many by default"
    )
    action.set_defaults(report=split, say=say_split, is_long=True)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Gather the shards, and who has them."""
    stores = open_stores(find_target(arguments))
    try:
        if stores.shared is None:
            not_one_shard(stores.all[0], "db shards")
            return {"collection": stores.name, "n_shards": None, "shards": []}
        shared = sharing(stores.shared)
    finally:
        stores.close()
    owners = {member["token"]: f"{member['host']}:{member['pid']}" for member in shared["members"]}
    return {
        "collection": stores.name,
        **{name: shared[name] for name in ("n_shards", "rate", "paused_since", "waiting")},
        "processes": len(owners),
        "shards": [{**row, "owner": owners.get(row["member"])} for row in shared["shards"]],
    }


def say(report: dict[str, Any]) -> str:
    """Put them into a table."""
    if report["n_shards"] is None:
        return (
            f"{report['collection']}: no shards; one process crawls it (CRAWLSCHED_SHARDS makes one that several share)"
        )
    processes, rate = say_processes(report["processes"]), format_bandwidth(report["rate"])
    lines = [f"{report['collection']}: {report['n_shards']} shards on {processes}; {rate} for all"]
    rows = [["shard", "process", "pages", "waiting", "owners so far"]]
    rows += [_row(shard) for shard in report["shards"]]
    return "\n".join([*lines, *say_table(rows, right="rlrrr")])


def _row(shard: dict[str, Any]) -> list[str]:
    owner = "-" if shard["owner"] is None else shard["owner"] if shard["ready"] else f"{shard['owner']} (loading)"
    return [
        f"{shard['shard']}",
        owner,
        f"{shard['pages']:,}",
        f"{shard['waiting']:,}",
        f"{shard['epoch']:,}",
    ]


def split(arguments: argparse.Namespace) -> dict[str, Any]:
    """Divide the collection."""
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


def say_split(report: dict[str, Any]) -> str:
    """Say what was divided, and what is left to do."""
    pages, n_after = report["n_pages"], report["n_after"]
    before = "one process" if report["n_before"] == 1 else f"{report['n_before']} shards"
    return (
        f"{report['collection']}: {sum(pages):,} pages of {before} are in {n_after} shards now, {min(pages):,} to "
        f"{max(pages):,} in each; {format_bandwidth(report['rate'])} for all.\n"
        f"Crawls of it need CRAWLSCHED_SHARDS = {n_after}."
    )
