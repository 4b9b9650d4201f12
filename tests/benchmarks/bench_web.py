"""The page over a large store: how long each view takes, and whether a crawl beside it keeps its slots.

A crawl at 50/s alone, and the same while somebody asks for one view after the other.
"""

from __future__ import annotations

import argparse
import http.client
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

from tests.benchmarks.bench_crawl import _crawl, _ours, _rate_line, _server, fill_apart

RATE = 50.0
N_VISITS = 1_000_000
# With what a view says while it is not there yet, and seconds after which nobody waits any more.
_NOT_YET, _LONGEST = "This is being computed", 120.0


def add_history(database: Path, n_pages: int, n_visits: int = N_VISITS) -> None:
    """Add visits, announced and not, and a tenth as many changes and hosts; of some hosts something was held back."""
    given = {"pages": n_pages, "now": time.time(), "visits": n_visits, "most": n_visits // 10}
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("CREATE TEMP TABLE numbers (n INTEGER PRIMARY KEY)")
        counted = "WITH RECURSIVE c (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < :last) SELECT n FROM c"
        connection.execute(f"INSERT INTO numbers {counted}", {"last": n_visits - 1})
        connection.execute(
            "INSERT INTO observations (shard, collection, id, page, time, elapsed, n_signals, source, changed, outcome,"
            " status) SELECT 0, 1, n, (n * 7919) % :pages, :now - (:visits - n), 86400, n % 3 = 0, 0,"
            " n % 3 = 0 OR n % 11 = 0, CASE WHEN n % 3 = 0 OR n % 11 = 0 THEN 'changed' ELSE 'unchanged' END, 200"
            " FROM numbers",
            given,
        )
        connection.execute(
            "INSERT INTO changes (shard, collection, id, page, time, kind, observation)"
            " SELECT 0, 1, n + 1, (n * 3 * 7919) % :pages, :now - (:visits - 3 * n), 0, 3 * n FROM numbers"
            " WHERE n < :most",
            given,
        )
        held = '{"withheld": {"wrong_page": {"n": 7, "last_at": 1.0, "urls": [["http://a.example/", 1.0]]}}}'
        connection.execute(
            "INSERT INTO hosts (shard, collection, host, rest_until, counts)"
            " SELECT 0, 1, 'host' || n || '.example', 0, CASE WHEN n % 10 = 0 THEN :held ELSE '{}' END FROM numbers"
            " WHERE n < :most",
            {**given, "held": held},
        )
    connection.close()


def views(database: Path) -> dict[str, str]:
    """Give the path of each view by its name."""
    connection = sqlite3.connect(database)
    (last,) = connection.execute("SELECT max(page) FROM pages").fetchone()
    # Of those that were written one by one, for only they have the right digest.
    (url,) = connection.execute("SELECT url FROM pages WHERE page = ?", (last // 20,)).fetchone()
    (late,) = connection.execute("SELECT url FROM pages WHERE page = ?", (last - 7,)).fetchone()
    connection.close()
    host = url.partition("://")[2].partition("/")[0]
    return {
        "overview": "",
        "pages, most changing": "pages",
        "pages, longest not looked at": "pages?order=oldest",
        "pages, failing": "pages?order=failing",
        "pages, not delivered": "pages?order=undelivered",
        "pages, withheld": "pages?order=withheld",
        "pages, of a host": f"pages?q={quote(f'http://{host}/', safe='')}",
        "pages, by a prefix": f"pages?q={quote(late[:-3], safe='')}",
        "pages, in vain": "pages?q=nowhere.example",
        "changes": "changes",
        "hosts": "hosts",
        "sources": "sources",
        "what if": "whatif",
        "a page": f"page?url={quote(url, safe='')}",
        "changes.jsonl": "changes.jsonl?since=1d",
        "changes.atom": "changes.atom",
        "metrics": "metrics",
        "health": "healthz",
    }


def ask(port: int, path: str) -> tuple[float, float, int]:
    """Return after how many seconds the first answer came, and the one with what was asked for, and its status."""
    began, first = time.perf_counter(), 0.0
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", f"/{path}", headers={"Accept": "text/html"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        took = time.perf_counter() - began
        first = first or took
        if _NOT_YET not in text or took > _LONGEST:
            return first, took, answer.status
        time.sleep(0.05)


def look(database: Path) -> None:
    """Ask for each view, twice: what was shown a moment ago, too."""
    command = [sys.executable, "-m", "crawlsched", "web", "--database", f"sqlite:///{database}", "--address", "0"]
    served = subprocess.Popen(
        [*command, "-s", 'CRAWLSCHED_WEB={"address": 0, "token": false}'],
        stdout=subprocess.PIPE,
        text=True,
        cwd=database.parent,
    )
    try:
        assert served.stdout is not None
        port = int(served.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
        for name, path in views(database).items():
            first, took, status = ask(port, path)
            print(f"    {name:<30} first answer {first:6.3f} s, with all {took:7.3f} s   {status}", flush=True)
    finally:
        served.terminate()
        served.wait()


def main() -> None:
    """Print the views' times, and the slots of a crawl with and without them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--folder", type=Path, help="of a store that was made before, or is to be kept")
    parser.add_argument("--only-views", action="store_true", help="of the store as it is, without a crawl")
    options = parser.parse_args()
    with _server((options.folder and 8999) or 0) as port, tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        if not (folder / "bench.db").exists():
            fill_apart(folder, options.pages, port)
            add_history(folder / "bench.db", options.pages)
        if options.only_views:
            look(folder / "bench.db")
            return
        for is_looked_at in (False, True):
            arguments = {"n": 0, "port": port, "refetch": "no"}
            looking = threading.Timer(options.seconds / 2, look, (folder / "bench.db",))
            if is_looked_at:
                looking.start()
            record = _crawl(folder, arguments, _ours(folder, f"{RATE:g}/s", options.seconds))
            looking.cancel()
            print(_rate_line("while it is looked at" if is_looked_at else "alone", record, RATE, options.seconds))


if __name__ == "__main__":
    main()
