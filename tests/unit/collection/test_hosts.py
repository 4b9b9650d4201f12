"""Hosts: what they ask for is kept."""

import numpy as np

from crawlsched.crawl.hosts import Hosts


def _hosts(*names: str, shares: dict[str, float]) -> Hosts:
    hosts = Hosts(shares)
    for name in names:
        hosts.number(name)
    return hosts


def test_a_crawl_delay_counts_from_the_last_request_until_it_disappears() -> None:
    """A robots.txt without Crawl-delay takes the old one away."""
    hosts = Hosts()
    assert hosts.set_crawl_delay(0, 5.0)
    hosts.asked(0, now=100.0)
    assert [hosts.free_at(0, now) for now in (101.0, 106.0)] == [105.0, 106.0]
    assert hosts.set_crawl_delay(0, None)
    assert not hosts.set_crawl_delay(0, None)
    assert hosts.free_at(0, now=101.0) == 101.0


def test_a_host_that_fails_rests_as_a_whole_and_is_then_asked_for_one_page() -> None:
    """What was asked before an error was heard of says nothing more; it rests for a 16th of the outage."""
    hosts = Hosts()
    for time in range(-12, 2, 2):
        hosts.failed(0, asked_at=float(time), now=time + 1.0, wait=10.0)
        assert hosts.free_at(0, time + 1.0) == time + 1.0  # some pages that cannot be served make no host fail
    hosts.failed(0, asked_at=2.0, now=3.0, wait=10.0)
    hosts.failed(0, asked_at=2.5, now=3.5, wait=10.0)
    assert hosts.free_at(0, 3.5) == 13.0
    hosts.asked(0, 13.0)
    assert hosts.free_at(0, 13.1) == 23.0  # nobody else goes while that one is under way
    hosts.failed(0, asked_at=13.0, now=14.0, wait=10.0)
    assert hosts.free_at(0, 14.0) == 24.0
    for now, rest in ((3600.0, 225.0), (90_000.0, 3600.0)):
        hosts.failed(0, asked_at=now, now=now, wait=10.0)
        assert abs(hosts.free_at(0, now) - now - rest) < 1.0
    hosts.asked(0, 100_000.0)
    hosts.answered(0)
    assert hosts.free_at(0, 100_001.0) == 100_001.0


def test_a_host_with_many_requests_in_the_air_rests_after_three_rounds_of_errors() -> None:
    """Six requests a round: one or two may be a moment's fault, and with the third it rests."""
    hosts = Hosts()
    for time in (0.0, 1.0, 2.0):
        assert hosts.free_at(0, time) == time
        for number in range(6):
            hosts.failed(0, asked_at=time, now=time + 0.9 + number / 100, wait=10.0)
    assert hosts.free_at(0, 3.0) == 12.9
    hosts.failed(0, asked_at=13.0, now=14.0, wait=10.0)
    assert hosts.free_at(0, 14.0) == 24.0


def test_a_rest_that_a_host_asked_for_outlasts_its_next_answer() -> None:
    """Retry-After is a word of its own; a later, shorter one does not wake the host early."""
    hosts = Hosts()
    assert hosts.rest(0, until=100.0)
    assert not hosts.rest(0, until=60.0)
    hosts.failed(0, asked_at=0.0, now=1.0, wait=10.0)
    hosts.answered(0)
    assert hosts.free_at(0, 50.0) == 100.0


def test_a_host_has_its_share_of_the_bandwidth_and_no_more() -> None:
    """Over many slots exactly its share, whatever the grid of slots; others are asked as often as there is time."""
    hosts = _hosts("a", "b", "c", shares={"a": 0.3, "*": 0.5})
    hosts.bandwidth = 10.0
    asked = {0: 0, 1: 0}
    for slot in range(1000):
        now = 100.0 + slot / 10.0
        for host in (0, 1):
            if hosts.free_at(host, now) <= now:
                hosts.asked(host, now)
                asked[host] += 1
    assert 299 <= asked[0] <= 302
    assert 499 <= asked[1] <= 502
    assert _hosts("a", shares={"b": 0.3}).free_at(0, 5.0) == 5.0


def test_a_host_is_asked_at_most_as_often_as_the_strictest_of_its_limits_allows() -> None:
    """Crawl-delay, a share of the bandwidth and the delay of all hosts; others are asked as often as anybody likes."""
    hosts = _hosts("a", "b", "c", shares={"b": 0.1})
    hosts.bandwidth = 10.0
    assert hosts.limits().tolist() == [np.inf, 1.0, np.inf]
    hosts.set_crawl_delay(0, 5.0)
    hosts.set_crawl_delay(1, 0.5)
    assert hosts.limits().tolist() == [0.2, 1.0, np.inf]
    hosts.least_delay = 2.0
    assert hosts.limits().tolist() == [0.2, 0.5, 0.5]
