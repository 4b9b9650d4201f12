"""``crawlsched db refit``: learn again how often pages change, from all stored visits."""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import one_of, option, shown_progress, whole_number
from crawlsched.cli.stores import leased, open_stores, signs_of_life
from crawlsched.exceptions import CrawlschedError

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

    from crawlsched.cli.stores import Stores

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]


HELP = "learn again how often pages change, from all visits that are kept, while no crawl runs"
EXAMPLES = (
    "crawlsched db refit",
    "crawlsched db refit --processes 8",
    "crawlsched db refit --dask tcp://host:8786",
)
OPTIONS = (
    one_of(
        option("--processes N", "processes of this machine; by default one for each CPU", whole_number(1)),
        option("--dask ADDRESS", "the workers of a Dask cluster, by its scheduler's address"),
    ),
)


@contextmanager
def _executor(arguments: argparse.Namespace) -> "Iterator[Executor]":
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
    else:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        n = arguments.processes or len(os.sched_getaffinity(0))
        with ProcessPoolExecutor(n, get_context("spawn")) as pool:
            yield pool


def _alone(stores: "Stores") -> "AbstractContextManager[object]":
    """Prevent crawls from writing meanwhile; raise an error if a process crawls the collection."""
    from crawlsched.store import Lease

    if stores.shared is None:
        return leased(stores.all[0], "crawlsched db refit")
    for store in stores:
        owner = store.owner()
        if owner is None or owner.is_held(store.clock()):
            raise CrawlschedError(
                f"Processes crawl the collection {stores.name!r}; end them all, since each has its estimates in memory."
            )
        # Nobody owns the shard. The lease with the last owner's token is valid until a process claims the shard.
        store.lease = Lease(store.database, store.key, owner.token)
    return nullcontext()


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Learn again, and count pages and visits."""
    from crawlsched.jobs.refit import refit

    with open_stores(arguments, read_only=False) as stores:
        settings = stores.settings_of(stores.all[0])
        n_all = sum(store.reader.next_page() for store in stores)
        n_pages = n_visits = n_left = 0
        progress = shown_progress("Learning")
        with _alone(stores), _executor(arguments) as executor:
            lease = stores.all[0].lease
            assert lease is not None
            beat = signs_of_life(lease)
            for learned in refit(stores.all, settings, executor, time.time()):
                n_pages += learned.n_pages
                n_left += learned.n_left
                n_visits += learned.n_visits
                progress(n_pages + n_left, n_all)
                if stores.shared is None:
                    beat()
    return {"collection": stores.name, "pages": n_pages, "visits": n_visits, "pages_left_as_they_were": n_left}


def say(report: dict[str, Any]) -> str:
    text = f"{report['collection']}: learned {report['pages']:,} pages again, from {report['visits']:,} visits."
    if report["pages_left_as_they_were"]:
        text += (
            f"\n{report['pages_left_as_they_were']:,} others keep their estimates: their first visits are not "
            "kept any more (CRAWLSCHED_OBSERVATION_RETENTION)."
        )
    return text
