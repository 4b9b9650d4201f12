"""Metrics in the text format of Prometheus, by its own client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from crawlsched.exceptions import CrawlschedError
from crawlsched.web.vitals import Vitals, checks

if TYPE_CHECKING:
    from prometheus_client.core import Metric

__all__ = ["CONTENT_TYPE", "metrics"]

# Of so many hosts that fail each has its own lines.
_MOST_HOSTS = 100

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics(seen: Mapping[str, Vitals]) -> bytes:
    """Return what is known of each collection.

    Parameters
    ----------
    seen : mapping of str to Vitals
        By the value of the label ``collection``.

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
        def collect(self) -> Iterable[Metric]:
            families = _Families()
            for collection, of_one in seen.items():
                _add(families, collection, of_one)
            return families.all.values()

    registry = CollectorRegistry()
    registry.register(Once())
    return generate_latest(registry)


class _Families:
    """The families by their names: each is told once, with the samples of all collections."""

    def __init__(self) -> None:
        self.all: dict[str, Any] = {}

    def gauge(self, name: str, meaning: str, value: float | None, **labels: str) -> None:
        """Add a sample of something that rises and falls; None: it is not known."""
        from prometheus_client.core import GaugeMetricFamily

        if value is not None:
            self._add(GaugeMetricFamily, name, meaning, value, labels)

    def counter(self, name: str, meaning: str, value: float, **labels: str) -> None:
        """Add a sample of something that only rises."""
        from prometheus_client.core import CounterMetricFamily

        self._add(CounterMetricFamily, name, meaning, value, labels)

    def _add(self, kind: Any, name: str, meaning: str, value: float, labels: dict[str, str]) -> None:
        family = self.all.get(name)
        if family is None:
            family = self.all[name] = kind(f"crawlsched_{name}", meaning, labels=list(labels))
        family.add_metric(list(labels.values()), float(value))


def _add(families: _Families, collection: str, seen: Vitals) -> None:
    status, sample = seen.status, seen.sample
    first_copies = status.get("first_copies") or {}
    beat = None if seen.owner is None else seen.owner.heartbeat_at
    longest = max((host.rest_until - seen.time for host in seen.resting), default=0.0)
    for name, meaning, value in (
        ("up", "1 while a crawl owns the collection.", seen.is_running),
        ("paused", "1 while the crawl is paused by hand.", status.get("paused_since") is not None),
        ("heartbeat_timestamp_seconds", "When the crawl was last heard of.", beat),
        ("last_request_timestamp_seconds", "When a request went out last.", status.get("last_sent_at")),
        ("bandwidth_requests_per_second", "The budget.", status.get("bandwidth")),
        ("threshold_crawl_value", "The crawl value at which pages go.", status.get("threshold")),
        ("pages", "Known pages.", status.get("pages")),
        (
            "expected_freshness_ratio",
            "The share of the importance that is expected to be fresh.",
            sample.get("expected_freshness"),
        ),
        (
            "expected_freshness_error_ratio",
            "Its standard error, as it comes from a sample.",
            sample.get("freshness_error"),
        ),
        ("expected_freshness_pages", "The pages over which it is taken.", sample.get("wanted")),
        ("failing_pages", "Those of them that fail, which are not known to be fresh.", sample.get("failing")),
        ("new_pages_waiting", "Pages that wait for their first copy.", first_copies.get("waiting")),
        ("hosts_failing", "Hosts most of whose pages fail.", len(seen.failing)),
        ("undelivered_changes", "Changes that wait for callback and pipelines.", seen.undelivered),
        ("hosts_resting", "Hosts that asked to be left alone, and still are.", len(seen.resting)),
        ("host_rest_seconds", "How long the host that rests longest still wants to.", longest),
    ):
        families.gauge(name, meaning, value, collection=collection)
    for check in checks(seen):
        said = "1 if so: leased, writing, dispatching, answering."
        families.gauge("healthy", said, check.is_well, collection=collection, check=check.name)
    for state, n in (status.get("states") or {}).items():
        families.gauge("pages_by_state", "Known pages, by state.", n, collection=collection, state=state)
    for host, known in list(seen.failing.items())[:_MOST_HOSTS]:
        for state, n in known["pages"].items():
            said = "Pages of a host most of whose pages fail, by state."
            families.gauge("failing_host_pages", said, n, collection=collection, host=host, state=state)
    for name, meaning, label, values in (
        ("slots", "What became of the slots of this crawl.", "result", status.get("slots") or {}),
        ("visits", "Visits of this crawl that ended, by outcome.", "outcome", status.get("resolved") or {}),
        ("withheld", "What was held back from the spider, by reason.", "reason", seen.withheld),
    ):
        for key, value in sorted(values.items()):
            families.counter(name, meaning, value, collection=collection, **{label: key})
    made = first_copies.get("made", 0)
    families.counter("first_copies", "Visits of this crawl that brought a first copy.", made, collection=collection)
    families.counter("delivered_changes", "Lines of the change feed.", seen.delivered, collection=collection)
