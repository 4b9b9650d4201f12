"""The slots of a process that has several shards."""

import pytest

from tests.integration.refresh.processes import HOSTS, process


def test_sitemaps_of_one_shard_keep_those_of_no_other_waiting(shared) -> None:
    """Twenty sitemaps of a shard are due, and one of each other: those are not asked for as the last."""
    with process(shared) as refresher:
        for host in HOSTS:
            sitemaps = [f"http://{host}/sitemap-{n}.xml" for n in range(20 if host == HOSTS[0] else 1)]
            refresher.robots_seen(f"http://{host}/robots.txt", host, sitemaps, None, refresher.clock())
        for part in refresher.parts:
            part.poll_sources(refresher.clock())
        asked = [refresher.next_source(refresher.clock(), lambda host, now: now) for _ in range(2 * len(HOSTS))]
        hosts = [url.split("/")[2] for _, url in asked[: len(HOSTS)]]
        assert sorted(hosts) == sorted(HOSTS)
        assert {url.split("/")[2] for _, url in asked[len(HOSTS) :]} == {HOSTS[0]}


def test_after_a_silence_a_process_pays_back_a_fifth_of_a_second(shared) -> None:
    """All do so at once when their server comes back, and together they may not be above the rate for long."""
    with process(shared) as refresher:
        begun = refresher.clock()
        refresher.start_slots()
        refresher.slots.set_rate(50.0, begun)
        refresher.slots.take(begun + 100.0)
        assert refresher.slots.missed == pytest.approx((100.0 - 0.2) * 50.0, abs=2.0)
