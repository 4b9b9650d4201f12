"""What is found for another shard arrives there once, whatever is lost on the way."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import text

from crawlsched.crawl.page_requests import FOUND, AdmissionResult
from crawlsched.crawl.shared.membership import Membership
from crawlsched.exceptions import StoreError
from crawlsched.sharing import Renewal, shard_of
from crawlsched.store import host_of
from crawlsched.store.lease import me
from crawlsched.store.members import new_token
from tests.integration.refresh.processes import (
    HOSTS,
    N_SHARDS,
    asked_of,
    inbox,
    look_until,
    pages,
    process,
    renamed,
    row,
    take_away,
    visit,
)
from tests.parts import ask, asked


def test_a_shard_that_is_given_back_at_once_has_taken_in_what_waited(shared):
    """Where shards go from hand to hand faster than inboxes are read, a page would wait for as long as they do."""
    urls = [f"http://{host}/{page}" for host in HOSTS for page in range(20)]
    shared.hand_over([row(url, number) for number, url in enumerate(urls)])
    with process(shared):
        pass
    assert pages(shared) == sorted(((shard_of(host_of(url), N_SHARDS), url) for url in urls), key=lambda row: row[1])
    assert inbox(shared) == []


def test_a_row_that_cannot_be_taken_in_keeps_nothing_from_those_behind_it(shared, caplog):
    """What another version or a fault has left is said once and deleted."""
    good, url = asked(f"http://{HOSTS[1]}/good").to_dict(), f"http://{HOSTS[1]}/x"
    others = {"template": [1]}, {"request_fingerprint": "xyz"}
    damaged = [{}, *({**good, "page": {**good["page"], **other}} for other in others)]
    rows = [row(url, number, data=data) for number, data in enumerate(damaged)]
    rows += [row(url, 50, "what is this"), row(url, 51, FOUND, {"url": 1}), row(url, 52, data=good)]
    with process(shared) as refresher:
        shared.hand_over(rows)
        look_until(refresher, lambda: not inbox(shared))
        assert refresher.stats["crawlsched/failures"] == len(rows) - 1
        assert refresher.stats["crawlsched/handed_over/received"] == 1
    assert pages(shared) == [(1, f"http://{HOSTS[1]}/good")]
    assert "What was handed over (what is this) is damaged and left out" in caplog.text


def test_what_is_taken_in_together_is_what_each_row_would_have_made(shared):
    """A URL that comes again is one page, whatever its data, and what a signal announces came before it."""
    url, other = f"http://{HOSTS[1]}/twice", f"http://{HOSTS[1]}/announced"
    form = asked(url, callback="other").to_dict()
    with process(shared) as refresher:
        rows = [row(url, 1), row(url, 2), row(url, 3, data=form), row(other, 4)]
        rows += [row(other, 5, "signal", {"urls": [other], "source": "desk"})]
        rows += [row(f"http://{HOSTS[1]}/{number}", 10 + number) for number in range(100)]
        shared.hand_over(rows)
        look_until(refresher, lambda: not inbox(shared))
        assert refresher.stats["crawlsched/pages/found"] == 102
        assert refresher.stats["crawlsched/known"] == 2
        assert refresher.stats["crawlsched/change_signals/taken"] == 1
    found = [url for _, url in pages(shared)]
    assert (len(found), found.count(url), found.count(other)) == (102, 1, 1)


def test_a_row_is_taken_in_once_while_its_batch_is_on_its_way(shared):
    """It is read again until it is deleted; a database that does not take the batch makes no second signal of it."""
    url = f"http://{HOSTS[2]}/page"
    with process(shared) as refresher:
        ask(refresher, url)
        refresher.flush(refresher.clock())
        shared.hand_over([row(url, 1, "signal", {"urls": [url], "source": "desk"})])
        with shared.database.writing() as connection:
            # Whoever deletes the row waits for this transaction.
            connection.execute(text("SELECT * FROM inbox WHERE collection = :n FOR UPDATE"), {"n": shared.number})
            look_until(refresher, lambda: refresher.stats["crawlsched/handed_over/received"])
            until = time.monotonic() + 1.5
            look_until(refresher, lambda: time.monotonic() > until)
        look_until(refresher, lambda: not inbox(shared))
        # A sender that has lost the answer writes its batch once more.
        shared.hand_over([row(url, 1, "signal", {"urls": [url], "source": "desk"})])
        look_until(refresher, lambda: not inbox(shared))
        assert refresher.stats["crawlsched/handed_over/received"] == 1
        assert refresher.stats["crawlsched/change_signals/received"] == 1


def test_what_a_visit_finds_for_another_shard_of_its_process_goes_with_the_visit(shared):
    """Both are written in one transaction: a crash keeps both, or neither, and the visit is made again."""
    here, there = f"http://{HOSTS[0]}/", f"http://{HOSTS[1]}/found"
    with process(shared) as refresher:
        begun = visit(refresher, here)
        assert ask(refresher, there, begun.page) is AdmissionResult.NEW
        assert ask(refresher, f"http://{HOSTS[0]}/own", begun.page) is AdmissionResult.NEW
        look_until(refresher, lambda: (1, there) in pages(shared))
        assert len(asked_of(shared, "SELECT DISTINCT CAST(xmin AS text) FROM pages WHERE collection = :n")) == 1
        assert ask(refresher, there, begun.page) is AdmissionResult.KNOWN
        assert refresher.stats["crawlsched/handed_over"] == 0


def test_what_a_visit_finds_for_a_shard_that_is_lost_is_handed_on(shared):
    """The visit is written down, so nobody would find the link again; whoever has the shard next gets it."""
    here, there = f"http://{HOSTS[0]}/", f"http://{HOSTS[1]}/found"
    with process(shared) as refresher:
        begun = visit(refresher, here)
        assert ask(refresher, there, begun.page) is AdmissionResult.NEW
        take_away(shared, 1)
        look_until(refresher, lambda: (1, there) in pages(shared))
        assert (0, here) in pages(shared)
        assert refresher.stats["crawlsched/shards/lost"] == 1


@contextmanager
def another(shared, *shards: int) -> Iterator[None]:
    """A process that has shards, whose word holds for an hour, and that does nothing with them."""
    token = new_token()
    shared.renew(Renewal(token, 1, 0.0, 1.0, shards), {**me("spider"), "machine": "elsewhere"}, {})
    asked_of(shared, "UPDATE members SET expires_at = expires_at + 3600 WHERE token = :token", token=token)
    yield
    shared.leave(token)


def test_the_same_link_on_many_pages_is_handed_over_once(shared):
    """Scrapy puts the page that it stands on and that page's depth into each request; they say nothing new."""
    with another(shared, 1), process(shared) as refresher:
        begun = visit(refresher, f"http://{HOSTS[0]}/")
        for page in range(20):
            places = {"headers": [["Referer", f"http://{HOSTS[0]}/{page}"]], "meta": {"depth": page, "link_text": "x"}}
            ask(refresher, f"http://{HOSTS[1]}/menu", begun.page, **places)
        assert refresher.stats["crawlsched/handed_over"] == 1
        assert (
            ask(refresher, f"http://{HOSTS[1]}/menu", begun.page, headers=[["Accept-Language", "de"]])
            is AdmissionResult.ELSEWHERE
        )
        look_until(refresher, lambda: len(inbox(shared)) == 2)


