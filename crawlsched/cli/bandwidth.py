"""``crawlsched bandwidth [VALUE]``: show or change the rate of a running crawl, pause it, and resume it."""

import argparse
from typing import Any

from crawlsched.cli.parsing import confirm, option
from crawlsched.cli.stores import Stores, open_stores, owner_now
from crawlsched.exceptions import CrawlschedError
from crawlsched.settings import format_bandwidth
from crawlsched.settings.values import read_bandwidth

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]

# The command asks before it raises the bandwidth by this factor or more, since that may be a typing error.
_MUCH_MORE = 10.0
_PAUSING = ("pause", "resume")


HELP = "show or change the rate of a running crawl; pause it, and resume it"
EXAMPLES = ("crawlsched bandwidth 20000/d", "crawlsched bandwidth pause", "crawlsched bandwidth resume")


def _read_value(text: str) -> float | str:
    if text in _PAUSING:
        return text
    bandwidth = read_bandwidth(text)
    if "/" not in text:
        # A number without a unit is refused. It would mean requests per second, but the user may mean requests per day.
        raise ValueError(f"a bandwidth, which needs a unit here, such as {text}/s or {text}/d")
    return bandwidth


OPTIONS = (
    option(
        "VALUE",
        "such as 5/s, 300/h or 20000/d; or pause (nothing goes out, also after a restart), or resume",
        _read_value,
        nargs="?",
    ),
    option("--yes", "do not ask before raising the bandwidth tenfold or more"),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Show the bandwidth, or send a new bandwidth, a pause or its end to the running crawl."""
    with open_stores(arguments, read_only=arguments.value is None) as stores:
        named = {"collection": stores.name}
        if arguments.value in _PAUSING:
            return {**named, "command": arguments.value, **_pause(stores, arguments.value)}
        before = _before(stores)
        if arguments.value is None:
            found = {"bandwidth": before, "before": None}
        else:
            _ask(arguments, before)
            found = {"before": before, **_set(stores, arguments.value)}
        return {**named, **found, **({"shared": True} if stores.shared is not None else {})}


def _before(stores: Stores) -> Any:
    if stores.shared is not None:
        return stores.shared.look().rate
    if (owner := owner_now(stores.whole("bandwidth"))) is None:
        raise CrawlschedError(
            f"No crawl of the collection {stores.name!r} is running; "
            "the next one goes at CRAWLSCHED_BANDWIDTH of its settings."
        )
    return owner.status.get("bandwidth")


def _set(stores: Stores, bandwidth: float) -> dict[str, Any]:
    if stores.shared is not None:
        stores.shared.set_rate(bandwidth)
        return {"bandwidth": bandwidth}
    (answer,) = stores.ask([(stores.all[0], {"bandwidth": bandwidth})], "bandwidth")
    return answer or {"bandwidth": bandwidth}


def _pause(stores: Stores, command: str) -> dict[str, Any]:
    """Send the command to the running crawl or, if no crawl runs, to the next crawl."""
    if stores.shared is not None:
        since = stores.shared.pause(paused=command == "pause")
        seen = stores.shared.look()
        return {"running": any(map(seen.is_alive, seen.members)), "paused_since": since}
    (answer,) = stores.ask([(stores.whole("bandwidth"), {})], command)
    return {"running": answer is not None, "paused_since": None if answer is None else answer["paused_since"]}


def _ask(arguments: argparse.Namespace, before: object) -> None:
    if not isinstance(before, int | float) or arguments.value < _MUCH_MORE * before:
        return
    change = f"from {format_bandwidth(float(before))} to {format_bandwidth(arguments.value)}"
    confirm(
        f"Go {change}, {arguments.value / before:.3g} times as much?",
        is_meant=arguments.yes,
        refused="The bandwidth stays as it is.",
    )


def say(report: dict[str, Any]) -> str:
    name = repr(report["collection"])
    if "command" in report:
        goes_on = "sends nothing until `crawlsched bandwidth resume`, also after a restart"
        what = goes_on if report["command"] == "pause" else "goes on"
        return f"The crawl of {name} {what}." if report["running"] else f"No crawl of {name} runs; the next one {what}."
    if report["bandwidth"] is None:
        return f"The crawl of {name} has just started, and its bandwidth is not known yet."
    text = f"The crawl of {name} goes at {format_bandwidth(report['bandwidth'])}"
    if report["before"] is None:
        return f"{text}."
    text += f" now; it was {format_bandwidth(report['before'])}."
    if report.get("shared"):
        return f"{text} All processes follow within seconds, and keep it after restarts."
    return f"{text} A restart goes back to its settings."
