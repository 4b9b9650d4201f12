"""``crawlsched importance FILE``: say what pages are worth, from a CSV, while the crawl runs."""

import argparse
import csv
import gzip
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crawlsched.cli.parsing import examples
from crawlsched.cli.target import common_options, find_target, open_store, owner_now, send
from crawlsched.cli.wording import say_count
from crawlsched.exceptions import CrawlschedError

__all__ = ["add_parser", "report", "say"]

# URLs in one word to the crawl, which takes them in a few milliseconds.
_URLS_AT_ONCE = 200
_UNKNOWN_NAMED = 10


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "importance",
        help="say what pages are worth",
        parents=[common_options()],
        epilog=examples("crawlsched importance weights.csv"),
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        type=Path,
        help="CSV, plain or .gz, with the columns url and importance (0 or more, 1 being usual)",
    )
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Tell the running crawl, or leave word for the next one; a file with a mistake changes nothing.

    Raises
    ------
    CrawlschedError
        If the file cannot be read, or a row of it is not right.
    """
    rows = dict(_rows(arguments.file))
    store = open_store(find_target(arguments), read_only=False)
    try:
        running = owner_now(store) is not None
        told: dict[str, Any] = {"pages": 0, "changed": 0, "unknown": []}
        urls = list(rows)
        for start in range(0, len(urls), _URLS_AT_ONCE):
            asked = {"importance": {url: rows[url] for url in urls[start : start + _URLS_AT_ONCE]}}
            if not running:
                store.send("importance", asked, time.time())
                continue
            answer = send(store, "importance", asked).result
            told = {name: told[name] + answer[name] for name in told}
        return {"collection": store.name, "running": running, "urls": len(rows), **told}
    finally:
        store.close()


def say(report: dict[str, Any]) -> str:
    """Say what was taken over."""
    if not report["running"]:
        urls = say_count(report["urls"], "URL")
        return f"The importance of {urls} waits for the next crawl; none is running now."
    pages, unknown = say_count(report["pages"], "page"), report["unknown"]
    text = f"{pages} weighed, {report['changed']} of them otherwise than before."
    text += "".join(f"\nNot a page of {report['collection']!r}: {url}" for url in unknown[:_UNKNOWN_NAMED])
    more = len(unknown) - _UNKNOWN_NAMED
    return text + (f"\nand {more} more" if more > 0 else "")


def _rows(path: Path) -> Iterator[tuple[str, float]]:
    """Give URL and importance of each row of a file."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not {"url", "importance"} <= set(rows.fieldnames or ()):
                raise CrawlschedError(
                    f"{path} must have the columns url and importance in its first line, got {rows.fieldnames}."
                )
            for row in rows:
                yield row["url"], _importance(row["importance"], path, rows.line_num)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise CrawlschedError(f"{path} cannot be read: {error}.") from error


def _importance(text: str | None, path: Path, line: int) -> float:
    try:
        importance = float(text or "")
    except ValueError:
        importance = -1.0
    if not 0.0 <= importance < float("inf"):
        raise CrawlschedError(
            f"Line {line} of {path} must have an importance of 0 or more, got {text!r}; nothing was changed."
        )
    return importance
