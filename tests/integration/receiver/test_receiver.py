"""Pings reach a real crawl over HTTP; a flood of them neither starves it nor buys a page more than it is worth."""

import hmac
import http.client
import json
import signal
import socket
import threading
import time
from contextlib import ExitStack, closing, suppress
from math import inf
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from aiohttp import web

from crawlsched.receiver.pings import subscription_form
from crawlsched.receiver.receiver import MOST_CONNECTIONS
from crawlsched.store import Source
from crawlsched.store.records import last_plan
from tests import children
from tests.crawling import Project
from tests.site import Site
from tests.waiting import wait_until

KEY = "0123456789abcdef"


def _project(folder: Path, urls: list[str], **settings: object) -> Project:
    return Project(folder, urls, **{"bandwidth": "20/s", "receiver": {"address": 0, "key": KEY}, **settings})


def _ask(
    address: tuple[str, int], method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection(*address, timeout=10)) as connection:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.read()


def _body(urls: list[str], key: str = KEY) -> bytes:
    return json.dumps({"host": urlsplit(urls[0]).hostname, "key": key, "urlList": urls}).encode()


def sources_of(project: Project) -> list[Source]:
    """Return the sources of a crawl that goes on."""
    return project.so_far().read(lambda store: store.reader.sources())


def test_pings_become_change_signals_and_bad_ones_are_refused(site, tmp_path):
    """GET and POST count, a repetition does not; a wrong key gets 403, too large a body 413."""
    urls = [site.page(f"/{number}", f"<p>{number}</p>") for number in range(4)]
    project = _project(tmp_path, urls, pages=[["*", {"min_interval": 1000}]], seconds=0)
    process = project.start()
    address = project.receiver_address()
    wait_until(lambda: site.requests and all(project.so_far().outcomes().get(url) for url in urls))
    found = [
        _ask(address, "GET", f"/IndexNow?url={quote(urls[0])}&key={KEY}"),
        _ask(address, "GET", f"/indexnow/?url={quote(urls[0])}&key={KEY}"),
        _ask(address, "POST", "/indexnow", _body([*urls[1:3], site.url("/unknown")])),
        _ask(address, "POST", "/indexnow", _body(urls, key="guess")),
        _ask(address, "POST", "/indexnow", b"x" * (3 * 1024 * 1024)),
        _ask(address, "GET", "/nothing"),
    ]
    wait_until(lambda: any(one.kind == "ping" for one in sources_of(project)))
    crawl = project.end(process)
    assert [status for status, _ in found] == [202, 202, 202, 403, 413, 404]
    assert crawl.stats["crawlsched/change_signals/received"] == 4
    assert crawl.stats["crawlsched/change_signals/repeated"] == 1
    assert crawl.stats["crawlsched/change_signals/taken"] == 3
    assert crawl.stats["crawlsched/change_signals/unknown_url"] == 1
    assert crawl.stats["crawlsched/pings/urls"] == 5
    sources = crawl.read(lambda store: store.reader.sources())
    assert [source.url for source in sources if source.kind == "ping"] == ["indexnow 127.0.0.1"]


