"""The server: who is let in, which view answers, and how long anything may take."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from aiohttp import web

from crawlsched.exceptions import CrawlschedError
from crawlsched.feed import Cursor, Feed
from crawlsched.feed.atom import atom
from crawlsched.feed.cursor import read_since
from crawlsched.settings.values import is_loopback
from crawlsched.showing import in_words, without_secrets
from crawlsched.store import Store
from crawlsched.web.html import Html, tag
from crawlsched.web.layout import document
from crawlsched.web.metrics import CONTENT_TYPE, metrics
from crawlsched.web.views import Context, Reports
from crawlsched.web.views.changes import changes
from crawlsched.web.views.hosts import hosts
from crawlsched.web.views.overview import overview
from crawlsched.web.views.page import page
from crawlsched.web.views.pages import pages
from crawlsched.web.views.sources import sources
from crawlsched.web.views.whatif import whatif
from crawlsched.web.vitals import checks, vitals

__all__ = ["Page", "serve"]

logger = logging.getLogger(__name__)

_STATIC = Path(__file__).parent / "static"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_COOKIE = "crawlsched_token"
# Nothing from elsewhere, nothing inline, in nobody's frame; what is sent goes here, too.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# A view that takes longer is answered with a word, and what it becomes is shown as soon as it is there.
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
_MOST_KEPT = 64
_MOST_CHANGES = 10_000
_ATOM_ENTRIES = 100


@dataclass(frozen=True, kw_only=True)
class Page:
    """What is served, and to whom.

    Attributes
    ----------
    store : Store
    reports : Reports
    host, port
        Where it listens; port 0 is any free one.
    token : str or None
        What has to be known; None: nothing.
    may_act : bool
    """

    store: Store
    reports: Reports
    host: str
    port: int
    token: str | None
    may_act: bool = False


class _Made:
    """A view that was made, or is being made."""

    def __init__(self, future: asyncio.Future[Html]) -> None:
        self.future, self.at = future, time.monotonic()


class _Server:
    def __init__(self, page: Page) -> None:
        self._page = page
        # Two: a view that takes long keeps no other from being looked at.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="crawlsched-web")
        self._made: dict[str, _Made] = {}

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=64 * 1024)
        for name in _VIEWS:
            app.router.add_get(f"/{name}", self._view)
        app.router.add_get("/changes.jsonl", self._jsonl)
        app.router.add_get("/changes.atom", self._atom)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/static/{name}", self._static)
        app.router.add_post("/act/{name}", self._act)
        return app

    # -- who is let in

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        try:
            refused = self._refusal(request)
            answer: web.StreamResponse = refused if refused is not None else await handler(request)
        except web.HTTPException as error:
            answer = self._say(request, error.status, error.reason)
        except CrawlschedError as error:
            answer = self._say(request, 400, str(error))
        except asyncio.CancelledError:
            raise
        except Exception as error:
            logger.exception("%s cannot be shown.", request.path)
            answer = self._say(request, 500, f"This cannot be shown: {without_secrets(in_words(error))}.")
        if not answer.prepared:
            for name, value in _HEADERS.items():
                answer.headers.setdefault(name, value)
        return answer

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Return why somebody is not let in; None: he is."""
        # A page elsewhere whose name is made to lead here asks with that name (DNS rebinding).
        name = urlsplit(f"//{request.host}").hostname or ""
        if is_loopback(self._page.host) and not is_loopback(name):
            return self._say(request, 421, "This address is served under the names of this machine only.")
        if request.method not in ("GET", "HEAD") and not _is_same_origin(request):
            return self._say(request, 403, "Actions are taken from the page itself only.")
        is_public = request.path == "/healthz" or request.path.startswith("/static/")
        if self._page.token is None or is_public:
            return None
        if request.path == "/metrics" and is_loopback(self._page.host):
            return None
        given = request.query.get("token")
        if given is not None and self._knows(given):
            if request.method != "GET" or request.path in ("/changes.jsonl", "/changes.atom", "/metrics"):
                return None
            # Out of the address, which is kept in histories, into a cookie that no script and no other site gets.
            rest = "&".join(f"{quote(k)}={quote(v)}" for k, v in request.query.items() if k != "token")
            where = f"{quote(request.path)}{'?' if rest else ''}{rest}"
            response = web.Response(status=303, headers={"Location": where})
            response.set_cookie(_COOKIE, given, httponly=True, samesite="Strict", max_age=30 * 86_400)
            return response
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self._knows(bearer) or self._knows(request.cookies.get(_COOKIE, "")):
            return None
        return self._say(request, 401, "This page wants its token: open the address that stands in the crawl's log.")

    def _knows(self, given: str) -> bool:
        return self._page.token is not None and hmac.compare_digest(given.encode(), self._page.token.encode())

    def _say(self, request: web.Request, status: int, sentence: str) -> web.Response:
        if "text/html" not in request.headers.get("Accept", ""):
            return web.json_response({"error": sentence}, status=status)
        main = tag("main", tag("section", tag("h2", str(status)), tag("p", sentence), class_="panel"))
        title = "Not found" if status == 404 else "No"
        return _html(document(title, None, main, self._page.store.name), status)

    # -- the views

    async def _view(self, request: web.Request) -> web.Response:
        name = request.path.strip("/")
        title, view, fresh_for = _VIEWS[name]
        key = request.path_qs
        made = self._made.get(key)
        if made is None or (made.future.done() and time.monotonic() - made.at > fresh_for):
            made = self._made[key] = _Made(self._begin(view, dict(request.query)))
            for old in list(self._made)[:-_MOST_KEPT]:
                del self._made[old]
        done, _ = await asyncio.wait([made.future], timeout=_PATIENCE)
        if not done:
            # Nothing is shown twice as long as it takes: the page asks again by itself.
            waiting = tag("main", tag("section", tag("p", "This is being computed …"), class_="panel waiting"))
            return _html(document(title, name, waiting, self._page.store.name, refresh=1), 200)
        try:
            main = made.future.result()
        except CrawlschedError as error:
            self._made.pop(key, None)
            return self._say(request, 404, str(error))
        except Exception:
            self._made.pop(key, None)
            raise
        refresh = 0 if name in ("page", "whatif", "sources") else 10
        return _html(document(title, name, main, self._page.store.name, refresh=refresh), 200)

    def _begin(self, view: Callable[[Context], Html], query: dict[str, str]) -> asyncio.Future[Html]:
        page = self._page

        def make() -> Html:
            context = Context(
                store=page.store, reports=page.reports, query=query, now=page.store.clock(), may_act=page.may_act
            )
            return view(context)

        return asyncio.get_running_loop().run_in_executor(self._threads, make)

    async def _aside(self, function: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    async def _act(self, request: web.Request) -> web.Response:
        if not self._page.may_act:
            return self._say(request, 403, "Nothing can be done from here; CRAWLSCHED_WEB_ACTIONS = True allows it.")
        form = {name: str(value) for name, value in (await request.post()).items()}
        said = await self._aside(lambda: self._page.reports.act(request.match_info["name"], form))
        main = tag("main", tag("section", tag("p", said), tag("a", "back to the overview", href="./"), class_="panel"))
        return _html(document("Done", None, main, self._page.store.name, base="../"), 200)

    # -- the feed, and what machines ask

    async def _jsonl(self, request: web.Request) -> web.StreamResponse:
        feed = Feed(self._page.store)
        since = request.query.get("since")
        diff, limit = request.query.get("diff") in ("1", "true"), request.query.get("limit", "1000")
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit) <= _MOST_CHANGES):
            raise CrawlschedError(f"limit must be a whole number from 1 to {_MOST_CHANGES}, got {limit!r:.40}.")

        def read() -> tuple[bytes, str]:
            asked = feed.start() if since is None else read_since(since, self._page.store.clock())
            cursor = asked if isinstance(asked, Cursor) else feed.at(asked)
            found = feed.after(cursor, int(limit), diff=diff)
            lines = "".join(f"{json.dumps(change.to_dict())}\n" for change in found)
            return lines.encode(), found[-1].cursor if found else str(cursor)

        body, cursor = await self._aside(read)
        return web.Response(body=body, content_type="application/x-ndjson", headers={"X-Crawlsched-Cursor": cursor})

    async def _atom(self, request: web.Request) -> web.Response:
        store = self._page.store
        address = str(request.url.with_query(None))
        make = lambda: atom(Feed(store).newest(_ATOM_ENTRIES, diff=True), store.name, address, store.clock())  # noqa: E731
        return web.Response(body=await self._aside(make), content_type="application/atom+xml", charset="utf-8")

    async def _metrics(self, request: web.Request) -> web.Response:
        body = await self._aside(lambda: metrics(vitals(self._page.store), self._page.store.name))
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def _healthz(self, request: web.Request) -> web.Response:
        found = await self._aside(lambda: checks(vitals(self._page.store)))
        is_well = all(check.is_well for check in found)
        said = {check.name: {"ok": check.is_well, "says": check.sentence} for check in found}
        return web.json_response({"ok": is_well, "checks": said}, status=200 if is_well else 503)

    async def _static(self, request: web.Request) -> web.Response:
        file = _STATIC / Path(request.match_info["name"]).name
        if file.suffix not in _TYPES or not file.is_file():
            raise web.HTTPNotFound
        return web.Response(body=file.read_bytes(), content_type=_TYPES[file.suffix], charset="utf-8")


def _html(text: str, status: int) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")


def _is_same_origin(request: web.Request) -> bool:
    origin = request.headers.get("Origin")
    if origin is not None:
        return urlsplit(origin).netloc == request.host
    return request.headers.get("Sec-Fetch-Site") == "same-origin"


async def serve(page: Page) -> AsyncIterator[str]:
    """Listen; give the address once it is listened on, and stop when the iterator is closed.

    Raises
    ------
    CrawlschedError
        If the address cannot be listened on.
    """
    runner = web.AppRunner(_Server(page).app(), access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, page.host, page.port)
        try:
            await site.start()
        except OSError as error:
            raise CrawlschedError(
                f"The page cannot be served: {page.host}:{page.port} cannot be listened on "
                f"({error.strerror or error}); name another port with CRAWLSCHED_WEB."
            ) from None
        host, port = runner.addresses[0][:2]
        host = f"[{host}]" if ":" in host else host
        yield f"http://{host}:{port}/" + (f"?token={page.token}" if page.token else "")
    finally:
        await runner.cleanup()
