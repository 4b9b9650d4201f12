"""A site of many hosts that change and link to each other: ``python -m tests.many_hosts PORT LOG [PAGES HOST...]``.

It writes down what it is asked, a line each: POSIX time, host, page, the User-Agent's name. Every page changes some
seconds after it was changed last; the first of each host links to the others of its host, and to the first of three
further hosts. With `PAGES` it has so many of each of the hosts that are named, which link to nothing.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import TextIO

from aiohttp import web

from tests import children
from tests.site import serve

N_HOSTS, PAGES_PER_HOST = 24, 6
HOSTS = tuple(f"127.0.1.{number}" for number in range(1, N_HOSTS + 1))


class Log:
    """The site in a process of its own, and what it was asked by its own log; `given` are PAGES and HOSTs."""

    def __init__(self, folder: Path, *given: object) -> None:
        self._file = folder / "site.log"
        self.port = children.serve("tests.many_hosts", self._file, *given)

    def asked(self) -> list[tuple[float, str, int, str]]:
        """Return each request: when, host, page and User-Agent."""
        lines = (line.split() for line in self._file.read_text().splitlines())
        return [(float(at), host, int(page), name) for at, host, page, name in lines]


def answering(
    log: TextIO, port: int, hosts: Sequence[str], n_pages: int
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Return what answers."""
    epoch = time.time()

    async def answer(request: web.Request) -> web.Response:
        host, name = (request.host or "").partition(":")[0], request.path.rpartition("/")[2]
        if host not in hosts or not name.isdigit() or (page := int(name)) >= n_pages:
            return web.Response(status=404, text="There is no such page.")
        print(time.time(), host, page, request.headers.get("User-Agent", "?"), file=log, flush=True)
        version = int((time.time() - epoch) / Random(f"{host} {page}").choice((3.0, 10.0, 60.0)))
        links = []
        if page == 0 and hosts is HOSTS:
            place = HOSTS.index(host)
            links = [f"http://{host}:{port}/{other}" for other in range(1, PAGES_PER_HOST)]
            links += [f"http://{HOSTS[(place + step) % N_HOSTS]}:{port}/0" for step in (1, 3, 9)]
        anchors = "".join(f"<a href={link}>next</a>" for link in links)
        text = f"<html><body><h1>Page {page} of {host}</h1><p>Version {version}.</p>{anchors}</body></html>"
        return web.Response(text=text, content_type="text/html")

    return answer


if __name__ == "__main__":
    with open(sys.argv[2], "w") as file:
        number, given = int(sys.argv[1]), (sys.argv[4:], int(sys.argv[3])) if sys.argv[3:] else (HOSTS, PAGES_PER_HOST)
        asyncio.run(serve(answering(file, number, *given), given[0], number))
