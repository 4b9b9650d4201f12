"""``crawlsched importance FILE``: say what pages are worth, from a CSV, while the crawl runs."""

import argparse
import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import examples
from crawlsched.cli.stores import Stores, open_stores
from crawlsched.cli.target import common_options, find_target
from crawlsched.cli.wording import say_count
from crawlsched.exceptions import CrawlschedError

if TYPE_CHECKING:
    from crawlsched.store import Store

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
    stores = open_stores(find_target(arguments), read_only=False)
    try:
        told: dict[str, Any] = {"pages": 0, "changed": 0, "unknown": []}
        running = False
        for wanted in _portions(stores, rows):
            for answer in stores.ask(wanted, "importance"):
                if answer is not None:
                    running = True
                    told = {name: told[name] + answer[name] for name in told}
        return {"collection": stores.name, "running": running, "urls": len(rows), **told}
    finally:
        stores.close()


def _portions(stores: Stores, rows: dict[str, float]) -> Iterator[list[tuple["Store", dict[str, Any]]]]:
    """Give what is asked at a time: some URLs of each store."""
    from crawlsched.store import host_of

    by_store: dict[Store, list[str]] = {}
    for url in rows:
        by_store.setdefault(stores.of_host(host_of(url)), []).append(url)
    for start in range(0, max(map(len, by_store.values()), default=0), _URLS_AT_ONCE):
        portions = ((store, urls[start : start + _URLS_AT_ONCE]) for store, urls in by_store.items())
        yield [(store, {"importance": {url: rows[url] for url in some}}) for store, some in portions if some]


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