def test_websub_by_hand_is_confirmed_for_what_was_asked_and_notices_lead_to_polls(site, tmp_path):
    """W3C WebSub, clause by clause, where somebody else posts the form to the hub."""
    page = site.page("/page", "<p>x</p>")
    feed = site.page("/feed.xml", f"<rss><channel><item><link>{page}</link></item></channel></rss>")
    project = _project(tmp_path, [page], bandwidth="1/s", source_urls=feed, source_interval=100, seconds=0)
    process = project.start()
    address = project.receiver_address()
    # A notice right after a poll would be of no use, and the next poll is due after 20 seconds.

    def was_polled(one: Source) -> bool:
        return one.url == feed and time.time() - (one.polled_at or inf) > 2.0

    wait_until(lambda: site.requests and any(map(was_polled, sources_of(project))))
    form = subscription_form("http://here", 0, feed, KEY)
    callback = form["hub.callback"].removeprefix("http://here")
    asked = f"{callback}?hub.mode=subscribe&hub.challenge=abc&hub.lease_seconds=60&hub.topic="
    # 5.1: the topic is what the feed calls itself, which need not be where it is polled.
    named = subscription_form("http://here", 0, f"{feed}/", KEY)["hub.callback"].removeprefix("http://here")
    # 5.3: the challenge is given back for a topic that was asked for, whatever the case of our path.
    for question in (
        asked + quote(feed),
        asked.replace("/websub", "/WebSub") + quote(feed),
        asked.replace(callback, named) + quote(f"{feed}/"),
    ):
        assert _ask(address, "GET", question) == (200, b"abc")
    # 404 for any other topic, callback and mode, and for an unsubscription that nobody asked for.
    for question in (
        asked + quote(page),
        callback[:-4] + "0000?hub.mode=subscribe&hub.challenge=a&hub.topic=x",
        asked.replace("hub.challenge=abc&", "") + quote(feed),
        asked.replace("subscribe", "publish") + quote(feed),
        asked.replace("subscribe", "unsubscribe") + quote(feed),
    ):
        assert _ask(address, "GET", question)[0] == 404
    # 5.2: a denial is taken note of.
    assert _ask(address, "GET", f"{callback}?hub.mode=denied&hub.topic={quote(feed)}&hub.reason=no")[0] == 200
    # 7 and 8: a notice counts with its signature only, however long it is.
    before = len(site.visits("/feed.xml"))
    assert _ask(address, "POST", callback, b"<rss/>", X_Hub_Signature="sha256=00")[0] == 403
    assert _ask(address, "POST", callback, b"<rss/>")[0] == 403
    notice = b"<rss>" + b" " * 5_000_000
    signature = hmac.new(form["hub.secret"].encode(), notice, "sha256").hexdigest()
    assert _ask(address, "POST", callback, notice, X_Hub_Signature=f"sha256={signature}")[0] == 202
    wait_until(lambda: len(site.visits("/feed.xml")) == before + 1)
    crawl = project.end(process)
    assert crawl.stats["crawlsched/pings/notices"] == 1
    assert "denies the subscription: 'no'" in crawl.log


