"""A collection is divided among more shards, and nothing that was learned of its pages is lost."""

import json

import pytest
from sqlalchemy import text

from crawlsched.crawl.hosts import Hosts
from crawlsched.exceptions import CollectionInUse, StoreError
from crawlsched.planner import Plan
from crawlsched.sharing import Renewal, shard_of
from crawlsched.store import Batch, Source, schema
from crawlsched.store.database import Database
from crawlsched.store.lease import me
from crawlsched.store.members import SharedCollection
from crawlsched.store.splitting import split
from tests.commands import said
from tests.databases import all_rows
from tests.integration.refresh.processes import row as handed_over
from tests.integration.store.conftest import HOSTS, N_PAGES
from tests.rows import NOW, new_page

# Of a page, each table and what names its rows beside the page.
OF_PAGES = {
    **{"pages": [], "page_traces": [], "page_texts": [], "announcements": ["source"]},
    **{"further_sources": ["source"], "observations": ["id"], "changes": ["id"]},
}


def known_of_pages(rows: dict[str, list[dict]]) -> dict[str, dict]:
    """All that is known, by URL, host and name: without the numbers of shards, collections, pages."""
    urls = {(row["shard"], row["page"]): row["url"] for row in rows["pages"]}
    hosts = {row["url"]: row["host"] for row in rows["pages"]}
    known: dict[str, dict] = {url: {} for url in urls.values()}
    numbers = {"shard", "collection", "page"}
    for table, names in OF_PAGES.items():
        for row in rows[table]:
            url = urls[row["shard"], row["page"]]
            name = (table, *(row[one] for one in names))
            assert name not in known[url]
            known[url][name] = {column: value for column, value in row.items() if column not in numbers}
    templates = {(row["shard"], row["digest"]): row["data"] for row in rows["request_templates"]}
    for row in rows["pages"]:
        known[row["url"]]["template"] = templates[row["shard"], row["template"]]
    assert set(hosts.values()) == set(HOSTS)
    return known


def once(rows: list[dict], *names: str) -> dict[tuple, dict]:
    """Rows that are there once, by name, without where they are."""
    found = {tuple(row[name] for name in names): row for row in rows}
    assert len(found) == len(rows)
    return {name: {k: v for k, v in row.items() if k not in ("shard", "collection")} for name, row in found.items()}


def test_all_that_was_learned_goes_with_each_page(crawled_url, postgresql_url):
    """From SQLite into four shards, and eight: state, visits, signals, texts; each host in its shard."""
    before = all_rows(crawled_url)
    n_plans = len(before["plans"])
    plan = json.loads(before["plans"][-1]["data"])
    del plan["page_counts"]
    said("db", "copy", crawled_url, postgresql_url)
    for n_shards, words in ((4, ["4"]), (8, [])):
        divided = said("db", "split", *words, "--database", postgresql_url)
        assert f"{N_PAGES - 1} pages of" in divided
        assert f"in {n_shards} shards now" in divided
        assert "3/s for all" in divided
        assert f"Crawls of it need CRAWLSCHED_SHARDS = {n_shards}." in divided
        after = all_rows(postgresql_url)
        assert known_of_pages(after) == known_of_pages(before)
        for table, names in (("hosts", ["host"]), ("noise_masks", ["template"])):
            assert once(after[table], *names) == once(before[table], *names)
        of_hosts = [[row for row in rows["sources"] if row["kind"] != "ping"] for rows in (before, after)]
        assert once(of_hosts[1], "source") == once(of_hosts[0], "source")
        everywhere = range(n_shards)
        for table, wanted in (("tombstones", 2), ("commands", 1), ("plans", n_plans), ("leases", 1)):
            found = [row["shard"] for row in after[table]]
            assert sorted(found) == sorted([*everywhere] * wanted), table
        assert sorted(row["shard"] for row in after["sources"] if row["kind"] == "ping") == [*everywhere]
        for row in [*after["pages"], *after["hosts"]]:
            assert row["shard"] == shard_of(row["host"], n_shards)
        for row in after["noise_masks"]:
            assert row["shard"] == shard_of(row["template"].strip("/").partition("/")[0].split()[0], n_shards)
        assert {row["url"]: row["page"] for row in after["pages"]} == {
            row["url"]: row["page"] for row in before["pages"]
        }
        pages = {shard: [row["page"] for row in after["pages"] if row["shard"] == shard] for shard in everywhere}
        assert all(row["pages_given"] >= N_PAGES - 1 for row in after["collections"])
        assert [row["n_pages"] for row in sorted(after["leases"], key=lambda r: r["shard"])] == [
            len(pages[shard]) for shard in everywhere
        ]
        assert {row["status"] for row in after["leases"]} == {"{}"}
        plans = [json.loads(row["data"]) for row in after["plans"]]
        assert all(one == plan for one in plans)
        assert all(Plan.from_dict(one, Hosts().number).rates_id == plan["rates_id"] for one in plans)


