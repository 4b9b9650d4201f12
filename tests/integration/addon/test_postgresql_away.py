"""A PostgreSQL server that is away, or hangs, in a real crawl: a relay between the two does as it is told."""

from __future__ import annotations

import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from crawlsched.store import Store
from tests.crawling import VISITING_SPIDER, Project
from tests.site import Site


class Relay:
    """A port of 127.0.0.1 before a server's socket; it passes bytes on, breaks all connections, or holds them."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        (folder,) = parse_qs(parts.query)["host"]
        self._server = f"{folder}/.s.PGSQL.{parts.port or 5432}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://{parts.username}@127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        self._flows = threading.Event()
        self._flows.set()
        self._is_away = False
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener is closed at the end
            while True:
                near, _ = self._listener.accept()
                if self._is_away:
                    near.close()
                    continue
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._server)
                self._open += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def go_away(self) -> None:
        """Break all connections, and take no other."""
        self._is_away = True
        self._break()

    def come_back(self) -> None:
        """Take connections again."""
        self._is_away = False

    def hang(self) -> None:
        """Keep all connections, and pass nothing on."""
        self._flows.clear()

    def close(self) -> None:
        """End."""
        self._listener.close()
        self._flows.set()
        self._break()

    def _break(self) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open.clear()


@pytest.fixture
def relay(postgresql_url: str) -> Iterator[Relay]:
    """Give a relay before an empty database."""
    relay = Relay(postgresql_url)
    yield relay
    relay.close()


def test_a_server_that_is_away_is_waited_for_and_one_that_hangs_keeps_nobody(
    tmp_path: Path, postgresql_url: str, relay: Relay
) -> None:
    """Away: the crawl stops and goes on, and nothing is lost. Hanging: SIGTERM ends it within half a minute."""
    with Site() as site:
        urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
        project = Project(
            tmp_path,
            VISITING_SPIDER.format(urls=urls),
            CRAWLSCHED_DATABASE_URL=relay.url,
            CRAWLSCHED_BANDWIDTH="20/s",
            CRAWLSCHED_FIND_SOURCES="False",
            CLOSESPIDER_TIMEOUT="120",
        )
        process = project.start()
        _until(lambda: len(site.times) > 30)
        relay.go_away()
        time.sleep(7.0)
        relay.come_back()
        came = len(site.times)
        _until(lambda: len(site.times) > came + 60)
        gaps = [later - earlier for earlier, later in pairwise(site.times)]
        assert max(gaps) > 2.0, "nothing stopped although nothing could be written"
        assert "can be written again after" in project.log()
        store = Store.open(postgresql_url, "test", read_only=True)
        _until(lambda: store.reader.next_observation() >= came)
        store.close()

        relay.hang()
        hung = time.monotonic()
        time.sleep(2.0)
        process.send_signal(signal.SIGTERM)
        process.wait(40.0)
        assert time.monotonic() - hung < 35.0
        crawl = project.finish(process)
    # A generator of psycopg's says so by itself, when it is thrown away with a connection that went with its server.
    of_psycopg = re.compile(r"^Exception ignored in: <generator object BasePipeline.*?(?=^\d{4}-|\Z)", re.S | re.M)
    assert "Traceback" not in of_psycopg.sub("", crawl.log)
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]


def _until(is_so: Callable[[], bool], timeout: float = 60.0) -> None:
    until = time.monotonic() + timeout
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.05)
