"""The views and the feed of one collection over HTTP: how long each may take, and how long it is kept."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from aiohttp import web

from crawlsched.exceptions import CrawlschedError
from crawlsched.feed import Cursor, Feed
from crawlsched.feed.atom import atom
from crawlsched.feed.cursor import read_since
from crawlsched.store import Store
from crawlsched.web.html import Html, tag
from crawlsched.web.layout import document
from crawlsched.web.views import Context, Reports
from crawlsched.web.views.changes import changes
from crawlsched.web.views.hosts import hosts
from crawlsched.web.views.overview import overview
from crawlsched.web.views.page import page
from crawlsched.web.views.pages import pages
from crawlsched.web.views.sources import sources
from crawlsched.web.views.whatif import whatif

__all__ = ["CollectionViews", "Watched", "html_answer", "root_of"]

# A view that takes longer is answered with a sentence; the page asks again until it is ready.
_PATIENCE = 0.8
# For how long a view is shown again before it is made anew: seconds, and for what takes long.
_VIEWS: dict[str, tuple[str, Callable[[Context], Html], float]] = {
    "": ("Overview", overview, 1.0),
    "pages": ("Pages", pages, 1.0),
    "changes": ("Changes", changes, 1.0),
    "hosts": ("Hosts", hosts, 5.0),
    "sources": ("Sources", sources, 300.0),
    "whatif": ("What if", whatif, 300.0),
    "page": ("Page", page, 1.0),
}
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
_MOST_KEPT = 64
_MOST_CHANGES = 10_000
_ATOM_ENTRIES = 100


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A collection, or one of the shards of one."""

    name: str  # ``news``, or ``news/3`` for a shard
    store: Store
    reports: Reports

    @property
    def path(self) -> str:
        """Where its views are if there are others beside it, without a slash at either end."""
        shard, number = self.store.key
        # A name that a path would have to encode stands there as its number.
        collection = self.store.name if _PLAIN.fullmatch(self.store.name) else f"~{number}"
        return f"c/{collection}" if self.name == self.store.name else f"c/{collection}/{shard}"


class _Made(NamedTuple):
    """A view that was made, or is being made, and since when."""

    future: asyncio.Future[Html]
    at: float


class CollectionViews:
    """Answer for one collection."""

    def __init__(self, watched: Watched, threads: ThreadPoolExecutor, *, is_one_of: bool) -> None:
        self._watched, self._threads = watched, threads
        self._is_one_of = is_one_of
        self._made: dict[str, _Made] = {}

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Serve them."""
        below = f"/{self._watched.path}" if self._is_one_of else ""
        for name in _VIEWS:
            router.add_get(f"{below}/{name}", self._view)
        router.add_get(f"{below}/changes.jsonl", self._jsonl)
        router.add_get(f"{below}/changes.atom", self._atom)

    async def _view(self, request: web.Request) -> web.Response:
        name = request.path.rpartition("/")[2]
        title, view, fresh_for = _VIEWS[name]
        key = request.path_qs
        made = self._made.get(key)
        if made is None or (made.future.done() and time.monotonic() - made.at > fresh_for):
            made = self._made[key] = _Made(self._begin(view, dict(request.query)), time.monotonic())
            for old in list(self._made)[:-_MOST_KEPT]:
                del self._made[old]
        done, _ = await asyncio.wait([made.future], timeout=_PATIENCE)
        if not done:
            # Nothing is shown twice as long as it takes: the page asks again by itself.
            waiting = tag("main", tag("section", tag("p", "This is being computed …"), class_="panel waiting"))
            return self._answer(request, title, waiting, view=name, refresh=1)
        try:
            main = made.future.result()
        except CrawlschedError as error:
            self._made.pop(key, None)
            raise web.HTTPNotFound(reason=" ".join(str(error).split())) from None
        except Exception:
            self._made.pop(key, None)
            raise
        return self._answer(request, title, main, view=name, refresh=0 if name in ("page", "whatif", "sources") else 10)

    def _answer(self, request: web.Request, title: str, main: Html, **shown: Any) -> web.Response:
        root = root_of(request)
        name = self._watched.name
        return html_answer(document(title, main, name, root=root, is_one_of=self._is_one_of, **shown))

    def _begin(self, view: Callable[[Context], Html], query: dict[str, str]) -> asyncio.Future[Html]:
        watched = self._watched

        def make() -> Html:
            now = watched.store.clock()
            return view(Context(store=watched.store, reports=watched.reports, query=query, now=now))

        return asyncio.get_running_loop().run_in_executor(self._threads, make)

    async def _aside(self, function: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    async def _jsonl(self, request: web.Request) -> web.StreamResponse:
        store = self._watched.store
        feed = Feed(store)
        since = request.query.get("since")
        diff, limit = request.query.get("diff") in ("1", "true"), request.query.get("limit", "1000")
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit) <= _MOST_CHANGES):
            raise CrawlschedError(f"limit must be a whole number from 1 to {_MOST_CHANGES}, got {limit!r:.40}.")

        def read() -> tuple[bytes, str]:
            asked = feed.start() if since is None else read_since(since, store.clock())
            cursor = asked if isinstance(asked, Cursor) else feed.at(asked)
            found = feed.after(cursor, int(limit), diff=diff)
            lines = "".join(f"{json.dumps(change.to_dict())}\n" for change in found)
            return lines.encode(), found[-1].cursor if found else str(cursor)

        body, cursor = await self._aside(read)
        return web.Response(body=body, content_type="application/x-ndjson", headers={"X-Crawlsched-Cursor": cursor})

    async def _atom(self, request: web.Request) -> web.Response:
        store = self._watched.store
        address = str(request.url.with_query(None))
        make = lambda: atom(Feed(store).newest(_ATOM_ENTRIES, diff=True), store.name, address, store.clock())  # noqa: E731
        return web.Response(body=await self._aside(make), content_type="application/atom+xml", charset="utf-8")


def html_answer(text: str, status: int = 200) -> web.Response:
    """Return a whole page as an answer."""
    return web.Response(text=text, status=status, content_type="text/html")


def root_of(request: web.Request) -> str:
    """Return the relative path from the requested page to the top."""
    return "../" * (request.rel_url.raw_path.count("/") - 1)
