"""Fuzz: inputs that nobody has written, at everything that reads what others send or what a disk gives back.

Each input is made by ``Random(f"{name} {number}")``, so that a failure names the input which brings it about again. The
test command tries `INPUTS` of each kind, and `make fuzz` ten times as many: ``FUZZ_INPUTS=100000``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crawlsched.change_signals import linked_hubs, parse_lastmod, read_sitemap, robots_sitemaps
from crawlsched.cli import main
from crawlsched.crawl.hosts import retry_after
from crawlsched.crawl.private_addresses import is_private
from crawlsched.crawl.shard import Shard
from crawlsched.crawl.shard_pages import ShardPages
from crawlsched.exceptions import SettingError
from crawlsched.receiver.pings import PingRefused, read_indexnow
from crawlsched.settings import SETTINGS, Settings
from crawlsched.showing import shown, without_secrets
from crawlsched.store import Store, commands
from crawlsched.store.rows import json_like
from tests import parts
from tests.simulated import crawl

INPUTS = int(os.environ.get("FUZZ_INPUTS", "10000"))
# What takes milliseconds an input has its own numbers: a hundredth, and a fifth of that.
FEWER, FEWEST = max(1, INPUTS // 100), max(1, INPUTS // 500)

PIECES = [
    *("<urlset>", "<url>", "<loc>", "http://a.example/", "</loc>", "<lastmod>", "2026-01-01", "</url>"),
    *("<sitemapindex>", "<![CDATA[", "]]>", "<!DOCTYPE x [<!ENTITY a 'b'>]>", "&a;", "&#x0;", "<rss>", "<item>"),
    *("<feed>", "\0", "\ufeff"),
    *("Sitemap:", "sitemap :", "User-agent: *", "\r\n", "http://[::1", "//", "javascript:", "%00", "\x1b[2J", "\u202e"),
    *("1e400", "-1", "99999999999999999999", "nan", "Thu, 01 Jan 1970 00:20:00 GMT", "{", "}", "[", "]", '"', ":", ","),
    *("5/s", "/", "300/h", "22:00-06:00", "Europe/Berlin", "else", "password=", "@", "true", "null", "é", "\ud800"),
]


def text(rng: Random) -> str:
    """Make a text of pieces that mean something somewhere, and of any characters."""
    n = rng.choice((0, 1, 2, 5, 20, 60))
    return "".join(rng.choice(PIECES) if rng.random() < 0.7 else chr(rng.randrange(0x110000)) for _ in range(n))


def body(rng: Random) -> bytes:
    """Make bytes: a text in some encoding, with a byte changed now and then."""
    made = bytearray(text(rng).encode(rng.choice(("utf-8", "utf-16", "latin-1")), "replace"))
    for _ in range(rng.choice((0, 0, 1, 5)) if made else 0):
        made[rng.randrange(len(made))] = rng.randrange(256)
    return bytes(made)


def tree(rng: Random, depth: int = 0) -> Any:
    """Make anything that JSON can hold."""
    kind = rng.randrange(8 if depth < 4 else 6)
    if kind < 6:
        return rng.choice((None, True, rng.random(), -rng.getrandbits(70), text(rng), ""))
    if kind == 6:
        return [tree(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {text(rng)[:9]: tree(rng, depth + 1) for _ in range(rng.randrange(4))}


def setting(rng: Random) -> None:
    """Read a setting."""
    row = rng.choice(SETTINGS)
    with contextlib.suppress(SettingError):
        Settings.from_scrapy({row.name: rng.choice((text(rng), tree(rng), rng.random()))})


def ping(rng: Random) -> None:
    """Read a ping."""
    key = "0123456789abcdef"
    sent = (
        json.dumps({"host": text(rng), "key": key, "urlList": tree(rng)}).encode() if rng.random() < 0.5 else body(rng)
    )
    with contextlib.suppress(PingRefused):
        read_indexnow({"url": text(rng), "key": rng.choice((key, ""))}, rng.choice((None, sent)), key)


READERS: dict[str, Callable[[Random], object]] = {
    "sitemap": lambda rng: read_sitemap(body(rng), "http://a.example/sitemap.xml"),
    "robots": lambda rng: robots_sitemaps(body(rng), "http://a.example/robots.txt"),
    "date": lambda rng: parse_lastmod(text(rng)[:60]),
    "link header": lambda rng: linked_hubs([text(rng), f"<{text(rng)}>; rel=hub"], "http://a.example/"),
    "retry-after": lambda rng: retry_after(text(rng), 1e9),
    "setting": setting,
    "ping": ping,
    "shown": lambda rng: without_secrets(shown(text(rng))).encode(),
    "address": lambda rng: is_private(text(rng)),
    "json row": lambda rng: json_like(rng.choice((text(rng), json.dumps(tree(rng)))), {}, "a row"),
}


@pytest.mark.parametrize("name", READERS)
def test_no_input_raises_or_takes_long(name: str) -> None:
    """Whatever comes is read, or refused in the way that is meant."""
    read, slowest = READERS[name], 0.0
    for number in range(INPUTS):
        rng = Random(f"{name} {number}")
        began = time.perf_counter()
        try:
            read(rng)
        except Exception as error:
            raise AssertionError(f"input {name} {number}") from error
        slowest = max(slowest, time.perf_counter() - began)
    assert slowest < 5.0


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with pages, visits, sources, a plan."""
    path = tmp_path_factory.mktemp("fuzz") / "sound.db"
    store = Store.open(f"sqlite:///{path}", "news")
    crawl(store, time.time(), n_pages=30, days=0.5)
    store.close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def damage(path: Path, rng: Random) -> str:
    """Put something else into a cell; return what."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = rng.choice([name for name in tables if "version" not in name and "sqlite" not in name])
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        column = rng.choice([name for name in columns if name not in ("shard", "collection")])
        is_no_text = rng.random() < 0.3  # SQLite holds as text whatever it is told to
        other = text(rng).encode("utf-8", "replace").decode(), rng.randbytes(9), 2**31 - 1, -1, 9e999, 77, None, "{}"
        value = b"\xff" + rng.randbytes(3) if is_no_text else rng.choice(other)
        (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        where = f"rowid = (SELECT rowid FROM {table} LIMIT 1 OFFSET {rng.randrange(max(1, rows))})"
        with contextlib.suppress(sqlite3.Error):
            to = "CAST(? AS TEXT)" if is_no_text else "?"
            connection.execute(f"UPDATE {table} SET {column} = {to} WHERE {where}", (value,))
        connection.commit()
    return f"{table}.{column} = {value!r}"


def test_a_damaged_row_costs_that_row(sound: Path, tmp_path: Path) -> None:
    """What a crawl loads is loaded, and `status` and `sources` end without a traceback."""
    with contextlib.closing(Store.open(f"sqlite:///{sound}", "news", read_only=True)) as store:
        shard = Shard(store)
    for number in range(FEWEST):
        rng = Random(f"row {number}")
        path = tmp_path / "damaged.db"
        for old in tmp_path.glob("damaged.db*"):
            old.unlink()
        path.write_bytes(sound.read_bytes())
        what = [damage(path, rng) for _ in range(rng.randrange(1, 4))]
        began = time.monotonic()
        try:
            store = Store.open(f"sqlite:///{path}", "news")
            try:
                collection = parts.collection(parts.settings(f"sqlite:///{path}", collection="news"))
                pages = ShardPages(collection)
                shard.store = store
                for _ in pages.take_in(pages.read(shard), time.time()):
                    pass
                collection.aside.close()
                commands.pending(store), store.reader.signal_observations(0.0), store.owner()
                store.reader.facts(range(30))
            finally:
                store.close()
            for command in ("status", "sources"):
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    assert main([command, "--database", f"sqlite:///{path}", "--collection", "news"]) in (0, 1)
        except Exception as error:
            raise AssertionError(f"row {number}: {what}") from error
        assert time.monotonic() - began < 30.0, what


def test_no_argument_ends_a_command_with_a_traceback(sound: Path, tmp_path: Path) -> None:
    """A sentence and exit code 1, or a line of usage and 2."""
    commands = ("status", "sources", "why", "bandwidth", "recrawl", "signal", "forget", "db", "whatif")
    for number in range(FEWER):
        rng = Random(f"argument {number}")
        arguments = [rng.choice(commands)]
        for _ in range(rng.randrange(4)):
            arguments.append(rng.choice((text(rng), "--json", "--collection", "--shard", "--yes", "check", "x" * 5000)))
        if rng.random() < 0.7:
            arguments += ["--database", rng.choice((f"sqlite:///{sound}", f"sqlite:///{text(rng)}", text(rng)))]
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            try:
                code = main(arguments)
            except SystemExit as end:
                code = end.code
            except BaseException as error:
                raise AssertionError(f"argument {number}: {arguments}") from error
        assert code in (0, 1, 2), arguments
        assert "Traceback" not in said.getvalue()


def test_a_text_that_is_none_costs_its_row(sound: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """SQLite holds any bytes as text: each text of a page in turn, and that page alone cannot be used, as is said."""
    columns = ("url", "recipe", "etag", "last_modified", "moved_to")
    path = tmp_path / "damaged.db"
    path.write_bytes(sound.read_bytes())
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for page, column in enumerate(columns):
            connection.execute(f"UPDATE pages SET {column} = CAST(x'6aff' AS TEXT) WHERE page = {page}")
        connection.commit()
    store = Store.open(f"sqlite:///{path}", "news")
    try:
        facts = store.reader.facts(range(30))
    finally:
        store.close()
    assert [page for page in range(30) if facts[page] is None] == list(range(len(columns)))
    for page in range(len(columns)):
        assert f"The page number {page} cannot be used: its row in the database is damaged" in caplog.text
