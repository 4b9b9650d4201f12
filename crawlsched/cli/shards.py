"""``crawlsched db shards``: who crawls which part of a collection that processes share."""

import argparse
from typing import Any

from crawlsched.cli.members import say_processes, sharing
from crawlsched.cli.stores import open_stores
from crawlsched.settings import format_bandwidth
from crawlsched.wording import or_dash, say_table

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]


HELP = "the shards of a collection that processes share: who crawls each, and how large it is"
EXAMPLES = ("crawlsched db shards --database postgresql://crawler@db.example/crawls",)
OPTIONS = ()


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Gather the shards, and who has them."""
    with open_stores(arguments) as stores:
        if stores.shared is None:
            stores.whole("db shards")
            return {"collection": stores.name, "n_shards": None, "shards": []}
        shared = sharing(stores.shared)
    owners = {member["token"]: f"{member['host']}:{member['pid']}" for member in shared["members"]}
    return {
        "collection": stores.name,
        **{name: shared[name] for name in ("n_shards", "rate", "paused_since", "waiting")},
        "processes": len(owners),
        "shards": [{**row, "owner": owners.get(row["member"])} for row in shared["shards"]],
    }


def say(report: dict[str, Any]) -> str:
    if report["n_shards"] is None:
        return (
            f"{report['collection']}: no shards; one process crawls it (CRAWLSCHED_SHARDS makes one that several share)"
        )
    processes, rate = say_processes(report["processes"]), format_bandwidth(report["rate"])
    lines = [f"{report['collection']}: {report['n_shards']} shards on {processes}; {rate} for all"]
    rows = [["shard", "process", "pages", "waiting", "owners so far"]]
    for shard in report["shards"]:
        loading = "" if shard["ready"] or shard["owner"] is None else " (loading)"
        counts = [f"{shard[name]:,}" for name in ("pages", "waiting", "epoch")]
        rows.append([f"{shard['shard']}", f"{or_dash(shard['owner'], '{}')}{loading}", *counts])
    return "\n".join([*lines, *say_table(rows, right="rlrrr")])
