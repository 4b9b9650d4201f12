"""The change feed beside a crawl: a thousand changes a second for ten seconds, and the slots keep their times.

A crawl at 50/s without a follower, and with a webhook; beside both of them another process writes a thousand changes
a second into the database once the crawl has dispatched, as if that many had just been delivered.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.bench_crawl import _crawl, _ours, _rate_line, _server, fill_apart

N_PAGES, RATE = 2_000, 50.0
A_SECOND, SECONDS = 1_000, 10
N_CHANGES = A_SECOND * SECONDS
# So many are written at a time.
_AT_ONCE = 100
# Their numbers: the crawl gives out none of these for the changes that it finds itself.
_FIRST = 1_000_000_000


def _follow(port: Any, late: Any) -> None:
    """Take what the webhook posts, and note how long after it was written each change arrives."""

    class Follower(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            for change in body["changes"]:
                if change["id"] >= _FIRST:
                    late[change["id"] - _FIRST] = time.time() - change["time"]
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Follower)
    port.value = server.server_address[1]
    server.serve_forever()


def _write(database: Path, took: Any) -> None:
    """Write the changes in their pace, from the moment on in which visits of the crawl are there; note the seconds."""
    connection = sqlite3.connect(database, timeout=60.0)
    visits = "SELECT coalesce(max(id), 0) FROM observations"
    (before,) = connection.execute(visits).fetchone()
    while connection.execute(visits).fetchone()[0] == before:
        time.sleep(0.1)
    began = time.time()
    for first in range(0, N_CHANGES, _AT_ONCE):
        time.sleep(max(began + first / A_SECOND - time.time(), 0.0))
        rows = [(_FIRST + n, n % N_PAGES, time.time()) for n in range(first, first + _AT_ONCE)]
        with connection:
            connection.executemany(
                "INSERT INTO changes (shard, collection, id, page, time, kind) VALUES (0, 1, ?, ?, ?, 0)", rows
            )
    took.value = time.time() - began
    connection.close()


@contextmanager
def _running(target: Any, *arguments: Any) -> Iterator[None]:
    process = multiprocessing.Process(target=target, args=arguments, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def main() -> None:
    """Print both crawls."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=20)
    seconds = parser.parse_args().seconds
    for followed in (False, True):
        port_of, took = multiprocessing.Value("i", 0), multiprocessing.Value("d", 0.0)
        late = multiprocessing.Array("d", [np.nan] * N_CHANGES, lock=False)
        with _server() as port, _running(_follow, port_of, late), tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            fill_apart(folder, N_PAGES, port)
            while not port_of.value:  # type: ignore[attr-defined]
                time.sleep(0.01)
            more = {"CRAWLSCHED_WEBHOOK": f"http://127.0.0.1:{port_of.value}/"} if followed else {}  # type: ignore[attr-defined]
            settings = _ours(folder, f"{RATE:g}/s", seconds, **more)
            with _running(_write, folder / "bench.db", took):
                record = _crawl(folder, {"n": 0, "port": port, "refetch": "no"}, settings)
            print(_rate_line("with a follower" if followed else "without", record, RATE, seconds))
            print(f"    {N_CHANGES} changes were written in {took.value:.1f} s beside it")  # type: ignore[attr-defined]
            if followed:
                arrived = np.array(late)[~np.isnan(late)]
                after = f"p50 {np.median(arrived):.2f} s and at most {arrived.max():.2f} s after they were written"
                print(f"    {arrived.size} of them arrived, {after}")


if __name__ == "__main__":
    main()