class _Hub:
    """A hub: it takes forms, makes sure of each with the callback, and sends signed notices."""

    def __init__(self, site: Site, path: str, lease: int) -> None:
        self.forms: list[dict[str, str]] = []
        self.confirmed: list[tuple[int, bytes]] = []
        self._lease = lease
        self.url = site.page(path, self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.forms.append(form)
        threading.Thread(target=self._make_sure, args=(form,), daemon=True).start()
        return web.Response(status=202)

    def _make_sure(self, form: dict[str, str]) -> None:
        asked = {name: form[f"hub.{name}"] for name in ("mode", "topic")} | {
            "challenge": "c",
            "lease_seconds": self._lease,
        }
        query = urlencode({f"hub.{name}": value for name, value in asked.items()})
        self.confirmed.append(self._send("GET", f"{form['hub.callback']}?{query}"))

    def notify(self, form: dict[str, str]) -> int:
        digits = hmac.new(form["hub.secret"].encode(), b"<feed/>", "sha512").hexdigest()
        return self._send("POST", form["hub.callback"], b"<feed/>", X_Hub_Signature=f"sha512={digits}")[0]

    def _send(self, method: str, url: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return _ask((parts.hostname, parts.port), method, path, body, **headers)


def test_the_crawl_subscribes_to_hubs_that_feeds_name(site, tmp_path):
    """Discovery in the feed and in a Link header; the topic is rel=self; each is asked once; notices lead to polls."""
    hub = _Hub(site, "/hub", lease=3_600)
    page = site.page("/page", "<p>x</p>")
    feed = site.page(
        "/feed.xml",
        f"<feed xmlns='http://www.w3.org/2005/Atom'><link rel='hub' href='{hub.url}'/><link rel='self' href='/self'/>"
        f"<entry><link href='{page}'/></entry></feed>",
    )
    moved = site.page("/moved-hub", "", status=307, Location=hub.url)
    other = site.page("/other.xml", "<rss><channel/></rss>", Link=f'<{moved}>; rel="hub"')
    port = children.free_port()
    receiver = {"address": port, "key": KEY, "url": f"http://127.0.0.1:{port}/"}
    settings = {"receiver": receiver, "source_urls": f"{feed},{other}", "source_interval": 100}
    project = _project(tmp_path, [page], seconds=0, **settings)
    process = project.start()
    wait_until(lambda: len(hub.confirmed) == 2)
    polls = len(site.visits("/feed.xml"))
    forms = {form["hub.topic"]: form for form in hub.forms}
    assert hub.notify(forms[site.url("/self")]) == 202
    wait_until(lambda: len(site.visits("/feed.xml")) == polls + 1)
    crawl = project.end(process)
    assert {form["hub.mode"] for form in hub.forms} == {"subscribe"}
    assert set(forms) == {site.url("/self"), other}
    assert hub.confirmed == [(200, b"c")] * 2
    assert crawl.stats["crawlsched/websub/asked"] == crawl.stats["crawlsched/websub/subscribed"] == 2


def test_a_flood_of_pings_neither_starves_the_crawl_nor_buys_crawls(site, tmp_path):
    """Eight senders ping one unchanging page hundreds of times a second, and others without a key."""
    urls = [site.page(f"/{number}", f"<p>{number}</p>") for number in range(30)]
    project = _project(tmp_path, urls, bandwidth="15/s", seconds=0)
    process = project.start()
    address = project.receiver_address()
    answers, ends = [], threading.Event()

    def flood(key):
        path = f"/indexnow?url={quote(urls[0])}&key={key}"
        while not ends.wait(0.03):
            try:
                answers.append(_ask(address, "GET", path)[0])
            except (OSError, http.client.HTTPException):
                answers.append(0)

    def is_ignored():
        """While the sender's precision is being learned each ping may bring a visit; once it is, none does."""
        plan, sources = project.so_far().read(lambda store: (last_plan(store), store.reader.sources()))
        weights = {} if plan is None else dict(enumerate(plan["signal_weights"]))
        return any(weights.get(one.source, 1.0) < 0.2 for one in sources if one.kind == "ping")

    def newest():
        return [path for path, _ in site.requests[-100:]]

    senders = [threading.Thread(target=flood, args=(key,)) for key in [KEY] * 8 + ["guess"] * 4]
    for sender in senders:
        sender.start()
    try:
        wait_until(lambda: answers.count(202) > 100, 90.0)
        wait_until(is_ignored, 90.0)
        n = len(site.requests)
        # The slots go on, and most are those of other pages once the plan is in force.
        wait_until(lambda: len(site.requests) > n + 100 and newest().count("/0") < 25, 90.0)
    finally:
        ends.set()
        for sender in senders:
            sender.join()
    crawl = project.end(process)
    assert crawl.returncode == 0
    assert set(answers) <= {0, 202, 403, 429}
    assert crawl.stats["crawlsched/pings/limited"] > 0
    assert len(set(newest())) > 20


def _is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_connections_that_say_nothing_or_half_of_it_shut_nobody_out(site, tmp_path):
    """Of 400 idle ones no more than 128 are kept, and all are ended in a while; pings are answered beside them.

    As they are beside ninety that announce a body and send half of it, small ones and large ones.
    """
    url = site.page("/", "<p>x</p>")
    project = _project(tmp_path, [url], seconds=60)
    process = project.start()
    address = project.receiver_address()
    ping = f"/indexnow?url={quote(url)}&key={KEY}"
    with ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(address)) for _ in range(400)]
        for connection in idle[1::2]:  # a request that never ends
            with suppress(OSError):
                connection.sendall(b"GET /indexnow?url=")
        assert _ask(address, "GET", ping)[0] == 202
        assert sum(map(_is_open, idle)) <= MOST_CONNECTIONS
        # The newest are kept: who comes late is not kept out by who came early.
        assert _is_open(idle[-1])
        assert not _is_open(idle[0])
        wait_until(lambda: not any(map(_is_open, idle)))
        for number in range(90):
            half = stack.enter_context(socket.create_connection(address, timeout=5))
            length = 1_000_000 if number % 3 == 0 else 100
            half.sendall(f"POST /indexnow HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{{".encode())
        assert [_ask(address, "POST", "/indexnow", _body([url]))[0] for _ in range(10)] == [202] * 10
    crawl = project.end(process, signal.SIGINT)
    assert crawl.stats["crawlsched/pings/hung_up"] >= len(idle) - MOST_CONNECTIONS
    assert crawl.stats["crawlsched/pings/urls"] == 11
    assert "Traceback" not in crawl.log


def test_where_pings_cannot_be_received_it_is_said_and_the_crawl_goes_on(site, tmp_path):
    """A port that is taken, another reactor than asyncio's: one line in the log."""
    url = site.page("/", "<p>x</p>")
    for settings, why in (
        ({"receiver": {"address": site.port, "key": KEY}}, f"127.0.0.1:{site.port} cannot be listened on"),
        (
            {"TWISTED_REACTOR": "twisted.internet.selectreactor.SelectReactor"},
            "CRAWLSCHED_RECEIVER needs Scrapy's asyncio reactor",
        ),
    ):
        crawl = _project(tmp_path, [url], visits=3, **settings).run()
        assert f"Pings are not received: {why}" in crawl.log
        assert crawl.stats["crawlsched/resolved"] >= 3
