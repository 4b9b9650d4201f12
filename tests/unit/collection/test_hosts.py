"""Hosts: what they ask for is kept."""

from crawlsched.collection.hosts import Hosts


def test_a_crawl_delay_counts_from_the_last_request() -> None:
    """The host is free again one Crawl-delay after it was asked."""
    hosts = Hosts(["a"])
    hosts.set_crawl_delay(0, 5.0)
    assert hosts.free_at(0, now=100.0) == 100.0
    hosts.asked(0, now=100.0)
    assert hosts.free_at(0, now=101.0) == 105.0
    assert hosts.free_at(0, now=106.0) == 106.0


def test_the_longer_of_two_rests_counts() -> None:
    """A later, shorter Retry-After does not wake a host early."""
    hosts = Hosts(["a"])
    assert hosts.rest(0, until=200.0)
    assert not hosts.rest(0, until=150.0)
    assert hosts.free_at(0, now=100.0) == 200.0


def test_a_crawl_delay_that_disappears_is_forgotten() -> None:
    """A robots.txt without Crawl-delay takes the old one away."""
    hosts = Hosts(["a"])
    assert hosts.set_crawl_delay(0, 5.0)
    hosts.asked(0, now=100.0)
    assert hosts.set_crawl_delay(0, None)
    assert not hosts.set_crawl_delay(0, None)
    assert hosts.free_at(0, now=101.0) == 101.0
