"""``crawlsched db refit``: learn again how often pages change, from all visits that are kept."""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import examples
from crawlsched.cli.progress import shown_progress
from crawlsched.cli.stores import open_stores
from crawlsched.cli.target import common_options, find_target, owner_now
from crawlsched.exceptions import CrawlschedError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from crawlsched.cli.stores import Stores

__all__ = ["add_parser", "report", "say"]


def add_parser(actions: Any) -> None:
    """Add the action."""
    parser = actions.add_parser(
        "refit",
        help="learn again how often pages change, from all visits that are kept, while no crawl runs",
        parents=[common_options()],
        epilog=examples(
            "crawlsched db refit", "crawlsched db refit --processes 8", "crawlsched db refit --dask tcp://host:8786"
        ),
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--processes", metavar="N", type=int, help="so many processes of this machine; by default one for each CPU"
    )
    where.add_argument("--dask", metavar="ADDRESS", help="the workers of a Dask cluster, by its scheduler's address")
    where.add_argument(
        "--executor", metavar="MODULE:NAME", help="what a function of yours returns: a concurrent.futures.Executor"
    )
    parser.set_defaults(report=report, say=say, is_long=True)


@contextmanager
def _executor(arguments: argparse.Namespace) -> "Iterator[Executor]":
    """Give the executor that was asked for."""
    if arguments.dask is not None:
        try:
            from distributed import Client  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            raise CrawlschedError(
                "--dask needs Dask, which is not installed here: pip install 'crawlsched[dask]'; or use --processes."
            ) from None
        try:
            client = Client(arguments.dask, timeout=10)  # type: ignore[no-untyped-call, unused-ignore]
        except (OSError, ValueError) as error:
            raise CrawlschedError(f"No Dask scheduler answers at {arguments.dask!r}: {error}") from error
        with client, client.get_executor() as executor:  # type: ignore[no-untyped-call, unused-ignore]
            yield executor
    elif arguments.executor is not None:
        from importlib import import_module

        module, _, name = arguments.executor.partition(":")
        try:
            make = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise CrawlschedError(
                f"--executor must name a function that can be imported, MODULE:NAME, got "
                f"{arguments.executor!r}: {error}."
            ) from error
        with make() as executor:
            yield executor
    else:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        n = len(os.sched_getaffinity(0)) if arguments.processes is None else arguments.processes
        if n < 1:
            raise CrawlschedError(f"--processes must be 1 or more, got {n}.")
        with ProcessPoolExecutor(n, get_context("spawn")) as pool:
            yield pool


@contextmanager
def _alone(stores: "Stores") -> "Iterator[None]":
    """Keep crawls from writing meanwhile, or stop at the first that does.

    Raises
    ------
    CrawlschedError
        If somebody crawls the collection.
    """
    from crawlsched.store.lease import NobodysShard

    if stores.shared is None:
        lease = stores.all[0].take_lease("crawlsched db refit")
        try:
            yield
        finally:
            lease.release()
        return
    for store in stores:
        if owner_now(store) is not None:
            raise CrawlschedError(
                f"Processes crawl the collection {stores.name!r}; end them all, for each keeps what it knows in memory."
            )
        store.lease = NobodysShard.found(store.database, store.key)
    yield


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Learn again, and count."""
    target = find_target(arguments)
    stores = open_stores(target, read_only=False)
    try:
        from crawlsched.cli.planning import settings_of
        from crawlsched.jobs.refit import refit

        settings = settings_of(stores.all[0], target)
        n_all = sum(store.reader.next_page() for store in stores)
        n_pages = n_visits = n_left = 0
        with _alone(stores), _executor(arguments) as executor, shown_progress("Learning") as progress:
            beat_at = time.monotonic()
            for learned in refit(stores.all, settings, executor, time.time()):
                n_pages += learned.pages.size
                n_left += learned.n_left
                n_visits += learned.n_visits
                progress(n_pages + n_left, n_all)
                if stores.shared is None and time.monotonic() > beat_at + 5.0:
                    beat_at = time.monotonic()
                    lease = stores.all[0].lease
                    assert lease is not None
                    lease.heartbeat(None, dict(lease.notes))
        return {"collection": stores.name, "pages": n_pages, "visits": n_visits, "pages_left_as_they_were": n_left}
    finally:
        stores.close()


def say(report: dict[str, Any]) -> str:
    """Say what was learned, and what was not."""
    said = f"{report['collection']}: {report['pages']:,} pages are known anew, from {report['visits']:,} visits."
    if report["pages_left_as_they_were"]:
        said += (
            f"\n{report['pages_left_as_they_were']:,} others keep what is known of them: their first visits are not "
            "kept any more (CRAWLSCHED_OBSERVATION_RETENTION)."
        )
    return said
