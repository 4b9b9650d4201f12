"""``crawlsched web``: a page about a collection, with metrics, health and the change feed."""

import argparse
import asyncio
import json
import os
import secrets
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import option
from crawlsched.cli.stores import Stores, open_all
from crawlsched.cli.target import Target, find_targets
from crawlsched.exceptions import CrawlschedError, require_aiohttp

if TYPE_CHECKING:
    from crawlsched.store import Store
    from crawlsched.web.views import Reports

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]

_BANDWIDTHS = [f"{2.0**n:g}x" for n in (-4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4)]


HELP = "a page about your collections in your browser, with metrics and the change feed"
EXAMPLES = ("crawlsched web --database sqlite:///crawlsched.db",)
OPTIONS = (
    option("--address PORT", "a port, or host:port (CRAWLSCHED_WEB, or 8765)"),
    # A crawl passes its secrets through standard input, since every user of a machine can read command lines.
    option("--from-stdin", argparse.SUPPRESS),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Serve until Ctrl-C, or until the end of the crawl that started this process."""
    if arguments.from_stdin:
        given = json.loads(sys.stdin.readline())
        for name in ("database", "collection", "shard"):
            setattr(arguments, name, given[name])
        arguments.set_here = [f"{name}={value}" for name, value in given["settings"].items()]
        arguments.project_settings = {}
    targets = find_targets(arguments)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(targets, arguments))
    return {}


def say(report: dict[str, Any]) -> str:
    """Return nothing, since the address was printed at the start."""
    return ""


async def _serve(targets: list[Target], arguments: argparse.Namespace) -> None:
    from crawlsched.settings.addresses import WebAddress, is_loopback, read_address

    require_aiohttp("The page")
    from crawlsched.web.server import CollectionViews, serve

    try:
        address = targets[0].settings.web or WebAddress("127.0.0.1", 8765)
        host, port = read_address(arguments.address) if arguments.address else address[:2]
    except ValueError as error:
        raise CrawlschedError(f"--address must be {error}, got {arguments.address!r}.") from None
    token = secrets.token_hex(16) if address.token is True else address.token or None
    if token is None and not is_loopback(host):
        raise CrawlschedError("The token of CRAWLSCHED_WEB must not be False where others can reach the page.")
    opened = open_all(targets)
    watched = [
        CollectionViews(
            store.name if stores.shared is None else f"{store.name}/{store.key[0]}",
            store,
            _reports(stores.target, store),
        )
        for stores in opened
        for store in stores
    ]
    title = opened[0].name if len(opened) == 1 else opened[0].database.name
    ended = asyncio.Event()
    if arguments.from_stdin:
        end = partial(asyncio.get_running_loop().call_soon_threadsafe, ended.set)
        threading.Thread(target=_wait_for_end, args=(end,), daemon=True).start()
    serving = serve(watched, title=title, host=host, port=port, token=token)
    try:
        async for served_at in serving:
            print(served_at if arguments.from_stdin else f"The page is at {served_at} until Ctrl-C.", flush=True)
            await ended.wait()
    finally:
        await serving.aclose()  # type: ignore[attr-defined]
        opened[0].database.close()


def _wait_for_end(end: Callable[[], object]) -> None:
    """Call `end` when standard input closes, which happens even if the crawl is killed."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    end()


def _reports(target: Target, store: "Store") -> "Reports":
    alone = Stores(target, [store], None)

    # The code of reports is loaded with the first report, since it loads more slowly than the server.
    def why(url: str, n_visits: int) -> dict[str, Any]:
        from crawlsched.cli.why import report_of

        return report_of(alone, url, n_visits)

    def whatif() -> dict[str, Any]:
        from crawlsched.cli.whatif import report_of

        # With a sample of this size the view appears within a second.
        return report_of(alone, _BANDWIDTHS, freshness=(0.5, 0.8, 0.9, 0.95, 0.99), sample=768)

    def sources() -> dict[str, Any]:
        from crawlsched.cli.sources import newest_report

        return newest_report(store)

    return {"why": why, "sources": sources, "whatif": whatif}
