"""Run the site: ``python -m living_site --truth truth.jsonl``."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from pathlib import Path

from aiohttp import web

from living_site.cast import CAST
from living_site.server import Server, listen
from living_site.site import Site
from living_site.truth import TruthLog

CATCH_UP_INTERVAL = 0.1  # seconds: changes are logged at most this late


def main(arguments: list[str] | None = None) -> None:
    """Serve the site until told to stop; prints its front page's URL as the first line."""
    parser = argparse.ArgumentParser(prog="living_site", description="A living web site on loopback.")
    parser.add_argument("--seed", type=int, default=1, help="sites with one seed change alike (default: 1)")
    parser.add_argument("--epoch", type=float, help="POSIX time at which it begins (default: now)")
    parser.add_argument(
        "--truth", type=Path, default=Path("truth.jsonl"), help="where to write the truth (default: %(default)s)"
    )
    parser.add_argument(
        "--while-stdin-is-open",
        action="store_true",
        help="end when standard input is closed, so that no parent leaves the site behind",
    )
    options = parser.parse_args(arguments)
    epoch = time.time() if options.epoch is None else options.epoch
    try:
        asyncio.run(serve(options.seed, epoch, options.truth, options.while_stdin_is_open))
    except OSError as error:
        sys.exit(f"living_site: {error}")


async def serve(seed: int, epoch: float, truth_path: Path, while_stdin_is_open: bool) -> None:
    """Serve until SIGTERM, SIGINT, or the end of standard input."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if while_stdin_is_open:
        loop.add_reader(sys.stdin.fileno(), lambda: None if sys.stdin.buffer.read1(1024) else stop.set())
    site = Site(seed)
    server: Server

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return await server.answer(request)

    runner, port = await listen(answer, [host.address for host in CAST])
    truth = TruthLog(truth_path, site, epoch, port)
    server = Server(site, epoch, truth, port)
    print(f"http://{CAST[0].address}:{port}/", flush=True)
    try:
        while not stop.is_set():
            truth.catch_up(server.now())
            try:
                await asyncio.wait_for(stop.wait(), CATCH_UP_INTERVAL)
            except TimeoutError:
                continue
    finally:
        await runner.cleanup()
        truth.close()


main()
