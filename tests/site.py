"""A real web server on loopback for tests: each path is answered by a function of the test's own."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable
from typing import Any, Self

from aiohttp import web

#: What answers a path: by a page's text, or by a response.
Answer = Callable[[web.Request], Awaitable[web.StreamResponse | str] | web.StreamResponse | str]

# Between two looks whether the site is late itself, seconds.
_BETWEEN_LOOKS = 0.05


def html(text: str, **more: Any) -> web.Response:
    """Answer with a page."""
    return web.Response(text=text, content_type="text/html", **more)


def most_in_a_second(times: list[float]) -> int:
    """Count the fullest second."""
    return max(sum(start <= time < start + 1.0 for time in times) for start in times)


class Site:
    """Serve paths from a thread of its own, and remember every request.

    Attributes
    ----------
    requests : list of (str, dict)
        Path with query, and headers with names in lower case, in the order in which they arrived.
    default : callable or None
        Answers what has no answer of its own; None: with 404.
    late : float
        How late it was itself at most, seconds: requests that had come by then seem to come at once.
    """

    def __init__(self, addresses: tuple[str, ...] = ("127.0.0.1",)) -> None:
        self.answers: dict[str, Answer] = {}
        self.default: Answer | None = None  # None: all other paths are 404
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.times: list[float] = []
        self.late = 0.0
        self._addresses = addresses
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def page(self, path: str, answer: Answer | str, *, status: int = 200, **headers: str) -> str:
        """Answer a path with a function or a fixed text; return its URL."""
        if callable(answer):
            self.answers[path] = answer
        else:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            self.answers[path] = lambda request: html(answer, status=status, headers=named)
        return self.url(path)

    def url(self, path: str, address: str | None = None) -> str:
        """Return the URL of a path."""
        return f"http://{address or self._addresses[0]}:{self.port}{path}"

    def visits(self, path: str) -> list[dict[str, str]]:
        """Return the headers of every request for a path."""
        return [headers for asked, headers in self.requests if asked == path]

    def most_at(self, rate: float) -> float:
        """Return how many requests any second may have of a crawl at a rate, as far as this site can see."""
        return 1.25 * rate * (1.0 + self.late) + 1

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _stop(self) -> None:
        await self._runner.cleanup()
        # Answers that were still being given: aiohttp cancels them, and waits for none.
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for task in under_way:
            task.cancel()
        if under_way:
            await asyncio.wait(under_way, timeout=1.0)

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        self.port = 0
        for address in self._addresses:
            site = web.TCPSite(self._runner, address, self.port)
            await site.start()
            self.port = self.port or site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self._look(self._loop.time())

    def _look(self, due: float) -> None:
        now = self._loop.time()
        if now - due > _BETWEEN_LOOKS:  # what timers are late by anyway says nothing
            self.late = max(self.late, now - due)
        self._loop.call_at(now + _BETWEEN_LOOKS, self._look, now + _BETWEEN_LOOKS)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.path_qs, {name.lower(): value for name, value in request.headers.items()}))
        self.times.append(self._loop.time())
        answer = self.answers.get(request.path, self.default)
        if answer is None:
            return web.Response(status=404, text="not here")
        given = answer(request)
        if isawaitable(given):
            given = await given
        return html(given) if isinstance(given, str) else given


async def serve(
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]], hosts: Sequence[str], port: int
) -> None:
    """Answer what is asked of some hosts until this process ends, and say when it begins."""
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    for host in hosts:
        await web.TCPSite(runner, host, port).start()
    print("serving", flush=True)
    await asyncio.Event().wait()
