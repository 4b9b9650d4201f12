"""The site on the network: aiohttp, one address per host, one port for all of them."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Callable
from email.utils import formatdate, parsedate_to_datetime
from random import Random

from aiohttp import web

from living_site import rendering
from living_site.cast import Host
from living_site.site import Page, Site
from living_site.truth import TruthLog

BASE_AGE = 86_400.0  # a page that has not changed since the epoch was last modified a day before it


class Server:
    """Answer requests for a site and log the truth.

    Parameters
    ----------
    site
        The site to serve.
    epoch
        POSIX time at which the site begins.
    truth
        The log of events and requests.
    port
        The port on which all addresses listen, for links.
    clock
        Returns POSIX seconds.
    """

    def __init__(
        self, site: Site, epoch: float, truth: TruthLog, port: int, clock: Callable[[], float] = time.time
    ) -> None:
        self._site, self._epoch, self._truth, self._clock = site, epoch, truth, clock
        self._hosts = {host.address: host for host in site.cast}
        self._origin = f"http://{{address}}:{port}"
        # Seeded like all the rest, but a crawler's responses also depend on the order of its requests.
        self._noise = Random(f"{site.seed}/noise")

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return self._clock() - self._epoch

    async def answer(self, request: web.Request) -> web.Response:
        """Answer one request: robots.txt, sitemaps, the forbidden part and pages; anything else gets 404."""
        arrived = self.now()
        host = self._hosts[request.transport.get_extra_info("sockname")[0]]  # type: ignore[union-attr]
        await asyncio.sleep(host.response_time)
        at = self.now()
        facts: dict[str, object] = {}
        page = self._site.page(host.address, request.path)
        spell = self._site.spell(host.address, at)
        if request.path == "/robots.txt":
            response = web.Response(text=rendering.robots(host, self._origin))
        elif spell is not None:
            response = self._in_a_spell(*spell, at)
        elif page is not None:
            response = self._page(page, request, at)
        elif request.path.startswith("/private/") and host.private:
            response = web.Response(text="<p>Nobody was to read this.</p>", content_type="text/html")
        else:
            response, facts = self._sitemap(host, request, at)
        if page is not None:
            facts = self._truth.visited(page.number, response.status, page.timeline.version(at), at)
        agent = request.headers.get("User-Agent", "")
        said = {"host": host.address, "path": request.path, "status": response.status, "agent": agent}
        self._truth.request(arrived, at, **said, **facts)
        return response

    def _in_a_spell(self, status: int, end: float, at: float) -> web.Response:
        headers = {"Retry-After": str(int(end - at) + 1)} if status == 429 else {}
        return web.Response(status=status, headers=headers, text="Please come back later.")

    def _page(self, page: Page, request: web.Request, at: float) -> web.Response:
        life = page.timeline
        if not life.is_alive(at):
            if page.moved_to is not None and page.moved_to.timeline.is_alive(at):
                location = self._origin.format(address=page.host.address) + page.moved_to.path
                return web.Response(status=301, headers={"Location": location})
            return web.Response(status=410 if page.number % 2 else 404, text="There is no such page.")
        validators = self._validators(page, at)
        if is_not_modified(request, validators):
            return web.Response(status=304, headers=validators)
        text = rendering.html(self._site, page, at, self._origin, self._noise)
        return web.Response(text=text, content_type="text/html", charset="utf-8", headers=validators)

    def _validators(self, page: Page, at: float) -> dict[str, str]:
        """Return the ETag and Last-Modified that the host sends: honest, lying or none."""
        headers = {}
        if page.host.etag != "missing":
            tag = {"honest": page.timeline.version(at), "constant": 0, "random": self._noise.getrandbits(48)}[
                page.host.etag
            ]
            headers["ETag"] = f'"{page.number:x}-{tag:x}"'
        if page.host.last_modified != "missing":
            last_change = page.timeline.last_change(at)
            modified = at if page.host.last_modified == "now" else -BASE_AGE if last_change is None else last_change
            headers["Last-Modified"] = formatdate(int(self._epoch + modified), usegmt=True)
        return headers

    def _sitemap(self, host: Host, request: web.Request, at: float) -> tuple[web.Response, dict[str, object]]:
        """Answer with the sitemap or index at this path, or with 404; the facts name the pages that it announces."""
        path = request.path
        if host.sitemap in ("none", "absent file"):
            return web.Response(status=404, text="There is no such page."), {}
        facts: dict[str, object] = {}
        children = rendering.child_sitemaps(host)
        if path == rendering.sitemap_path(host) and children:
            text = rendering.sitemap_index(self._site, host, self._epoch, at, self._origin)
        elif path in (children or [rendering.sitemap_path(host)]):
            said = rendering.lastmods(self._site, host, path, at)
            facts = {"announced": self._truth.announced(host.address, path, said)}
            text = rendering.sitemap(self._site, said, self._epoch, self._origin)
        else:
            return web.Response(status=404, text="There is no such page."), {}
        body = text.encode()
        if path.endswith(".gz"):
            return web.Response(body=gzip.compress(body, 6, mtime=0), content_type="application/gzip"), facts
        return web.Response(body=body, content_type="application/xml", charset="utf-8"), facts


def is_not_modified(request: web.Request, validators: dict[str, str]) -> bool:
    """Whether to answer 304: If-None-Match decides if both sides have an ETag, otherwise If-Modified-Since."""
    asked = request.headers.get("If-None-Match")
    if asked is not None and "ETag" in validators:
        return asked == validators["ETag"]
    since = request.headers.get("If-Modified-Since")
    if since is None or "Last-Modified" not in validators:
        return False
    return parsedate_to_datetime(validators["Last-Modified"]) <= parsedate_to_datetime(since)


async def listen(
    handler: Callable[[web.Request], object], addresses: list[str]
) -> tuple[web.AppRunner | web.ServerRunner, int]:
    """Listen on all addresses on one free port, which the system chooses once.

    Raises
    ------
    OSError
        If the machine does not have the addresses (Linux has all of 127.0.0.0/8; elsewhere they must be added), or no
        port was free on all of them in ten attempts.
    """
    runner = web.ServerRunner(web.Server(handler, access_log=None))  # type: ignore[arg-type]
    await runner.setup()
    for _ in range(10):
        sites: list[web.TCPSite] = []
        port = 0
        try:
            for address in addresses:
                site = web.TCPSite(runner, address, port)
                await site.start()
                sites.append(site)
                port = port or runner.addresses[0][1]
            return runner, port
        except OSError as error:
            for site in sites:
                await site.stop()
            failure = error
    await runner.cleanup()
    raise OSError(f"cannot listen on one port of all of {addresses[0]} to {addresses[-1]}: {failure}")
