"""The server: access, routes, and responses about all collections together."""

from __future__ import annotations

import hmac
import logging
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from aiohttp import web

from crawlsched.exceptions import CrawlschedError
from crawlsched.settings.addresses import is_loopback
from crawlsched.showing import in_words, without_secrets
from crawlsched.slot_clock import DAY
from crawlsched.web.collection_views import CollectionViews, aside, html_answer, root_of
from crawlsched.web.html import document, tag
from crawlsched.web.metrics import CONTENT_TYPE, metrics
from crawlsched.web.views.overview import collections
from crawlsched.web.vitals import Vitals, checks, vitals

__all__ = ["CollectionViews", "serve"]

logger = logging.getLogger(__name__)

_STATIC = Path(__file__).parent / "static"
_COOKIE = "crawlsched_token"
# The page has no content from other sites and no inline content, and no other site may frame it.
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


class _Server:
    def __init__(self, title: str, watched: Sequence[CollectionViews], host: str, token: str | None) -> None:
        self._title, self._watched, self._host, self._token = title, watched, host, token
        # Two threads, so that a slow view does not block the others.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="crawlsched-web")

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=64 * 1024)
        is_one_of = len(self._watched) > 1
        for watched in self._watched:
            watched.add_to(app.router, self._threads, is_one_of=is_one_of)
        if is_one_of:
            app.router.add_get("/", self._all)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_static("/static", _STATIC)
        return app

    # -- access

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        try:
            refused = self._refusal(request)
            answer: web.StreamResponse = refused if refused is not None else await handler(request)
        except web.HTTPException as error:
            answer = self._say(request, error.status, error.reason)
        except CrawlschedError as error:
            answer = self._say(request, 400, str(error))
        except Exception as error:
            logger.exception("%s cannot be shown.", request.path)
            answer = self._say(request, 500, f"This cannot be shown: {without_secrets(in_words(error))}.")
        if not answer.prepared:
            for name, value in _HEADERS.items():
                answer.headers.setdefault(name, value)
        return answer

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Return the response that refuses a request; None if it is accepted."""
        # DNS rebinding: another site can let its own name resolve to this address. Requests from that site's pages then
        # have this name as their host.
        name = urlsplit(f"//{request.host}").hostname or ""
        if is_loopback(self._host) and not is_loopback(name):
            return self._say(request, 421, "This address is served under the names of this machine only.")
        is_public = request.path == "/healthz" or request.path.startswith("/static/")
        if self._token is None or is_public:
            return None
        if request.path == "/metrics" and is_loopback(self._host):
            return None
        given = request.query.get("token")
        if given is not None and self._knows(given):
            if request.method != "GET" or request.path.endswith(("/changes.jsonl", "/changes.atom", "/metrics")):
                return None
            # Browsers store addresses in their history. So the token moves from the address to a cookie, which scripts
            # and other sites cannot read.
            rest = "&".join(f"{quote(k)}={quote(v)}" for k, v in request.query.items() if k != "token")
            # An address that begins with two slashes would lead to another site.
            where = f"/{request.rel_url.raw_path.lstrip('/')}{'?' if rest else ''}{rest}"
            response = web.Response(status=303, headers={"Location": where})
            response.set_cookie(_COOKIE, given, httponly=True, samesite="Strict", max_age=int(30 * DAY))
            return response
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self._knows(bearer) or self._knows(request.cookies.get(_COOKIE, "")):
            return None
        return self._say(request, 401, "This page needs its token: open the address in the crawl's log.")

    def _knows(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(), self._token.encode())

    def _say(self, request: web.Request, status: int, sentence: str) -> web.Response:
        if "text/html" not in request.headers.get("Accept", ""):
            return web.json_response({"error": sentence}, status=status)
        main = tag("main", tag("section", tag("h2", str(status)), tag("p", sentence), class_="panel"))
        title = "Not found" if status == 404 else "No"
        root, is_one_of = root_of(request), len(self._watched) > 1
        page = document(title, main, self._title, base=root, root=root, is_one_of=is_one_of, has_views=not is_one_of)
        return html_answer(page, status)

    # -- all collections together

    async def _all(self, request: web.Request) -> web.Response:
        watched = [(one.name, one.path, one.store) for one in self._watched]
        main = await aside(self._threads, lambda: collections(watched))
        return html_answer(document("Collections", main, self._title, is_one_of=True, has_views=False, refresh=10))

    def _seen(self, request: web.Request) -> dict[str, Vitals]:
        """Read the vitals of all watched collections, or of the requested collection."""
        asked = request.query.get("collection")
        watched = [one for one in self._watched if asked in (None, one.name)]
        if not watched:
            raise CrawlschedError(f"There is no collection {asked!r:.100} here.")
        return {one.name: vitals(one.store) for one in watched}

    async def _metrics(self, request: web.Request) -> web.Response:
        body = await aside(self._threads, lambda: metrics(self._seen(request)))
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})

    async def _healthz(self, request: web.Request) -> web.Response:
        seen = await aside(self._threads, lambda: self._seen(request))
        found = {name: checks(of_one) for name, of_one in seen.items()}
        of_all = [check for of_one in found.values() for check in of_one]
        is_well = all(check.is_well for check in of_all)
        said: dict[str, Any] = {name: [check._asdict() for check in of_one] for name, of_one in found.items()}
        # A supervisor restarts the crawl after a 503, so 503 is sent only if a restart may help.
        status = 200 if all(check.is_well or not check.is_of_process for check in of_all) else 503
        answer = {"collections": said} if len(self._watched) > 1 else {"checks": said[self._watched[0].name]}
        return web.json_response({"ok": is_well, **answer}, status=status)


async def serve(
    watched: Sequence[CollectionViews], *, title: str, host: str, port: int, token: str | None
) -> AsyncIterator[str]:
    """Serve the page: yield the address when the server listens, and stop when the iterator is closed.

    Port 0 means any free port. If there is a token, visitors have to know it. If there are several collections, each
    has its views below ``/c/``, and a page with the title links to them.
    """
    app = _Server(title, watched, host, token).app()
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise CrawlschedError(
                f"The page cannot be served: {host}:{port} cannot be listened on "
                f"({error.strerror or error}); name another port with CRAWLSCHED_WEB."
            ) from None
        host, port = runner.addresses[0][:2]
        host = f"[{host}]" if ":" in host else host
        yield f"http://{host}:{port}/" + (f"?token={token}" if token else "")
    finally:
        await runner.cleanup()
