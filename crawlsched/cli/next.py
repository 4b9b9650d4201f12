"""``crawlsched next``: which pages go next, by what is known now."""

import argparse
import heapq
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

from crawlsched.cli.planning import planners, wanted
from crawlsched.cli.stores import open_stores
from crawlsched.cli.target import Target, common_options, find_target, owner_now
from crawlsched.cli.wording import say_past, say_share, say_table

if TYPE_CHECKING:
    from crawlsched.store import Store
from crawlsched.cli.parsing import examples

__all__ = ["add_parser", "report", "say"]

_MOST = 1000


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "next", help="which pages go next", parents=[common_options()], epilog=examples("crawlsched next -n 50")
    )
    parser.add_argument(
        "-n", dest="n", type=_number, default=20, metavar="N", help=f"how many, 1 to {_MOST} (default: %(default)s)"
    )
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Ask the running crawl; without one, look at what is stored."""
    target = find_target(arguments)
    now = time.time()
    stores = open_stores(target, read_only=False)
    try:
        running = [store for store in stores if owner_now(store) is not None]
        answers = stores.ask([(store, {"n": arguments.n}) for store in running], "next")
        lists = [answer["pages"] for answer in answers if answer is not None]
        lists += [_stored(store, target, arguments.n, now) for store in stores if store not in running]
        # Each crawl has its own order, which is not only by what a page is worth now.
        together = heapq.merge(*lists, key=lambda page: (page.get("sent_at") is None, -page["crawl_value"]))
        pages = list(islice(together, arguments.n))
        found = {"collection": stores.name, "running": bool(running), "pages": pages}
        if running:
            found["threshold"] = max(answer["threshold"] for answer in answers if answer is not None)
            n_visits, n_announced = map(sum, zip(*(store.reader.announced_visits() for store in running), strict=True))
            found["announced_share"] = n_announced / n_visits if n_visits else None
        return {**found, "time": max((answer["time"] for answer in answers if answer is not None), default=now)}
    finally:
        stores.close()


def say(report: dict[str, Any]) -> str:
    """List the pages."""
    if not report["pages"]:
        return f"The collection {report['collection']!r} has no page that could go."
    rows = [["", "crawl value", "last crawl", "page"]]
    for number, page in enumerate(report["pages"], 1):
        crawled_at = page["crawled_at"]
        last = "never" if crawled_at is None or crawled_at == float("-inf") else say_past(crawled_at, report["time"])
        worth = f"{page['crawl_value']:.3g}" if page.get("sent_at") is None else "under way"
        rows.append([str(number), worth, last, page["url"]])
    note = "" if report["running"] else "\n\nNo crawl is running; these would go first if one started now."
    if share := report.get("announced_share"):
        note += (
            f"\n\n{say_share(share)} of the newest visits were of pages that had been announced since the one before. "
            "What is announced from now on goes between these."
        )
    return "\n".join(say_table(rows)) + note


def _stored(store: "Store", target: Target, n: int, now: float) -> list[dict[str, Any]]:
    """Return the pages that are worth most now, of all that are stored."""
    import numpy as np

    best: list[tuple[float, int, float]] = []
    for planner, numbers in planners(store, target, now):
        rows = wanted(planner, np.arange(numbers.size))
        rows = rows[planner.pages.not_before[rows] <= now]
        values = planner.crawl_values.value_at(rows, now)
        top = np.argsort(-values, kind="stable")[:n]
        crawled_at = planner.pages.crawled_at[rows[top]]
        found = zip(values[top].tolist(), (-numbers[rows[top]]).tolist(), crawled_at.tolist(), strict=True)
        best = heapq.nlargest(n, [*best, *found])
    facts = store.reader.facts([-page for _, page, _ in best])
    return [
        {"url": fact.url, "crawl_value": value, "crawled_at": crawled_at, "sent_at": None}
        for fact, (value, _, crawled_at) in zip(facts, best, strict=True)
        if fact is not None
    ]


def _number(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= number <= _MOST:
        raise argparse.ArgumentTypeError(f"N must be a whole number from 1 to {_MOST}, got {text!r}.")
    return number
