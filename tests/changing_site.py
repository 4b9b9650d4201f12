"""A site that changes and is full of noise, as a process: ``python -m tests.changing_site PORT LOG``.

It writes down what it serves, a line each: POSIX time, host, page, version (-1: the log-in wall).

Three hosts on loopback. All pages have clocks, counters, tokens, rotating headlines, advertisements that come and go,
and a trial with four headings. ``127.0.0.21`` is a newspaper. ``127.0.0.22`` puts a log-in wall before every page for
some seconds, twice. ``127.0.0.23`` sends an ETag that never changes, and believes in it.
"""

import asyncio
import sys
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from functools import cache
from random import Random
from typing import TextIO

from aiohttp import web

from tests.site import serve

HOSTS = ("127.0.0.21", "127.0.0.22", "127.0.0.23")
WALLED, LYING = HOSTS[1:]
PAGES_PER_HOST = 12
EDIT_INTERVAL = 7.0
WALLS = ((14.0, 17.0), (26.0, 29.0))
LONGEST = 120.0
WORDS = [f"{first}{second}" for first in ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu")
         for second in ("ran", "sel", "tim", "vor", "wux", "yan", "zeb", "qua")]  # fmt: skip
# With two, a probe would see none of it half of the time.
TRIAL = ("Subscribe now", "Read all of it", "Become a member", "Support us")
WALL = "<h1>Please log in</h1><p>To read on you need an account, which costs nothing but your address.</p>"


@cache
def edits(host: str, page: int) -> tuple[float, ...]:
    """Return when a page is edited, in seconds after the epoch: one word each time."""
    rng, at, times = Random(f"{host} {page}"), 6.0, []
    while (at := at + rng.expovariate(1.0 / EDIT_INTERVAL)) < LONGEST:
        times.append(at)
    return tuple(times)


def version(host: str, page: int, at: float) -> int:
    """Return how often a page has been edited until a time after the epoch."""
    return bisect_right(edits(host, page), at)


@cache
def article(host: str, page: int, n_edits: int) -> str:
    """Return the text of a version: paragraphs of which each edit changes one word."""
    rng = Random(f"{host} {page} text")
    # Some pages are long enough to be read in a thread.
    paragraphs = [rng.choices(WORDS, k=60) for _ in range(60 if page % 4 == 0 else 8)]
    for number in range(n_edits):
        words = paragraphs[rng.randrange(len(paragraphs))]
        words[rng.randrange(len(words))] = f"edit{number}"
    text = "".join(f"<p>{' '.join(words)}</p>" for words in paragraphs)
    return f"<h1>Article {page} of {host}</h1>{text}"


def html(host: str, page: int, at: float, rng: Random, n_views: int) -> str:
    """Return a page with its noise."""
    headlines = "".join(f"<li><a href=/>{' '.join(rng.choices(WORDS, k=6))}</a></li>" for _ in range(5))
    ad = f'<div class="ad">{" ".join(rng.choices(WORDS, k=8))}</div>' if rng.random() < 0.5 else ""
    return (
        f"<html><head><title>Article {page}</title><!-- {rng.random()} --><script>var t = {at}</script></head><body>"
        f'<div class="clock">{time.strftime("%H:%M:%S")} and {rng.randrange(1000)} ms</div>{ad}'
        f"<article>{article(host, page, version(host, page, at))}</article>"
        f'<h2 class="trial">{rng.choice(TRIAL)}</h2><ul class="more">{headlines}</ul>'
        f'<p class="views">{n_views:,} views</p><input type="hidden" value="{rng.random()}"></body></html>'
    )


def answering(epoch: float, log: TextIO) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Return what answers."""
    rng, views = Random(epoch), iter(range(1_000, 10**9, 7))

    async def answer(request: web.Request) -> web.Response:
        host, at = (request.host or "").partition(":")[0], time.time() - epoch
        is_walled = host == WALLED and any(start <= at < end for start, end in WALLS)
        name = request.path.rpartition("/")[2]
        if name.isdigit() and int(name) < PAGES_PER_HOST:
            print(time.time(), host, name, -1 if is_walled else version(host, int(name), at), file=log, flush=True)
        elif not is_walled:
            return web.Response(status=404, text="There is no such page.")
        if is_walled:
            return web.Response(text=WALL, content_type="text/html")
        headers = {}
        if host == LYING:
            headers["ETag"] = '"always the same"'
            if request.headers.get("If-None-Match") == headers["ETag"]:
                return web.Response(status=304, headers=headers)
        text = html(host, int(name), at, rng, next(views))
        return web.Response(text=text, headers=headers, content_type="text/html")

    return answer


if __name__ == "__main__":
    with open(sys.argv[2], "w") as file:
        asyncio.run(serve(answering(time.time(), file), HOSTS, int(sys.argv[1])))
