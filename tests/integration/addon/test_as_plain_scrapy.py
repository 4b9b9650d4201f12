"""What plain Scrapy would have delivered is delivered: spiders of two dozen kinds, with and without the add-on."""

import json
import sys
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

from aiohttp import web

from tests import children
from tests.site import Site, html

SITEMAP = "<urlset>{}</urlset>"


class Shop:
    """A site of everything that `tests.spiders_of_users` wants; what it says depends on its revision."""

    def __init__(self, site: Site) -> None:
        self.revision = 1
        self.sessions: set[str] = set()
        self.n_flaky = 0
        self._site = site
        for path, answer in {
            "/list": self._list,
            "/cookies": lambda request: f"<p>{request.cookies['city']} {self.revision}</p>",
            "/cookies/again": lambda request: f"<p>{request.cookies['city']} again {self.revision}</p>",
            "/language": lambda request: f"<p>{request.headers['Accept-Language']} {self.revision}</p>",
            "/still": lambda request: "<p>stays the same</p>",
            "/search": lambda request: f"<p>{request.query['query']} {self.revision}</p>",
            "/missing": lambda request: web.Response(status=404),
            "/broken": lambda request: web.Response(status=500, text="broken"),
            "/empty": lambda request: web.Response(status=204),
            "/flaky": self._flaky,
            "/gone": lambda request: web.Response(status=410, text=f"<p>gone {self.revision}</p>"),
        }.items():
            site.page(path, answer)
        site.default = self._default

    def _word(self, name: str) -> str:
        """What a page says at this revision, and no other: all pages changed alike would be an edit of a template.

        The first item of the list always says the same: what is new of it is the price that the list gives it.
        """
        revision = 0 if name == "0" else self.revision
        return blake2b(f"{name} {revision}".encode(), digest_size=4).hexdigest()

    def _flaky(self, request: web.Request) -> web.Response | str:
        self.n_flaky += 1
        return web.Response(status=503) if self.n_flaky % 2 else f"<p>{self.revision}</p>"

    def _list(self, request: web.Request) -> str:
        links = (f'<a href="/item/{n}" data-price="{n + 10 * self.revision}">item {n}</a>' for n in range(4))
        return f"<p>list {self.revision}</p>{''.join(links)}"

    async def _default(self, request: web.Request) -> web.StreamResponse | str:
        kind, _, rest = request.path[1:].partition("/")
        if kind == "item":
            return self._item(request, rest)
        if kind == "pages":
            number = int(rest)
            following = f'<a class="next" href="/pages/{number + 1}">next</a>' if number < 3 else ""
            return f'<p>page {rest} is {self._word(f"page{rest}")}</p>{following}<a href="/item/r{rest}">i{rest}</a>'
        if kind == "shell":
            links = "".join(f'<a href="/shell/{n}">.</a>' for n in range(1, 6)) if rest == "0" else ""
            data = json.dumps({"id": rest, "price": self._word(f"shell{rest}")})
            return (
                f"<p>Loading, please wait</p><footer>All prices with taxes</footer>{links}"
                f'<script id="data" type="application/json">{data}</script>'
            )
        if kind == "to":
            status, _, name = rest.partition("/")
            if status == "200":
                return f'<meta http-equiv="refresh" content="0; url=/item/{name}">'
            return web.Response(status=int(status), headers={"Location": f"/item/{name}"})
        if kind == "api":
            number = (await request.json())["number"]
            return web.json_response({"number": number, "value": number + 100 * self.revision})
        if kind in ("login", "article"):
            return await self._members(request, kind, rest)
        if kind == "sitemap.xml":
            urls = "".join(f"<url><loc>{self._site.url(f'/item/m{n}')}</loc></url>" for n in range(3 + self.revision))
            return web.Response(text=SITEMAP.format(urls), content_type="application/xml")
        return web.Response(status=404, text="not here")

    def _item(self, request: web.Request, name: str) -> web.Response:
        etag = f'"{self._word(name)}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers={"ETag": etag})
        text = f"<p>the item called {name} is {self._word(name)}</p>"
        return html(text, headers={"ETag": etag})

    async def _members(self, request: web.Request, kind: str, rest: str) -> web.StreamResponse | str:
        if kind == "login" and request.method == "POST":
            session = f"s{len(self.sessions)}"
            self.sessions.add(session)
            answer = html("".join(f'<a href="/article/{n}">x</a>' for n in range(3)))
            answer.set_cookie("sid", session)
            return answer
        if kind == "login":
            return '<p>Please log in</p><form method="post" action="/login"><input name="user"></form>'
        if request.cookies.get("sid") not in self.sessions:
            return web.Response(status=302, headers={"Location": "/login"})
        return f"<p>secret text number {rest} is {self._word(f'article{rest}')}</p>"


def _items(site: Site, folder: Path, **settings: Any) -> dict[str, Counter[str]]:
    """Run all spiders; return the items of each."""
    file = folder / f"{len(list(folder.iterdir()))}.jl"
    command = (sys.executable, "-W", "error", "-m", "tests.spiders_of_users", site.url(""), json.dumps(settings), file)
    ran = children.run(*command, cwd=folder, timeout=100)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found: dict[str, Counter[str]] = {}
    for line in file.read_text().splitlines():
        item = json.loads(line)
        found.setdefault(item.pop("spider"), Counter())[json.dumps(item, sort_keys=True)] += 1
    return found


OURS = {
    "ADDONS": {"crawlsched.Addon": 500},
    "CRAWLSCHED_ONE_PASS": True,
    "CRAWLSCHED_BANDWIDTH": "25/s",
    "CRAWLSCHED_DATABASE_URL": "sqlite:///crawl.db",
}


def test_what_plain_scrapy_delivers_is_delivered(site, tmp_path):
    """In the first run all of it; in a second one, when the site has changed and sessions ended, all that is new."""
    shop = Shop(site)
    plain, ours = _items(site, tmp_path), _items(site, tmp_path, **OURS)
    lost = {name: items - ours.get(name, Counter()) for name, items in plain.items()}
    assert {name: items for name, items in lost.items() if items} == {}
    assert ours["own_filter"] == plain["own_filter"]
    shop.revision = 2
    shop.sessions.clear()
    plain_again = _items(site, tmp_path)
    shop.sessions.clear()
    again = _items(site, tmp_path, **OURS)
    new = {name: Counter(set(items) - set(plain[name])) for name, items in plain_again.items()}
    lost = {name: items - again.get(name, Counter()) for name, items in new.items()}
    assert {name: items for name, items in lost.items() if items} == {}
