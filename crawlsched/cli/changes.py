"""``crawlsched changes``: what changed, vanished, failed or came back since a time or a cursor, and what comes."""

import argparse
import json
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import examples
from crawlsched.cli.target import common_options, find_target, open_store
from crawlsched.cli.wording import say_moment, say_share
from crawlsched.exceptions import CrawlschedError
from crawlsched.showing import shown

if TYPE_CHECKING:
    from crawlsched.feed import Cursor, Feed

__all__ = ["add_parser", "report", "say"]

_MOST = 100_000
_LOOK_EVERY = 1.0


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "changes",
        help="what changed since a time, or since you looked last",
        parents=[common_options()],
        epilog=examples("crawlsched changes --since 2h --diff", "crawlsched changes --since 0:1234 --follow --json"),
    )
    parser.add_argument(
        "--since",
        metavar="WHEN",
        default="1h",
        help="2h, 2026-11-25T07:00Z, or the cursor that was printed last (default: %(default)s)",
    )
    parser.add_argument(
        "--follow", action="store_true", help="go on with what comes, until Ctrl-C; JSON is a line each"
    )
    parser.add_argument("--diff", action="store_true", help="with the lines that went and came, where texts are kept")
    parser.add_argument(
        "--limit", metavar="N", type=_number, default=1000, help="how many at most, oldest first (default: %(default)s)"
    )
    parser.set_defaults(report=report, say=say, is_long=True)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read the feed; followed, print each change as it comes."""
    from crawlsched.feed import Cursor, Feed
    from crawlsched.feed.cursor import read_since

    store = open_store(find_target(arguments))
    try:
        if arguments.follow and arguments.json not in (None, "-"):
            raise CrawlschedError(
                "--follow prints its JSON lines, and takes no FILE; write >> FILE behind the command."
            )
        feed, now = Feed(store), time.time()
        since = read_since(arguments.since, now)
        cursor = since if isinstance(since, Cursor) else feed.at(since)
        if arguments.follow:
            _follow(feed, cursor, arguments)
        found = feed.after(cursor, arguments.limit, diff=arguments.diff)
        reached = found[-1].cursor if found else str(cursor)
        return {
            "collection": store.name,
            "time": now,
            "cursor": reached,
            "more": len(found) == arguments.limit and bool(feed.after(Cursor.read(reached), 1)),
            "changes": [change.to_dict() for change in found],
        }
    finally:
        store.close()


def _follow(feed: "Feed", cursor: "Cursor", arguments: argparse.Namespace) -> None:
    """Print what there is and what comes; each line has the cursor with which to go on after it."""
    from crawlsched.feed import Cursor

    while True:
        some = feed.after(cursor, 1000, diff=arguments.diff)
        for change in some:
            text = (
                json.dumps(change.to_dict())
                if arguments.json is not None
                else "\n".join(_say_one(change.to_dict(), None))
            )
            print(shown(text))
        sys.stdout.flush()
        if some:
            cursor = Cursor.read(some[-1].cursor)
        else:
            time.sleep(_LOOK_EVERY)


def say(report: dict[str, Any]) -> str:
    """List the changes, and the cursor with which to go on."""
    if not report["changes"]:
        return f"Nothing has changed; go on with --since {report['cursor']}"
    lines = list(_say_all(report["changes"], report["time"]))
    more = "there is more; " if report["more"] else ""
    return "\n".join([*lines, "", f"{more}go on with --since {report['cursor']}"])


def _say_all(changes: Iterable[dict[str, Any]], now: float) -> Iterable[str]:
    for change in changes:
        yield from _say_one(change, now)


def _say_one(change: dict[str, Any], now: float | None) -> list[str]:
    when = change["time_utc"][:19].replace("T", " ") + " UTC" if now is None else say_moment(change["time"], now)
    other = "" if change["similarity"] is None else f"  ({say_share(1.0 - change['similarity'])} of its text is other)"
    if change["kind"] in ("gone", "failing") and change["status"] is not None:
        other = f"  ({change['status']})"
    if change["target"] is not None:
        other = f"  -> {change['target']}"
    if change["since"] is not None and change["since"] < change["found_at"]:
        other += f"  since {say_moment(change['since'], change['time'] if now is None else now)}"
    cursor = f"  {change['cursor']}" if now is None else ""
    lines = [f"{when}  {change['kind']:9}  {change['url']}{other}{cursor}"]
    return lines + [f"    {line}" for line in change["diff"] or ()]


def _number(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= number <= _MOST:
        raise argparse.ArgumentTypeError(f"N must be a whole number from 1 to {_MOST}, got {text!r}.")
    return number
