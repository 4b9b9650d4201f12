"""A process joins others that crawl the same collection."""

import json
import os
import socket

import pytest

from crawlsched.exceptions import StoreError
from crawlsched.sharing import shard_of
from crawlsched.store import Outcome, Store
from tests.commands import run_here
from tests.integration.refresh.processes import HOSTS, N_SHARDS, look_until, process, row
from tests.parts import any_host, ask


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"crawl_value": "greedy"}, "CRAWLSCHED_CRAWL_VALUE = posterior .* here it is greedy; set it to the same"),
        ({"one_pass": True}, "CRAWLSCHED_ONE_PASS = False .* here it is True; set it to the same"),
    ],
)
def test_a_process_with_other_aims_does_not_join(shared, given, said):
    """One plan is made for all shards. When the others have ended it may crawl by its own."""
    with process(shared), process(shared), pytest.raises(StoreError, match=said), process(shared, **given):
        pass
    with process(shared, **given):
        pass


def test_a_process_that_joins_has_its_share_at_once(shared):
    """Of shards of one size it gets half, one after the other, without a rest between them."""
    with process(shared) as first:
        for url in [f"http://{host}/{page}" for host in HOSTS for page in range(100)]:
            ask(first, url)
        look_until(first, lambda: len(first.collection.shards.here) == N_SHARDS)
        with process(shared) as second:
            look_until(second, lambda: len(second.collection.shards.here) == N_SHARDS // 2, first)


def test_a_shard_that_is_given_away_begins_nothing_more(shared):
    """What is under way ends first, and the next process asks its hosts, also new ones, only then: not two at once."""
    with process(shared) as first:
        for url in [f"http://{host}/{page}" for host in HOSTS for page in range(20)]:
            ask(first, url)
        look_until(first, lambda: len(first.collection.shards.here) == N_SHARDS)
        names, shards = first.hosts.names, first.collection.shards

        def begun(n):
            """Begin visits that do not end; return their shards."""
            found = [next(first.dispatcher.next_pages(first.clock(), first.hosts.free_at), None) for _ in range(n)]
            return {shards.number_of(names[visit.host]) for visit, _ in found}

        assert begun(8) == set(range(N_SHARDS))
        with process(shared) as second:

            def given_away():
                return {n for n, row in shared.look().shards.items() if not row.ready} & shards.here.keys()

            look_until(second, given_away, first)
            leaving = given_away()
            found = next(host for n in range(99) if shard_of(host := f"found{n}.example", N_SHARDS) in leaving)
            ask(first, f"http://{found}/")
            others = begun(40)
            assert others
            assert not others & leaving


def test_the_limit_of_pages_is_that_of_the_collection(shared):
    """A process counts the pages of the others with its own, as far as they have told of them."""
    with process(shared, max_pages=50) as first:
        look_until(first, lambda: len(first.collection.shards.here) == N_SHARDS)
        for url in [f"http://{host}/{page}" for page in range(20) for host in HOSTS]:
            ask(first, url)
        assert first.collection.rules.n == 50
        with process(shared, max_pages=50) as second:
            limits = second.collection.rules
            look_until(second, lambda: limits.n > 0 and limits.n + limits.n_elsewhere == 50, first)
            assert limits.n < 50
            assert not limits.takes(0)


def test_each_shard_has_a_row(shared, tmp_path):
    """Of a process that lives; what waits for a shard is counted, and an owner that is gone is none."""
    command = "db", "shards", "--database", shared.database.text, "--collection", shared.name
    with process(shared) as refresher:
        for n, host in enumerate(HOSTS[:3], 1):
            for page in range(10 * n):
                ask(refresher, f"http://{host}/{page}")
        look_until(refresher, lambda: sum(row.n_pages for row in shared.look().shards.values()) == 60)
        report = json.loads(run_here(tmp_path, *command, "--json").stdout)
        said = run_here(tmp_path, *command).stdout
    me = f"{socket.gethostname()}:{os.getpid()}"
    assert [(r["shard"], r["owner"], r["pages"]) for r in report["shards"]] == [
        *((shard, me, 10 * (shard + 1)) for shard in range(3)),
        (3, me, 0),
    ]
    assert f"{N_SHARDS} shards on 1 process; 1000/s for all" in said

    shared.hand_over([row(f"http://{HOSTS[3]}/", 1)])
    ended = json.loads(run_here(tmp_path, *command, "--json").stdout)
    assert {r["owner"] for r in ended["shards"]} == {None}
    assert [r["waiting"] for r in ended["shards"]] == [0, 0, 0, 1]


def test_a_collection_of_one_process_has_no_shards(database, shared, tmp_path):
    """It says so, and how to make one that has; of a single shard there is no table."""
    Store.open(database.text, "alone").close()
    said = run_here(tmp_path, "db", "shards", "--database", database.text, "--collection", "alone").stdout
    assert said == "alone: no shards; one process crawls it (CRAWLSCHED_SHARDS lets several share it)\n"
    named = "--collection", shared.name, "--shard", "1"
    refused = run_here(tmp_path, "db", "shards", "--database", database.text, *named)
    assert refused.returncode == 1
    assert "`crawlsched db shards` is about all shards" in refused.stderr


def test_a_page_whose_visit_is_taken_back_goes_next(shared):
    """As where another process joins, and the rate falls between two looks. In one pass each page still has its try."""
    with process(shared, one_pass=True) as refresher:
        for page in range(3):
            ask(refresher, f"http://{HOSTS[0]}/{page}")
        refresher.starts.has_ended = True
        grant, sent = refresher.sharing._membership.grant, list[str]()
        for is_granted in (True, False, True, False, False, True):
            visit, _ = next(refresher.dispatcher.next_pages(refresher.clock(), any_host), None)
            deadline = grant.deadline
            if not is_granted:
                grant.deadline = 0.0
            assert refresher.may_send(visit.token) is is_granted
            grant.deadline = deadline
            sent.append(visit.url)
            if is_granted:
                refresher.visit_ends.resolve(visit, Outcome.REFUSED, refresher.clock())
        assert sent[1] == sent[2]
        assert sent[3] == sent[4] == sent[5]
        assert len(set(sent)) == 3
        assert next(refresher.dispatcher.next_pages(refresher.clock(), any_host), None) is None
