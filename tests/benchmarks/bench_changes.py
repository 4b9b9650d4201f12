"""The change feed beside a crawl: ten thousand changes go out in ten seconds, and the slots keep their times.

A crawl at 50/s without a follower, and the same with a webhook that has ten thousand changes to deliver at its start.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from crawlsched.feed.webhook import Webhook
from crawlsched.store import Batch, ChangeRow, Store
from tests.benchmarks.bench_crawl import _crawl, _ours, _rate_line, _server, fill_apart

N_PAGES, N_CHANGES, RATE = 2_000, 10_000, 50.0


def _follow(port: Any, arrived: Any, last: Any) -> None:
    class Follower(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            # Those that were there at the start; the crawl goes on to find others.
            if arrived.value < N_CHANGES:
                last.value = time.time()
            arrived.value += body.count(b'"url"')
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Follower)
    port.value = server.server_address[1]
    server.serve_forever()


@contextmanager
def _follower() -> Iterator[tuple[str, Any, Any]]:
    port, arrived, last = multiprocessing.Value("i", 0), multiprocessing.Value("i", 0), multiprocessing.Value("d", 0.0)
    process = multiprocessing.Process(target=_follow, args=(port, arrived, last), daemon=True)
    process.start()
    while not port.value:  # type: ignore[attr-defined]
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port.value}/", arrived, last  # type: ignore[attr-defined]
    finally:
        process.terminate()
        process.join()


def _leave_changes(folder: Path, url: str) -> None:
    """Write what the webhook has not delivered yet."""
    store = Store.open(f"sqlite:///{folder / 'bench.db'}", "bench")
    now = time.time()
    rows = [ChangeRow(number, number % N_PAGES, now - 60, False, None) for number in range(1, N_CHANGES + 1)]
    store.save(Batch(since=now, changes=rows))
    store.put_position(Webhook(store, url, None, time.time).name, 0, now)
    store.close()


def main() -> None:
    """Print both crawls."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=20)
    seconds = parser.parse_args().seconds
    for followed in (False, True):
        with _server() as port, _follower() as (url, arrived, last), tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            fill_apart(folder, N_PAGES, port)
            more = {}
            if followed:
                _leave_changes(folder, url)
                more = {"CRAWLSCHED_WEBHOOK": url}
            arguments = {"n": 0, "port": port, "refetch": "no"}
            began = time.time()
            record = _crawl(folder, arguments, _ours(folder, f"{RATE:g}/s", seconds, **more))
            print(_rate_line("with a follower" if followed else "without", record, RATE, seconds))
            if followed:
                took = last.value - began - record["first_dispatch"]
                print(f"    {N_CHANGES} of {arrived.value} changes arrived within {took:.1f} s of the first request")


if __name__ == "__main__":
    main()
