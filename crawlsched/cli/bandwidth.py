"""``crawlsched bandwidth [VALUE]``: the rate of a running crawl: show it, change it, pause, and go on."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import examples
from crawlsched.cli.stores import not_one_shard, open_stores
from crawlsched.cli.target import common_options, find_target, owner_now, send
from crawlsched.exceptions import CrawlschedError
from crawlsched.settings import format_bandwidth, parse_bandwidth

if TYPE_CHECKING:
    from crawlsched.store.members import SharedCollection

__all__ = ["add_parser", "report", "say"]

# So many times the present bandwidth may be a slip of the hand.
_MUCH_MORE = 10.0
_PAUSING = ("pause", "resume")


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "bandwidth",
        help="show or change the rate of a running crawl; pause it, and let it go on",
        parents=[common_options()],
        epilog=examples("crawlsched bandwidth 20000/d", "crawlsched bandwidth pause", "crawlsched bandwidth resume"),
    )
    parser.add_argument(
        "value",
        metavar="VALUE",
        nargs="?",
        type=_bandwidth,
        help="such as 5/s, 300/h or 20000/d; or pause (nothing goes out, also after a restart), or resume",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before ten times the present bandwidth or more")
    parser.set_defaults(report=report, say=say, is_long=True)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Ask the running crawl, and tell it the new bandwidth if there is one."""
    if arguments.value in _PAUSING:
        return _pause(arguments)
    stores = open_stores(find_target(arguments), read_only=arguments.value is None)
    try:
        if stores.shared is not None:
            return _of_all(stores.shared, arguments)
        store = not_one_shard(stores.all[0], "bandwidth")
        owner = owner_now(store)
        if owner is None:
            raise CrawlschedError(
                f"No crawl of the collection {store.name!r} is running; "
                "the next one goes at CRAWLSCHED_BANDWIDTH of its settings."
            )
        if arguments.value is None:
            return {"collection": store.name, "bandwidth": owner.status.get("bandwidth"), "before": None}
        _ask(arguments, owner.status.get("bandwidth"))
        answer = send(store, "bandwidth", {"bandwidth": arguments.value})
        return {"collection": store.name, "bandwidth": answer["bandwidth"], "before": answer["before"]}
    finally:
        stores.close()


def _pause(arguments: argparse.Namespace) -> dict[str, Any]:
    """Tell the running crawl, or leave word for the next one."""
    stores, name = open_stores(find_target(arguments), read_only=False), arguments.value
    try:
        if stores.shared is not None:
            since = stores.shared.pause(paused=name == "pause")
            return {
                "collection": stores.name,
                "command": name,
                "running": stores.shared.look().has_members(),
                "paused_since": since,
            }
        (answer,) = stores.ask([(not_one_shard(stores.all[0], "bandwidth"), {})], name)
        since = None if answer is None else answer["paused_since"]
        return {"collection": stores.name, "command": name, "running": answer is not None, "paused_since": since}
    finally:
        stores.close()


def _of_all(shared: "SharedCollection", arguments: argparse.Namespace) -> dict[str, Any]:
    """Show or set the rate of all processes together, whether one runs or not."""
    rate, before = shared.look().rate, None
    if arguments.value is not None:
        _ask(arguments, rate)
        rate, before = arguments.value, shared.set_rate(arguments.value)
    return {"collection": shared.name, "bandwidth": rate, "before": before, "shared": True}


def say(report: dict[str, Any]) -> str:
    """Say the bandwidth, and what it was before."""
    if "command" in report:
        goes_on = "sends nothing until `crawlsched bandwidth resume`, also after a restart"
        what = goes_on if report["command"] == "pause" else "goes on"
        name = repr(report["collection"])
        return f"The crawl of {name} {what}." if report["running"] else f"No crawl of {name} runs; the next one {what}."
    if report["bandwidth"] is None:
        return f"The crawl of {report['collection']!r} has just started and has not said its bandwidth yet."
    text = f"The crawl of {report['collection']!r} goes at {format_bandwidth(report['bandwidth'])}"
    if report["before"] is None:
        return f"{text}."
    text += f" now; it was {format_bandwidth(report['before'])}."
    if report.get("shared"):
        return f"{text} All processes follow within seconds, and it stays so across restarts."
    return f"{text} A restart goes back to its settings."


def _ask(arguments: argparse.Namespace, before: object) -> None:
    """Ask before a bandwidth that may be a slip of the hand."""
    if arguments.yes or not isinstance(before, int | float) or arguments.value < _MUCH_MORE * before:
        return
    change = f"from {format_bandwidth(float(before))} to {format_bandwidth(arguments.value)}"
    if not sys.stdin.isatty():
        raise CrawlschedError(
            f"Going {change} is {arguments.value / before:.3g} times as much, and nobody is here to be asked; "
            "add --yes if it is meant."
        )
    print(f"Go {change}, {arguments.value / before:.3g} times as much? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CrawlschedError("The bandwidth stays as it is.")


def _bandwidth(text: str) -> float | str:
    if text in _PAUSING:
        return text
    try:
        bandwidth = parse_bandwidth(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if "/" not in text:
        # In a file somebody looks twice; here a number that was meant a day would go out every second.
        raise argparse.ArgumentTypeError(f"bandwidth needs a unit here, such as {text}/s or {text}/d, got {text!r}.")
    return bandwidth
