"""The slots of a process that has several shards."""

import pytest

from crawlsched.content.reading import Body
from crawlsched.crawl.probes import Probe
from crawlsched.store import Outcome
from tests.integration.refresh.processes import HOSTS, process
from tests.parts import any_host, ask


def test_sitemaps_of_one_shard_keep_those_of_no_other_waiting(shared) -> None:
    """Twenty sitemaps of a shard are due, and one of each other: those are not asked for as the last."""
    with process(shared) as refresher:
        for host in HOSTS:
            sitemaps = [f"http://{host}/sitemap-{n}.xml" for n in range(20 if host == HOSTS[0] else 1)]
            refresher.polls.robots_seen(f"http://{host}/robots.txt", host, sitemaps, None, refresher.clock())
        refresher.sources.mark_due(refresher.clock())
        asked = [refresher.dispatcher.next_source(refresher.clock(), any_host) for _ in range(2 * len(HOSTS))]
        hosts = [source.host for _, source in asked[: len(HOSTS)]]
        assert sorted(hosts) == sorted(HOSTS)
        assert {source.host for _, source in asked[len(HOSTS) :]} == {HOSTS[0]}


def test_after_a_silence_a_process_pays_back_a_fifth_of_a_second(shared) -> None:
    """All do so at once when their server comes back, and together they may not be above the rate for long."""
    with process(shared) as refresher:
        begun = refresher.clock()
        refresher.start_slots()
        refresher.rate.slots.set_rate(50.0, begun)
        refresher.rate.slots.take(begun + 100.0)
        assert refresher.rate.slots.missed == pytest.approx((100.0 - 0.2) * 50.0, abs=2.0)


def test_a_page_whose_visit_is_taken_back_goes_next(shared) -> None:
    """As where another process joins, and the rate falls between two looks. In one pass each page still has its try."""
    with process(shared, one_pass=True) as refresher:
        for page in range(3):
            ask(refresher, f"http://{HOSTS[0]}/{page}")
        refresher.starts.has_ended = True
        grant, sent = refresher.sharing._membership.grant, list[str]()
        for is_granted in (True, False, True, False, False, True):
            visit, _ = refresher.dispatcher.next_page(refresher.clock(), any_host)
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
        assert refresher.dispatcher.next_page(refresher.clock(), any_host) is None


def test_a_second_fetch_that_is_taken_back_gives_its_page_no_second_try(shared) -> None:
    """What it was to teach is lost; the page itself was visited in this pass, and judged."""
    with process(shared, one_pass=True) as refresher:
        ask(refresher, f"http://{HOSTS[0]}/")
        refresher.starts.has_ended = True
        visit, _ = refresher.dispatcher.next_page(refresher.clock(), any_host)
        content = refresher.dispatcher.reading(visit, Body(b"<p>One</p>", "text/html", "utf-8", visit.url), None)[0]()
        visit.probe = Probe(visit.page, visit.host, content, False, False, refresher.clock())
        refresher.sharing._membership.grant.deadline = 0.0
        assert not refresher.may_send(visit.token)
        assert refresher.dispatcher.next_page(refresher.clock(), any_host) is None
