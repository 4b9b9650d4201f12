"""A collection of one process in SQLite becomes one that processes share, and the crawl goes on where it was."""

import subprocess
import sys
from socket import socket

from sqlalchemy import create_engine, text

from crawlsched.cli import main
from crawlsched.sharing import shard_of
from tests import children
from tests.crawling import Project
from tests.integration.addon.test_shared_collections import N_PAGES, SPIDER
from tests.many_hosts import HOSTS

N_SHARDS = 8


def test_a_crawled_collection_goes_on_in_shards(tmp_path, postgresql_url, capsys) -> None:
    """Copied to PostgreSQL and divided: no page is new to the next crawl, and each is visited after its last visit."""
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    site = children.start(sys.executable, "-m", "tests.many_hosts", port, tmp_path / "site.log", stdout=subprocess.PIPE)
    assert site.stdout.readline() == "serving\n"
    spider = SPIDER.format(host=HOSTS[0], port=port)
    project = Project(tmp_path, spider, ROBOTSTXT_OBEY=False, TEST_CLOSE_AFTER_RESOLVED=2 * N_PAGES)
    alone = project.run()
    assert alone.returncode == 0
    assert len(alone.outcomes()) == N_PAGES

    assert main(["db", "copy", project.database_url, postgresql_url]) == 0
    for words in (["4"], []):
        assert main(["db", "split", *words, "--database", postgresql_url]) == 0
    assert f"Crawls of it need CRAWLSCHED_SHARDS = {N_SHARDS}." in capsys.readouterr().out
    shared = project.run(CRAWLSCHED_DATABASE_URL=postgresql_url, CRAWLSCHED_SHARDS=N_SHARDS)
    assert shared.returncode == 0
    assert f"this process has {N_SHARDS} of its {N_SHARDS} shards" in shared.log

    engine = create_engine(postgresql_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        pages = connection.execute(text("SELECT shard, page, host, url FROM pages")).all()
        visits = connection.execute(
            text("SELECT shard, page, elapsed FROM observations WHERE status = 200 ORDER BY time")
        ).all()
    engine.dispose()
    assert len({page.url for page in pages}) == len(pages) == N_PAGES
    assert all(page.shard == shard_of(page.host, N_SHARDS) for page in pages)
    assert len(visits) > 3 * N_PAGES
    of_page = {(page.shard, page.page): [] for page in pages}
    for visit in visits:
        of_page[visit.shard, visit.page].append(visit.elapsed)
    # Only the first visit of all has none before it.
    assert all(elapsed[0] is None and None not in elapsed[1:] for elapsed in of_page.values())