def test_what_is_lost_with_a_shard_is_handed_over_again_when_it_is_found_again(shared):
    """The row was in a batch of the shard; another process may have claimed it before the batch was written."""
    here, there = f"http://{HOSTS[0]}/", f"http://{HOSTS[1]}/found"
    with another(shared, 1, 2, 3), process(shared) as refresher:
        begun = visit(refresher, here)
        assert ask(refresher, there, begun.page) is AdmissionResult.ELSEWHERE
        assert ask(refresher, there, begun.page) is AdmissionResult.KNOWN
        take_away(shared, 0)
        look_until(refresher, lambda: refresher.stats["crawlsched/shards/lost"])
        look_until(refresher, lambda: len(refresher.collection.shards.here) == 1)
        assert 1 not in {shard for shard, _ in inbox(shared)}
        again = visit(refresher, here)
        assert ask(refresher, there, again.page) is AdmissionResult.ELSEWHERE
        look_until(refresher, lambda: 1 in {shard for shard, _ in inbox(shared)})


def test_a_shard_that_could_not_be_given_back_is_with_the_next_renewal(shared, member):
    """A database that is away at that moment would leave it to a process that lives and does not crawl it."""
    member.renew()
    assert set(member.mine()) == {0, 1, 2, 3}
    epoch = member.mine()[2]
    member.stops(2, epoch)
    member.renew()
    assert member.owned[2] == epoch  # it is being written down
    member.is_done_with(2)
    member.renew()
    assert shared.look().shards[2].member is None