@pytest.fixture
def shared(postgresql_url):
    schema.upgrade(postgresql_url)
    database = Database(postgresql_url, answer_within=None)
    yield SharedCollection.open(database, "news", 2, 10.0)
    database.close()


def test_what_waits_for_a_shard_waits_for_the_right_one(shared):
    """What was handed over and not taken in goes on to where its host is now; the rate and a pause stay."""
    rows = [handed_over(f"http://{host}/", number) for number, host in enumerate(HOSTS)]
    shared.hand_over([row._replace(shard=shard_of(HOSTS[row.number], 2)) for row in rows])
    shared.set_rate(7.0)
    since = shared.pause(paused=True)
    assert list(split(shared.database, "news", 16).values())[:3] == [2, 16, 7.0]
    now = SharedCollection.open(shared.database, "news", 16)
    assert (now.n_shards, now.look().paused_since) == (16, since)
    found = now.received(range(16), 100)
    assert {row.data["page"]["url"]: row.shard for row in found} == {f"http://{h}/": shard_of(h, 16) for h in HOSTS}
    with pytest.raises(StoreError, match=r"was divided into 16 shards, and this process knows of 2; start it again"):
        shared.look()


def test_pages_whose_source_is_elsewhere_are_pages_that_nobody_announces(shared):
    """A sitemap of one shard's host does not speak for pages of another: they are judged by their own changes."""
    here, there = (next(h for h in HOSTS if shard_of(h, 4) == shard) for shard in (0, 2))
    store = shared.store(0)
    store.save(
        Batch(
            new_pages={n: new_page(n, f"http://{host}/") for n, host in enumerate([here, there])},
            sources={0: Source(0, "sitemap", f"http://{here}/sitemap.xml", here)},
            announcements={(0, 0): (NOW, 1), (1, 0): (NOW, 1)},
        )
    )
    with shared.database.writing() as connection:
        connection.execute(text("UPDATE pages SET source = 0, n_signals = 2, signalled_since = 5"))
    split(shared.database, "news", 4)
    after = all_rows(shared.database.text)
    assert {row["host"]: (row["source"], row["n_signals"], row["signalled_since"]) for row in after["pages"]} == {
        here: (0, 2, 5.0),
        there: (-1, 0, None),
    }
    assert [(row["shard"], row["page"]) for row in after["announcements"]] == [(0, 0)]


def test_what_cannot_be_divided_is_refused_in_a_sentence(shared, crawled_url):
    """While somebody crawls, on SQLite, into a number that is none; and nothing is changed."""
    shared.renew(Renewal("me", 1, 0.0, 5.0, (0,)), me("spider"), {})
    before = all_rows(shared.database.text)
    with pytest.raises(
        CollectionInUse, match=r"'news' of .* is being crawled \(pid \d+ on '.*'\); end all its crawls first"
    ):
        split(shared.database, "news")
    assert all_rows(shared.database.text) == before
    shared.leave("me")
    for n in (1, 2, 3, 8192):
        with pytest.raises(StoreError, match=rf"into {n}: it has 2 shards, and takes a larger power of two"):
            split(shared.database, "news", n)
    with pytest.raises(StoreError, match="has no collection 'olds'"):
        split(shared.database, "olds")
    sqlite = Database(crawled_url)
    with pytest.raises(StoreError, match="copy it to PostgreSQL first, with `crawlsched db copy`"):
        split(sqlite, "news", 4)
    sqlite.close()
