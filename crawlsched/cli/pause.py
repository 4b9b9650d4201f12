"""``crawlsched pause`` and ``crawlsched resume``: let nothing go out, across restarts, and let it go on."""

import argparse
from functools import partial
from typing import Any

from crawlsched.cli.parsing import examples
from crawlsched.cli.stores import not_one_shard, open_stores
from crawlsched.cli.target import common_options, find_target

__all__ = ["add_parser", "report", "say"]


def add_parser(commands: Any) -> None:
    """Add both commands."""
    for name, meaning in (
        ("pause", "let a crawl send nothing until it is resumed, also after a restart"),
        ("resume", "let a crawl that was paused go on"),
    ):
        parser = commands.add_parser(
            name, help=meaning, parents=[common_options()], epilog=examples(f"crawlsched {name}")
        )
        parser.set_defaults(report=partial(report, name), say=say)


def report(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Tell the running crawl, or leave word for the next one."""
    stores = open_stores(find_target(arguments), read_only=False)
    try:
        if stores.shared is not None:
            since = stores.shared.pause(paused=name == "pause")
            running = stores.shared.look().has_members()
            return {"collection": stores.name, "command": name, "running": running, "paused_since": since}
        store = not_one_shard(stores.all[0], name)
        (answer,) = stores.ask([(store, {})], name)
        since = None if answer is None else answer["paused_since"]
        return {"collection": stores.name, "command": name, "running": answer is not None, "paused_since": since}
    finally:
        stores.close()


def say(report: dict[str, Any]) -> str:
    """Say what the crawl does now."""
    if report["command"] == "pause":
        what = "sends nothing until `crawlsched resume`, also after a restart"
    else:
        what = "goes on"
    if report["running"]:
        return f"The crawl of {report['collection']!r} {what}."
    return f"No crawl of {report['collection']!r} is running; the next one {what}."