def test_a_process_that_hangs_leaves_its_shards_to_others(shared):
    """Its renewals come from a thread of their own, and would keep hosts that nobody crawls for as long as it hangs."""
    now = [100.0]
    member = Membership(shared, new_token(), me("spider"), clock=lambda: now[0])
    member.renew()
    now[0] += 1000.0  # it loads
    member.renew()
    member.fares({"shards": 4}, dict)
    now[0] += 119.0
    member.renew()
    now[0] += 2.0
    with pytest.raises(StoreError, match="The crawl has done nothing for 120 s"):
        member.renew()
    member.fares({"shards": 4}, dict)
    member.renew()
    assert set(member.mine()) == {0, 1, 2, 3}
    now[0] += 1000.0
    member.leaves()
    member.renew()  # it writes down what it has
    shared.leave(member.token)


def test_a_spider_that_begins_with_very_many_pages_delays_no_renewal(shared, member, caplog):
    """What it hands over goes some at a time, in its order; while the database cannot take it, it waits at no cost.

    That is said once.
    """
    for number in range(5_000):
        member.hand_over(row(f"http://{HOSTS[0]}/{number}", number))
    with renamed(shared, "inbox"):
        member.renew()
        member.renew()
        assert set(member.mine()) == {0, 1, 2, 3}
    assert caplog.text.count("Rows for the other processes cannot be written, which is tried again") == 1
    counts = []
    while len(counts) < 3:
        member.renew()
        counts.append(len(inbox(shared)))
    assert counts == [2_000, 4_000, 5_000]


def test_nobody_crawls_on_while_too_much_waits_to_be_taken_in(shared):
    """Inboxes would grow without end where links are found faster than they are taken in."""
    many = """INSERT INTO inbox SELECT 2, :n, 'many', n, 'signal', '{"urls": [], "source": "x"}', n
        FROM generate_series(1, 101000) AS n"""

    with process(shared) as refresher:
        ask(refresher, f"http://{HOSTS[0]}/")
        asked_of(shared, many)
        look_until(refresher, lambda: refresher.must_wait(refresher.clock()))
        assert refresher.status(refresher.clock() + 10_000.0)["silence"] == 0.0
        asked_of(shared, "DELETE FROM inbox WHERE collection = :n AND number > 50000")
        look_until(refresher, lambda: not refresher.must_wait(refresher.clock()))
        asked_of(shared, "DELETE FROM inbox WHERE collection = :n")
    # What waits for shards that nobody has loaded keeps nobody from crawling.
    asked_of(shared, many)
    assert not shared.waits(100_000)


def test_a_process_that_cannot_begin_keeps_no_shard(shared):
    """Its thread would renew for as long as the process lives, which may have other things to do."""
    with renamed(shared, "sources"), pytest.raises(StoreError), process(shared):
        pytest.fail("It has begun.")
    seen = shared.look()
    assert not any(map(seen.is_alive, seen.members))
    assert {row.member for row in seen.shards.values()} == {None}
    with process(shared) as refresher:
        assert len(refresher.collection.shards.here) == N_SHARDS


def test_a_host_has_its_share_of_the_bandwidth_of_all_shards(shared):
    """CRAWLSCHED_HOST_SHARES counts in a shared collection too, of the rate of all processes together."""
    with process(shared, host_shares=((HOSTS[0], 0.01),)) as refresher:
        refresher.sharing.look(refresher.clock())
        host, now = refresher.hosts.number(HOSTS[0]), refresher.clock()
        refresher.hosts.asked(host, now)
        rate = refresher.sharing.shared.look().rate
        assert refresher.hosts.free_at(host, now) == pytest.approx(now + 100.0 / rate)
