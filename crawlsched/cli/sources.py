"""``crawlsched sources``: what each source of announcements has proved to be worth, with counts and intervals."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from crawlsched.cli.planning import newest_plan
from crawlsched.cli.target import common_options, find_target, open_store
from crawlsched.cli.wording import say_count, say_duration, say_moment, say_share, say_table

if TYPE_CHECKING:
    from crawlsched.store import Source, Store

__all__ = ["VISITS", "add_parser", "quality", "report", "say"]

#: Visits, the newest, that quality is fitted from.
VISITS = 200_000
_PAGES_AT_ONCE = 1_000
# A part of a site is shown by itself from so many visits on.
_LEAST_VISITS = 30
_DAY = 86_400.0


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "sources",
        help="how far each source of announcements can be trusted, by source, site and part of a site",
        parents=[common_options()],
    )
    parser.set_defaults(report=report, say=say)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit everything that visits have found since the observations are kept."""
    store = open_store(find_target(arguments))
    try:
        visits = store.signal_observations(0.0, VISITS)
        sources = [source for source in store.sources() if source.kind != "robots"]
        plan = newest_plan(store)
        weights = [] if plan is None else plan.signal_weights.tolist()[:-1]
        described = [_described(source, visits, weights) for source in sources]
        return {
            "collection": store.name,
            "time": time.time(),
            "sources": sorted(described, key=_worth, reverse=True),
            "sites": _by_site(sources, visits),
            "parts": _by_part(store, sources, visits),
        }
    finally:
        store.close()


def _described(source: Source, visits: dict[str, Any], weights: list[float]) -> dict[str, Any]:
    from crawlsched.source_tally import median_delay

    number = source.source
    return {
        "source": number,
        "kind": source.kind,
        "url": source.url,
        "host": source.host,
        **quality(visits, visits["source"] == number),
        "signal_weight": weights[number] if number < len(weights) else None,
        "announced": source.quality.get("announced", 0),
        "backwards": source.quality.get("backwards", 0),
        "alike": source.quality.get("alike"),
        "median_delay": median_delay(source.quality),
        "polled_at": source.polled_at,
        "next_poll_at": source.next_poll_at,
        "problems": source.problems,
    }


def quality(visits: dict[str, Any], chosen: Any) -> dict[str, Any]:
    """Fit some visits: precision, recall and false announcements, with what they were counted from."""
    from crawlsched.estimators import SignalQuality
    from crawlsched.estimators.recall_interval import recall_interval

    usable = chosen & (visits["elapsed"] > 0)
    elapsed, n_signals, changed = (visits[name][usable] for name in ("elapsed", "n_signals", "changed"))
    loud = n_signals > 0
    counts = {"visits": int(usable.sum()), "heard": int(loud.sum()), "true": int((loud & changed).sum())}
    names = ("precision", "precision_interval", "recall", "recall_interval", "false_per_day")
    if not loud.any():
        return {**counts, **dict.fromkeys(names)}
    fit = SignalQuality.fit(elapsed, n_signals, changed)
    recall, *interval = recall_interval(elapsed, n_signals, changed)
    values = fit.precision, fit.precision_interval, recall, tuple(interval), fit.false_signal_rate * _DAY
    return {**counts, **dict(zip(names, values, strict=True))}


def _by_site(sources: list[Source], visits: dict[str, Any]) -> list[dict[str, Any]]:
    import numpy as np

    found = []
    for host in sorted({source.host for source in sources if source.host}):
        numbers = [source.source for source in sources if source.host == host and source.kind != "backwards"]
        found.append({"host": host, "sources": len(numbers), **quality(visits, np.isin(visits["source"], numbers))})
    return found


def _by_part(store: Store, sources: list[Source], visits: dict[str, Any]) -> list[dict[str, Any]]:
    """Fit each source for each first directory of its pages' paths, where there are several."""
    import numpy as np

    pages = np.unique(visits["page"])
    part_of = dict(zip(pages.tolist(), _parts(store, pages), strict=True))
    parts = np.array([part_of[page] for page in visits["page"].tolist()], dtype=object)
    found = []
    for source in sources:
        own = visits["source"] == source.source
        names, counts = np.unique(parts[own].astype(str), return_counts=True)
        shown = names[counts >= _LEAST_VISITS]
        if shown.size > 1:
            found += [
                {"source": source.source, "part": name, **quality(visits, own & (parts == name))}
                for name in shown.tolist()
            ]
    return found


def _parts(store: Store, pages: Any) -> Iterable[str]:
    for start in range(0, len(pages), _PAGES_AT_ONCE):
        for facts in store.facts(pages[start : start + _PAGES_AT_ONCE]):
            directories = [] if facts is None else urlsplit(facts.url).path.split("/")[1:-1]
            yield f"/{directories[0]}/" if directories else "/"


def _worth(source: dict[str, Any]) -> tuple[bool, float, int]:
    """Order sources by how many of all changes they announce, and how truly; those not known yet come last."""
    known = source["precision"] is not None
    return known, source["precision"] * source["recall"] if known else 0.0, source["visits"]


def say(report: dict[str, Any]) -> str:
    """Say what can be believed."""
    if not report["sources"]:
        return "No source of announcements is known yet."
    now = report["time"]
    lines = ["sources of announcements, best first"]
    rows = [["precision", "recall", "false", "true/heard", "delay", "alike", "next poll", "source"]]
    for source in report["sources"]:
        delay = "-" if source["median_delay"] is None else say_duration(source["median_delay"])
        poll = "-" if source["next_poll_at"] is None else say_duration(max(source["next_poll_at"] - now, 0.0))
        notes = [f"{kind} {n}" for kind, n in source["problems"].items()]
        notes += [f"{source['backwards']} went back"] if source["backwards"] else []
        noted = f"  ({', '.join(notes)})" if notes else ""
        name = f"{source['kind']} {source['url']}{noted}"
        rows.append([*_said(source), delay, say_share(source["alike"]), poll, name])
    lines += say_table(rows, right="llrrrrrl")
    for title, groups in (("by site", report["sites"]), ("by part of a site", report["parts"])):
        if groups:
            rows = [["precision", "recall", "false", "true/heard", ""]]
            rows += [
                [*_said(group), group.get("host") or f"{group['part']} of source {group['source']}"] for group in groups
            ]
            lines += ["", title, *say_table(rows, right="llrrl")]
    read = max((source["polled_at"] or 0.0 for source in report["sources"]), default=0.0)
    last = f"; the last one was read {say_moment(read, now)}" if read else ""
    lines += ["", f"{say_count(len(report['sources']), 'source')}{last}"]
    return "\n".join(lines)


def _said(quality: dict[str, Any]) -> list[str]:
    told = f"{quality['true']:,}/{quality['heard']:,}"
    if quality["precision"] is None:
        return ["-", "-", "-", told]
    shares = [
        f"{say_share(quality[name])} ({say_share(low)} to {say_share(high)})"
        for name in ("precision", "recall")
        for low, high in [quality[f"{name}_interval"]]
    ]
    return [*shares, f"{quality['false_per_day']:.2g}/d", told]
