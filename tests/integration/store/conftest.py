"""An empty collection, on SQLite and on PostgreSQL."""

import shutil
from contextlib import ExitStack, closing

import pytest

from crawlsched.pages.pages import counted
from crawlsched.store import Batch, Host, KeptText, Source, Store, commands
from crawlsched.store.batch import ChangeRow
from crawlsched.store.records import last_plan, save_plan
from tests import simulated
from tests.rows import NOW

HOSTS = [f"h{number}.example" for number in range(12)]
N_PAGES = 120


@pytest.fixture
def store(database_url):
    with closing(Store.open(database_url, "spider", upgrade=True)) as opened:
        yield opened


@pytest.fixture
def sqlite_store(sqlite_url):
    with closing(Store.open(sqlite_url, "spider")) as opened:
        yield opened


@pytest.fixture
def beside(database_url):
    """Open the database of `store` once more, as another process does."""
    with ExitStack() as stack:
        yield lambda name="spider", **more: stack.enter_context(closing(Store.open(database_url, name, **more)))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """The folder of a collection in SQLite, crawled for three simulated days, with something to keep of each kind."""
    folder = tmp_path_factory.mktemp("crawled")
    store = Store.open(f"sqlite:///{folder}/crawlsched.db", "news")
    done = simulated.crawl(store, NOW, n_pages=N_PAGES, hosts=HOSTS)
    lease = store.take_lease("news", NOW)
    store.save(
        Batch(
            since=NOW,
            texts={page: KeptText(NOW, f"text {page}".encode()) for page in range(0, N_PAGES, 3)},
            traces={
                page: dict.fromkeys(("history", "text_sketch", "block_sketch"), b"%d" % page) for page in range(50)
            },
            contents={page: {"template": b"t%d" % (page % 4), "etag": f'"{page}"'} for page in range(N_PAGES)},
            templates={b"t%d" % number: {"cb_kwargs": {"n": number}} for number in range(4)},
            masks={f"{host}/*": {"of": host} for host in HOSTS}
            | {f"//{host} blocks/4": {"site": host} for host in HOSTS},
            hosts={host: Host(host, NOW + 5.0, 1.5, NOW, {"validators": {"n": 3}}) for host in HOSTS},
            sources={
                12: Source(12, "ping", "desk", ""),
                13: Source(13, "robots", "http://h3.example/robots.txt", "h3.example", 3),
            },
            further_sources={(page, 12): (1, 4, NOW - 9.0, 4, NOW - 8.0, 2.0, 1.0) for page in range(0, N_PAGES, 5)},
            changes=[ChangeRow(number, number * 7 % N_PAGES, NOW + number, "changed", None) for number in range(40)],
        )
    )
    store.forgetting.forget("url", f"http://{HOSTS[5]}/page/5", NOW)
    store.forgetting.forget("pattern", "http://*/old", NOW)
    save_plan(store, {**last_plan(store), "page_counts": counted(done.planner.pages)}, NOW)
    commands.send(store, "recrawl", {"urls": ["http://h1.example/page/1"]}, NOW)
    lease.heartbeat(NOW, {"bandwidth": 3.0})
    lease.release(NOW)
    store.close()
    return folder


@pytest.fixture
def crawled_url(crawled, tmp_path):
    """A copy of it of the test's own."""
    return f"sqlite:///{shutil.copytree(crawled, tmp_path / 'crawled')}/crawlsched.db"
