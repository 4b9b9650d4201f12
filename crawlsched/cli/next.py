"""``crawlsched next``: the pages that are crawled next, as far as is known now."""

import argparse
import heapq
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import option, whole_number
from crawlsched.cli.stores import open_stores, owner_now
from crawlsched.jobs.stored_planners import planners, wanted
from crawlsched.settings import Settings
from crawlsched.wording import say_past, say_share, say_table

if TYPE_CHECKING:
    from crawlsched.store import Store

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]

HELP = "which pages go next"
EXAMPLES = ("crawlsched next -n 50",)
OPTIONS = (option("-n N", "how many (%(default)s)", whole_number(1, 1000), default=20),)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Ask the running crawl or, if there is none, rank the stored pages."""
    now = time.time()
    with open_stores(arguments, read_only=False) as stores:
        running = [store for store in stores if owner_now(store) is not None]
        answers = [found for found in stores.ask([(store, {"n": arguments.n}) for store in running], "next") if found]
        lists = [answer["pages"] for answer in answers]
        lists += [
            _stored(store, stores.settings_of(store), arguments.n, now) for store in stores if store not in running
        ]
        # The order within each crawl's list is unchanged, since it depends on more than the present worth of pages.
        together = heapq.merge(*lists, key=lambda page: (page.get("sent_at") is None, -page["crawl_value"]))
        found = {"collection": stores.name, "running": bool(running), "pages": list(islice(together, arguments.n))}
        if running:
            n_visits, n_announced = map(sum, zip(*(store.reader.announced_visits() for store in running), strict=True))
            found["threshold"] = max(answer["threshold"] for answer in answers)
            found["announced_share"] = n_announced / n_visits if n_visits else None
        return {**found, "time": max((answer["time"] for answer in answers), default=now)}


def _stored(store: "Store", settings: Settings, n: int, now: float) -> list[dict[str, Any]]:
    """Return the stored pages that are worth most now."""
    import numpy as np

    best: list[tuple[float, int, float]] = []
    for planner, numbers in planners(store, settings, now):
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


def say(report: dict[str, Any]) -> str:
    if not report["pages"]:
        return f"The collection {report['collection']!r} has no page to crawl."
    rows = [["", "crawl value", "last crawl", "page"]]
    for number, page in enumerate(report["pages"], 1):
        worth = f"{page['crawl_value']:.3g}" if page.get("sent_at") is None else "under way"
        rows.append([str(number), worth, say_past(page["crawled_at"], report["time"]), page["url"]])
    note = "" if report["running"] else "\n\nNo crawl is running; a crawl that starts now begins with these pages."
    if share := report.get("announced_share"):
        note += (
            f"\n\n{say_share(share)} of the newest visits followed an announcement of their page. "
            "Newly announced pages are crawled between these."
        )
    return "\n".join(say_table(rows, "rrll")) + note
