"""``crawlsched shards``: the shards of a collection that processes share, who crawls each, and how evenly it goes."""

import argparse
from typing import Any

from crawlsched.cli.members import say_differing, say_processes, sharing
from crawlsched.cli.parsing import examples
from crawlsched.cli.stores import not_one_shard, open_stores
from crawlsched.cli.target import common_options, find_target
from crawlsched.cli.wording import say_table
from crawlsched.settings import format_bandwidth

__all__ = ["add_parser", "report", "say"]


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "shards",
        help="the shards of a collection that processes share: who crawls each, at which rate, and how evenly",
        parents=[common_options()],
        epilog=examples("crawlsched shards --database postgresql://crawler@db.example/crawls"),
    )
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Gather the shards, and what their owners have said of them last."""
    stores = open_stores(find_target(arguments))
    try:
        if stores.shared is None:
            not_one_shard(stores.all[0], "shards")
            return {"collection": stores.name, "n_shards": None, "shards": []}
        shared, said = sharing(stores.shared), stores.shared.statuses()
    finally:
        stores.close()
    owners = {member["token"]: f"{member['host']}:{member['pid']}" for member in shared["members"]}
    shards = []
    for row in shared["shards"]:
        status = said[row["shard"]] if row["ready"] else {}
        about = {"rate": status.get("bandwidth"), "threshold": status.get("threshold")}
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
    """Put them into a table."""
    if report["n_shards"] is None:
        return (
            f"{report['collection']}: no shards; one process crawls it (CRAWLSCHED_SHARDS makes one that several share)"
        )
    processes, rate = say_processes(report["processes"]), format_bandwidth(report["rate"])
    lines = [f"{report['collection']}: {report['n_shards']} shards on {processes}; {rate} for all"]
    rows = [["shard", "process", "pages", "rate", "threshold", "waiting", "owners so far"]]
    rows += [_row(shard) for shard in report["shards"]]
    lines += say_table(rows, right="rlrrrrr")
    return "\n".join([*lines, *say_differing(report["threshold_spread"], "shards")])


def _row(shard: dict[str, Any]) -> list[str]:
    rate, threshold = shard["rate"], shard["threshold"]
    owner = "-" if shard["owner"] is None else shard["owner"] if shard["ready"] else f"{shard['owner']} (loading)"
    return [
        f"{shard['shard']}",
        owner,
        f"{shard['pages']:,}",
        "-" if rate is None else f"{rate:.3g}/s",
        "-" if threshold is None else f"{threshold:.3g}",
        f"{shard['waiting']:,}",
        f"{shard['epoch']:,}",
    ]
