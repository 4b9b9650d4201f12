"""The views and the feed of one collection over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from aiohttp import web

from crawlsched.exceptions import CrawlschedError
from crawlsched.feed import Cursor, Feed
from crawlsched.feed.feed import atom, read_since
from crawlsched.store import Store
from crawlsched.web.html import Html, document, tag
from crawlsched.web.views import Context, Reports
from crawlsched.web.views.changes import changes
from crawlsched.web.views.hosts import hosts
from crawlsched.web.views.overview import overview
from crawlsched.web.views.page import page
from crawlsched.web.views.pages import pages
from crawlsched.web.views.sources import sources
from crawlsched.web.views.whatif import whatif
from crawlsched.web.words import SHOWN

__all__ = ["CollectionViews", "aside", "html_answer", "root_of"]

# By path: the title, the function, and after how many seconds the view is made anew.
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


class CollectionViews:
    """Answers requests about one collection, such as ``news``, or about one of its shards, such as ``news/3``."""

    def __init__(self, name: str, store: Store, reports: Reports) -> None:
        self.name, self.store = name, store
        self._reports = reports
        # By address: a view, complete or being made, and the time at which its making began.
        self._made: dict[str, tuple[asyncio.Future[Html], float]] = {}

    @property
    def path(self) -> str:
        """The path of the views if there are several collections, without slashes at its ends."""
        shard, number = self.store.key
        # A name that would have to be encoded in a path is replaced by the collection's number.
        collection = self.store.name if _PLAIN.fullmatch(self.store.name) else f"~{number}"
        return f"c/{collection}" if self.name == self.store.name else f"c/{collection}/{shard}"

    def add_to(self, router: web.UrlDispatcher, threads: ThreadPoolExecutor, *, is_one_of: bool) -> None:
        """Add the views to a server; they are made in `threads`."""
        self._threads, self._is_one_of = threads, is_one_of
        below = f"/{self.path}" if is_one_of else ""
        for name in _VIEWS:
            router.add_get(f"{below}/{name}", self._view)
        router.add_get(f"{below}/changes.jsonl", self._jsonl)
        router.add_get(f"{below}/changes.atom", self._atom)

    async def _view(self, request: web.Request) -> web.Response:
        name = request.path.rpartition("/")[2]
        title, view, fresh_for = _VIEWS[name]
        key = request.path_qs
        now = time.monotonic()
        made, since = self._made.get(key, (None, now))
        if made is None or (made.done() and now - since > fresh_for):
            make = partial(self._make, view, dict(request.query))
            made = asyncio.get_running_loop().run_in_executor(self._threads, make)
            self._made[key] = made, now
            for old in list(self._made)[:-_MOST_KEPT]:
                del self._made[old]
        done, _ = await asyncio.wait([made], timeout=0.8)
        if not done:
            # The page shows this sentence while the view is being made, and reloads itself.
            waiting = tag("main", tag("section", tag("p", "This is being computed …"), class_="panel waiting"))
            return self._answer(request, title, waiting, view=name, refresh=1)
        try:
            main = made.result()
        except CrawlschedError as error:
            self._made.pop(key, None)
            raise web.HTTPNotFound(reason=" ".join(str(error).split())) from None
        except Exception:
            self._made.pop(key, None)
            raise
        return self._answer(request, title, main, view=name, refresh=0 if name in ("page", "whatif", "sources") else 10)

    def _answer(self, request: web.Request, title: str, main: Html, **shown: Any) -> web.Response:
        shown |= {"root": root_of(request), "is_one_of": self._is_one_of}
        return html_answer(document(title, main, self.name, **shown))

    def _make(self, view: Callable[[Context], Html], query: dict[str, str]) -> Html:
        store = self.store
        return view(Context(store=store, reports=self._reports, query=query, now=store.clock()))

    async def _jsonl(self, request: web.Request) -> web.StreamResponse:
        store, since = self.store, request.query.get("since")
        feed = Feed(store)
        diff, limit = request.query.get("diff") in ("1", "true"), request.query.get("limit", "1000")
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit) <= _MOST_CHANGES):
            raise CrawlschedError(f"limit must be a whole number from 1 to {_MOST_CHANGES}, got {limit!r:.40}.")

        def read() -> tuple[bytes, str]:
            asked = feed.start() if since is None else read_since(since, store.clock())
            cursor = asked if isinstance(asked, Cursor) else feed.at(asked)
            found = feed.after(cursor, int(limit), diff=diff)
            lines = "".join(f"{json.dumps(change.to_dict())}\n" for change in found)
            return lines.encode(), found[-1].cursor if found else str(cursor)

        body, cursor = await aside(self._threads, read)
        return web.Response(body=body, content_type="application/x-ndjson", headers={"X-Crawlsched-Cursor": cursor})

    async def _atom(self, request: web.Request) -> web.Response:
        store = self.store
        address = str(request.url.with_query(None))

        def make() -> bytes:
            return atom(Feed(store).newest(SHOWN, diff=True), store.name, address, store.clock())

        return web.Response(body=await aside(self._threads, make), content_type="application/atom+xml", charset="utf-8")


async def aside(threads: ThreadPoolExecutor, function: Callable[[], Any]) -> Any:
    """Run a function in another thread and wait for it."""
    return await asyncio.get_running_loop().run_in_executor(threads, function)


def html_answer(text: str, status: int = 200) -> web.Response:
    """Return a whole page as an answer."""
    return web.Response(text=text, status=status, content_type="text/html")


def root_of(request: web.Request) -> str:
    """Return the relative path from the requested page to the top."""
    return "../" * (request.rel_url.raw_path.count("/") - 1)
