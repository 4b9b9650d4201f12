"""``crawlsched changes``: the changes since a time or a cursor, and with ``--follow`` new changes."""

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import option, whole_number
from crawlsched.cli.stores import open_stores
from crawlsched.exceptions import CrawlschedError
from crawlsched.showing import shown
from crawlsched.wording import say_moment, say_share

if TYPE_CHECKING:
    from crawlsched.feed import Cursor, Feed

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]


HELP = "what changed since a time, or since you looked last"
EXAMPLES = ("crawlsched changes --since 2h --diff", "crawlsched changes --since 0:1234 --follow --json")
OPTIONS = (
    option("--since WHEN", "2h, 2026-11-25T07:00Z, or the cursor that was printed last (%(default)s)", default="1h"),
    option("--follow", "print new changes until Ctrl-C; with --json, one line for each"),
    option("--diff", "with removed and new lines, where texts are kept"),
    option("--limit N", "how many at most, oldest first (%(default)s)", whole_number(1, 100_000), default=1000),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read the feed; with ``--follow``, print present and new changes until Ctrl-C."""
    from crawlsched.feed import Cursor, Feed
    from crawlsched.feed.feed import read_since

    with open_stores(arguments) as stores:
        if arguments.follow and arguments.json not in (None, "-"):
            raise CrawlschedError("--follow prints its JSON lines, and takes no FILE; add >> FILE to the command.")
        feed, now = Feed(stores.one()), time.time()
        since = read_since(arguments.since, now)
        cursor = since if isinstance(since, Cursor) else feed.at(since)
        if arguments.follow:
            _follow(feed, cursor, arguments)
        found = feed.after(cursor, arguments.limit, diff=arguments.diff)
        reached = found[-1].cursor if found else str(cursor)
        return {
            "collection": stores.name,
            "time": now,
            "cursor": reached,
            "more": len(found) == arguments.limit and bool(feed.after(Cursor.read(reached), 1)),
            "changes": [change.to_dict() for change in found],
        }


def _follow(feed: "Feed", cursor: "Cursor", arguments: argparse.Namespace) -> None:
    """Print the present changes, and then new changes; each line has the cursor after its change."""
    from crawlsched.feed import Cursor

    while True:
        some = feed.after(cursor, 1000, diff=arguments.diff)
        for change in (one.to_dict() for one in some):
            print(shown("\n".join(_say_one(change, None)) if arguments.json is None else json.dumps(change)))
        sys.stdout.flush()
        if some:
            cursor = Cursor.read(some[-1].cursor)
        else:
            time.sleep(1.0)


def say(report: dict[str, Any]) -> str:
    """List the changes, and the cursor with which the next call continues."""
    if not report["changes"]:
        return f"Nothing has changed; go on with --since {report['cursor']}"
    lines = [line for change in report["changes"] for line in _say_one(change, report["time"])]
    more = "there is more; " if report["more"] else ""
    return "\n".join([*lines, "", f"{more}go on with --since {report['cursor']}"])


def _say_one(change: dict[str, Any], now: float | None) -> list[str]:
    when = change["time_utc"][:19].replace("T", " ") + " UTC" if now is None else say_moment(change["time"], now)
    other = "" if change["similarity"] is None else f"  ({say_share(1.0 - change['similarity'])} of its text changed)"
    if change["kind"] in ("gone", "failing") and change["status"] is not None:
        other = f"  ({change['status']})"
    if change["target"] is not None:
        other = f"  -> {change['target']}"
    if change["since"] is not None and change["since"] < change["found_at"]:
        other += f"  since {say_moment(change['since'], change['time'] if now is None else now)}"
    cursor = f"  {change['cursor']}" if now is None else ""
    lines = [f"{when}  {change['kind']:9}  {change['url']}{other}{cursor}"]
    return lines + [f"    {line}" for line in change["diff"] or ()]
