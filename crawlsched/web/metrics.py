"""Metrics in the text format of Prometheus, by its own client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from crawlsched.exceptions import CrawlschedError
from crawlsched.web.vitals import Vitals, checks

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["CONTENT_TYPE", "metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics(seen: Vitals, collection: str) -> bytes:
    """Return what is known, one sample for each collection.

    Raises
    ------
    CrawlschedError
        If prometheus-client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry, generate_latest
        from prometheus_client.registry import Collector
    except ImportError:
        raise CrawlschedError("Metrics need prometheus-client: pip install 'crawlsched[metrics]'.") from None

    class Once(Collector):
        def collect(self) -> Iterator[Metric]:
            yield from _metrics(seen, collection)

    registry = CollectorRegistry()
    registry.register(Once())
    return generate_latest(registry)


def _metrics(seen: Vitals, collection: str) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    status, sample = seen.status, seen.sample

    def gauge(name: str, meaning: str, value: float | None) -> Iterator[Metric]:
        if value is not None:
            family = GaugeMetricFamily(f"crawlsched_{name}", meaning, labels=["collection"])
            family.add_metric([collection], float(value))
            yield family

    def counter(name: str, meaning: str, label: str, values: dict[str, float]) -> Metric:
        family = CounterMetricFamily(f"crawlsched_{name}", meaning, labels=["collection", label])
        for key, value in sorted(values.items()):
            family.add_metric([collection, key], float(value))
        return family

    yield from gauge("up", "1 while a crawl owns the collection.", float(seen.is_running))
    healthy = GaugeMetricFamily(
        "crawlsched_healthy", "1 if so: leased, writing, dispatching.", labels=["collection", "check"]
    )
    for check in checks(seen):
        healthy.add_metric([collection, check.name], float(check.is_well))
    yield healthy
    yield from gauge("paused", "1 while the crawl is paused by hand.", float(status.get("paused_since") is not None))
    beat = None if seen.owner is None else seen.owner.heartbeat_at
    yield from gauge("heartbeat_timestamp_seconds", "When the crawl was last heard of.", beat)
    yield from gauge("last_request_timestamp_seconds", "When a request went out last.", status.get("last_sent_at"))
    yield from gauge("bandwidth_requests_per_second", "The budget.", status.get("bandwidth"))
    yield from gauge("threshold_crawl_value", "The crawl value at which pages go.", status.get("threshold"))
    yield from gauge("pages", "Known pages.", status.get("pages"))
    share, error = sample.get("expected_freshness"), sample.get("freshness_error")
    yield from gauge("expected_freshness_ratio", "The share of the importance that is expected to be fresh.", share)
    yield from gauge("expected_freshness_error_ratio", "Its standard error, as it comes from a sample.", error)
    yield from gauge("undelivered_changes", "Changes that wait for callback and pipelines.", seen.undelivered)
    yield from gauge("hosts_resting", "Hosts that asked to be left alone, and still are.", len(seen.resting))
    longest = max((host.rest_until - seen.time for host in seen.resting), default=0.0)
    yield from gauge("host_rest_seconds", "How long the host that rests longest still wants to.", longest)
    yield counter("slots", "What became of the slots of this crawl.", "result", status.get("slots") or {})
    yield counter("visits", "Visits of this crawl that ended, by outcome.", "outcome", status.get("resolved") or {})
    yield counter("withheld", "What was held back from the spider, by reason.", "reason", dict(seen.withheld))
    delivered = CounterMetricFamily("crawlsched_delivered_changes", "Delivered changes.", labels=["collection"])
    delivered.add_metric([collection], float(seen.delivered))
    yield delivered
