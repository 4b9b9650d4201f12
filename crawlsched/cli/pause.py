"""``crawlsched pause`` and ``crawlsched resume``: let nothing go out, across restarts, and let it go on."""

import argparse
import time
from functools import partial
from typing import Any

from crawlsched.cli.parsing import examples
from crawlsched.cli.target import common_options, find_target, open_store, owner_now, send

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
    store = open_store(find_target(arguments), read_only=False)
    try:
        if owner_now(store) is None:
            store.send(name, {}, time.time())
            return {"collection": store.name, "command": name, "running": False, "paused_since": None}
        answer = send(store, name, {}).result
        return {"collection": store.name, "command": name, "running": True, "paused_since": answer["paused_since"]}
    finally:
        store.close()


def say(report: dict[str, Any]) -> str:
    """Say what the crawl does now."""
    if report["command"] == "pause":
        what = "sends nothing until `crawlsched resume`, also after a restart"
    else:
        what = "goes on"
    if report["running"]:
        return f"The crawl of {report['collection']!r} {what}."
    return f"No crawl of {report['collection']!r} is running; the next one {what}."
