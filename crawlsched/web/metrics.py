"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from crawlsched.web.vitals import Vitals, checks
from crawlsched.web.words import SHOWN

__all__ = ["CONTENT_TYPE", "metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics(seen: Mapping[str, Vitals]) -> bytes:
    """Return the metrics of each collection, by the value of the label ``collection``."""
    families: dict[str, list[str]] = {}
    for collection, of_one in seen.items():
        _add(families, collection, of_one)
    return "".join(f"{line}\n" for lines in families.values() for line in lines).encode()


def _sample(
    families: dict[str, list[str]], kind: str, name: str, meaning: str, value: float | None, **labels: str
) -> None:
    """Add a sample of a gauge or a counter. The first sample of a family comes after the family's declaration."""
    if value is not None:  # None means that the value is not known
        name = f"crawlsched_{name}_total" if kind == "counter" else f"crawlsched_{name}"
        lines = families.setdefault(name, [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"])
        written = ",".join(f'{label}="{_escaped(text)}"' for label, text in sorted(labels.items()))
        lines.append(f"{name}{{{written}}} {float(value)}")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _add(families: dict[str, list[str]], collection: str, seen: Vitals) -> None:
    status, sample = seen.status, seen.sample
    first_copies = status.get("first_copies") or {}
    beat = None if seen.owner is None else seen.owner.heartbeat_at
    longest = max((host.rest_until - seen.time for host in seen.resting), default=0.0)
    for name, meaning, value in (
        ("up", "1 while a crawl owns the collection.", seen.is_running),
        ("paused", "1 while the crawl is paused by hand.", status.get("paused_since") is not None),
        ("heartbeat_timestamp_seconds", "The time of the last sign of life of the crawl.", beat),
        ("last_request_timestamp_seconds", "The time at which the last request went out.", status.get("last_sent_at")),
        ("bandwidth_requests_per_second", "The budget.", status.get("bandwidth")),
        ("threshold_crawl_value", "Pages with at least this crawl value are crawled.", status.get("threshold")),
        ("pages", "Known pages.", status.get("pages")),
        ("expected_freshness_ratio", "Expected share of fresh pages, by importance.", sample.get("expected_freshness")),
        ("expected_freshness_error_ratio", "Standard error of the expected freshness.", sample.get("freshness_error")),
        ("expected_freshness_pages", "Pages from which the expected freshness is computed.", sample.get("wanted")),
        ("failing_pages", "Pages among these that fail; their freshness is not known.", sample.get("failing")),
        ("new_pages_waiting", "Pages that wait for their first copy.", first_copies.get("waiting")),
        ("hosts_failing", "Hosts whose pages mostly fail.", len(seen.failing)),
        ("undelivered_changes", "Changes that wait for callback and pipelines.", seen.undelivered),
        ("hosts_resting", "Hosts that get no requests for now, at their wish.", len(seen.resting)),
        ("host_rest_seconds", "Seconds until the last of these hosts may get requests.", longest),
    ):
        _sample(families, "gauge", name, meaning, value, collection=collection)
    for check in checks(seen):
        meaning = "1 if the check of the crawl passes: leased, writing, dispatching, answering."
        _sample(families, "gauge", "healthy", meaning, check.is_well, collection=collection, check=check.name)
    for state, n in (status.get("states") or {}).items():
        _sample(families, "gauge", "pages_by_state", "Known pages, by state.", n, collection=collection, state=state)
    for host, known in list(seen.failing.items())[:SHOWN]:
        for state, n in known["pages"].items():
            meaning = "Pages of each host whose pages mostly fail, by state."
            _sample(families, "gauge", "failing_host_pages", meaning, n, collection=collection, host=host, state=state)
    for name, meaning, label, values in (
        ("slots", "Slots of this crawl, by their use.", "result", status.get("slots") or {}),
        ("visits", "Visits of this crawl that ended, by outcome.", "outcome", status.get("resolved") or {}),
        ("withheld", "Responses that were withheld from the spider, by reason.", "reason", seen.withheld),
    ):
        for key, value in sorted(values.items()):
            _sample(families, "counter", name, meaning, value, collection=collection, **{label: key})
    for name, meaning, value in (
        ("first_copies", "Visits of this crawl that brought a first copy.", first_copies.get("made", 0)),
        ("delivered_changes", "Lines of the change feed.", seen.delivered),
    ):
        _sample(families, "counter", name, meaning, value, collection=collection)
