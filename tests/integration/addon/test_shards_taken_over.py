"""Crawls that take shards over from each other: what was begun before, and who is logged in."""

import asyncio
import signal
import time

import pytest
from aiohttp import web

from crawlsched.crawl.shared.membership import Membership
from crawlsched.sharing import shard_of
from crawlsched.store import schema
from crawlsched.store.database import Database
from crawlsched.store.lease import me
from crawlsched.store.members import SharedCollection, new_token
from tests.crawling import Project, spider
from tests.site import Site, html
from tests.waiting import wait_until

N_SHARDS = 2
# A host of each shard.
HOSTS = tuple(
    next(host for n in range(1, 250) if shard_of(host := f"127.0.3.{n}", N_SHARDS) == shard)
    for shard in range(N_SHARDS)
)


@pytest.fixture
def site():
    with Site(HOSTS) as site:
        yield site


@pytest.fixture
def shared(postgresql_url):
    schema.upgrade(postgresql_url)
    database = Database(postgresql_url)
    yield SharedCollection.open(database, "test", N_SHARDS, 20.0)
    database.close()


def project(folder, shared, name: str, spider) -> Project:
    (folder / name).mkdir()
    settings = {"database_url": shared.database.text, "shards": N_SHARDS, "ROBOTSTXT_OBEY": False, "USER_AGENT": name}
    return Project(folder / name, spider, bandwidth="20/s", seconds=0, **settings)


SLOW = """
from crawlsched.addon.lifetime import wait


class AsksForAToken:
    async def process_request(self, request):
        print("BEGUN", request.url, flush=True)
        await wait(0.5)
"""
WITH_IT = 'custom_settings = {"DOWNLOADER_MIDDLEWARES": {AsksForAToken: 543}}'


def test_who_was_stopped_in_a_request_sends_nothing_that_is_anothers_by_then(tmp_path, site, shared):
    """Half a second of another component lies between the slot of a request and the network; there it is stopped."""
    urls = [site.page(f"/{n}", "<p>One</p>") for n in range(40)] + [site.url(f"/{n}", HOSTS[1]) for n in range(40)]
    crawl = project(tmp_path, shared, "stopped", spider(urls, before=SLOW, also=WITH_IT))
    process = crawl.start()
    wait_until(lambda: len(site.requests) > 5)
    process.send_signal(signal.SIGSTOP)
    heir = Membership(shared, new_token(), me("spider"))
    wait_until(lambda: heir.renew() and len(heir.mine()) == N_SHARDS)
    n_begun, n_asked = crawl.log().count("BEGUN"), len(site.requests)
    assert n_begun > n_asked  # some requests were begun and are not sent
    process.send_signal(signal.SIGCONT)
    ends = time.monotonic() + 1.5
    while time.monotonic() < ends:
        heir.renew()
        time.sleep(0.3)
    assert "was taken over by another process" in crawl.log()
    assert len(site.requests) == n_asked
    # What it gave up is asked for by who has the shard next, and that is it again.
    shared.leave(heir.token)
    wait_until(lambda: len({(headers["host"], path) for path, headers in site.requests}) == len(urls))
    assert crawl.end(process).returncode == 0


def test_who_is_told_to_end_gives_its_shards_back_before_the_last_answer_has_come(tmp_path, site, shared):
    """Scrapy waits for what is under way, which may be minutes, and nobody would crawl the shards meanwhile."""

    async def slow(request):
        await asyncio.sleep(60.0)
        return web.Response(text="late")

    urls = [site.page("/slow", slow), site.url("/slow", HOSTS[1])]
    crawl = project(tmp_path, shared, "ending", urls)
    process = crawl.start()
    wait_until(lambda: len(site.visits("/slow")) == len(HOSTS))
    heir = Membership(shared, new_token(), me("spider"))
    heir.start()
    process.terminate()
    wait_until(lambda: len(heir.mine()) == N_SHARDS)
    assert process.poll() is None
    crawl.kill(process)
    heir.end(5.0)


LOGS_IN = """
async def start(self):
    for url in self.start_urls:
        yield scrapy.Request(url, self.logged_in, method="POST", body=self.settings["USER_AGENT"])

def logged_in(self, response):
    for page in range(40):
        yield response.follow(f"/{page}")
"""


def test_who_takes_a_shard_over_is_logged_in_since_its_own_start(tmp_path, site, shared):
    """Each process makes the log-ins of all hosts when it starts, before it crawls any page."""

    async def login(request):
        answer = web.Response(text="welcome")
        answer.set_cookie("session", await request.text())
        return answer

    def page(request):
        known = request.cookies.get("session") == request.headers["User-Agent"]
        return html("<p>One</p>", status=200 if known else 403)

    site.answers["/login"], site.default = login, page
    logs_in = spider([site.url("/login", host) for host in HOSTS], also=LOGS_IN)
    crawls = {name: project(tmp_path, shared, name, logs_in) for name in ("first", "second")}
    processes = {}

    def asked(is_login):
        found = [(h["user-agent"], h["host"].split(":")[0]) for p, h in site.requests if (p == "/login") == is_login]
        return sorted(set(found)) if not is_login else sorted(found)

    for name, crawl in crawls.items():
        processes[name] = crawl.start()
        wait_until(lambda name=name: any(who == name for who, _ in asked(False)))
    seen = shared.look()
    (lost,) = [s for s, row in seen.shards.items() if seen.members[row.member].pid == processes["first"].pid]
    assert ("second", HOSTS[lost]) not in asked(False)
    crawls["first"].kill(processes["first"])
    wait_until(lambda: ("second", HOSTS[lost]) in asked(False))
    assert asked(True) == sorted((name, host) for name in crawls for host in HOSTS)
    for name in crawls:
        mine = [path for path, headers in site.requests if headers["user-agent"] == name]
        assert mine[: len(HOSTS)] == ["/login"] * len(HOSTS)
    for path, headers in site.requests:
        assert path == "/login" or headers["cookie"] == f"session={headers['user-agent']}"
    assert crawls["second"].end(processes["second"]).returncode == 0
