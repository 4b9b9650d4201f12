"""``crawlsched db shards``: who crawls which part of a collection that processes share."""

import argparse
from typing import Any

from crawlsched.cli.members import say_differing, say_processes, sharing
from crawlsched.cli.stores import open_stores
from crawlsched.settings import format_bandwidth
from crawlsched.wording import or_dash, say_table

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]


HELP = "the shards of a collection that processes share: who crawls each, at which rate, and how evenly"
EXAMPLES = ("crawlsched db shards --database postgresql://crawler@db.example/crawls",)
OPTIONS = ()


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Gather the shards, and what their owners have written last."""
    with open_stores(arguments) as stores:
        if stores.shared is None:
            stores.whole("db shards")
            return {"collection": stores.name, "n_shards": None, "shards": []}
        shared, statuses = sharing(stores.shared), stores.shared.statuses()
    owners = {member["token"]: f"{member['host']}:{member['pid']}" for member in shared["members"]}
    shards = []
    for row in shared["shards"]:
        status = statuses[row["shard"]] if row["ready"] else {}
        about = {"rate": status.get("bandwidth"), "threshold": status.get("threshold")}
        # The row's own number is renewed only when a shard has grown by a tenth.
        about["pages"] = status.get("pages", row["pages"])
        shards.append({**row, "owner": owners.get(row["member"]), **about})
    thresholds = [row["threshold"] for row in shards if row["threshold"] and row["pages"]]
    return {
        "collection": stores.name,
        **{name: shared[name] for name in ("n_shards", "rate", "paused_since", "waiting")},
        "processes": len(owners),
        "shards": shards,
        "threshold_spread": 1.0 - min(thresholds) / max(thresholds) if thresholds else None,
    }


def say(report: dict[str, Any]) -> str:
    if report["n_shards"] is None:
        return (
            f"{report['collection']}: no shards; one process crawls it (CRAWLSCHED_SHARDS makes one that several share)"
        )
    processes, rate = say_processes(report["processes"]), format_bandwidth(report["rate"])
    lines = [f"{report['collection']}: {report['n_shards']} shards on {processes}; {rate} for all"]
    rows = [["shard", "process", "pages", "rate", "threshold", "waiting", "owners so far"]]
    for shard in report["shards"]:
        loading = "" if shard["ready"] or shard["owner"] is None else " (loading)"
        numbers = [f"{shard['pages']:,}", or_dash(shard["rate"], "{:.3g}/s"), or_dash(shard["threshold"], "{:.3g}")]
        counts = [f"{shard['waiting']:,}", f"{shard['epoch']:,}"]
        rows.append([f"{shard['shard']}", f"{or_dash(shard['owner'], '{}')}{loading}", *numbers, *counts])
    lines += say_table(rows, right="rlrrrrr")
    return "\n".join([*lines, *say_differing(report["threshold_spread"], "shards")])
