"""``crawlsched sources``: the quality of each source of announcements, with counts and intervals."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import AT_ONCE
from crawlsched.cli.stores import open_stores
from crawlsched.jobs.stored_planners import newest_plan
from crawlsched.wording import say_count, say_duration, say_past, say_per_day, say_share, say_table, say_trust

if TYPE_CHECKING:
    from crawlsched.store import Source, Store

__all__ = ["EXAMPLES", "HELP", "OPTIONS", "described", "newest_report", "worth"]

_LEGEND = (
    "precision: the share of its announcements that were true; recall: the share of changes that it announced in",
    "time; both with 95 % intervals. wrong: announcements of no change. true: how many visits after an announcement",
    "found a change. believed: how likely the crawl takes an announcement to be true.",
)
_HEADINGS = ("precision", "recall", "wrong", "true")


HELP = "how far each source of announcements can be trusted, by source, site and part of a site"
EXAMPLES = ("crawlsched sources",)
OPTIONS = ()


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fit all stored observations."""
    with open_stores(arguments) as stores:
        found = [_of_store(store, is_one_of=len(stores.all)) for store in stores]
    together = {name: [row for one in found for row in one[name]] for name in ("sources", "sites", "parts")}
    together["sources"].sort(key=_best_first)
    return {"collection": stores.name, "time": time.time(), **together}


def newest_report(store: Store) -> dict[str, Any]:
    """Fit the sources alone, without sites and parts of sites."""
    return {"sources": sorted(described(store), key=_best_first)}


def described(store: Store) -> list[dict[str, Any]]:
    """Return the data of each source, and the quality of its announcements in the newest visits."""
    visits = _visits(store)
    return [_described(source, visits, ()) for source in _sources(store)]


def _sources(store: Store) -> list[Source]:
    return [source for source in store.reader.sources() if source.kind != "robots"]


def _visits(store: Store) -> dict[str, Any]:
    from crawlsched.crawl.source_quality import VISITS

    return store.reader.signal_observations(0.0, VISITS)


def _best_first(source: dict[str, Any]) -> tuple[bool, float, int]:
    is_known, share = worth(source)
    return not is_known, -share, -source["visits"]


def _of_store(store: Store, is_one_of: int) -> dict[str, list[dict[str, Any]]]:
    """Describe the sources of a store; with several shards, rows name their shard, since numbers repeat."""
    visits, sources = _visits(store), _sources(store)
    plan = newest_plan(store, None)
    weights = [] if plan is None else plan.signal_weights.tolist()[:-1]
    found = {
        "sources": [_described(source, visits, weights) for source in sources],
        "sites": _by_site(sources, visits),
        "parts": _by_part(store, sources, visits),
    }
    if is_one_of > 1:
        found = {name: [{"shard": store.key[0], **row} for row in rows] for name, rows in found.items()}
    return found


def _described(source: Source, visits: dict[str, Any], weights: Sequence[float]) -> dict[str, Any]:
    from crawlsched.crawl.source_quality import named, quality_of

    number = source.source
    return {
        "source": number,
        "kind": source.kind,
        "url": source.url,
        "name": named(source),
        "host": source.host,
        **quality_of(source, visits),
        "signal_weight": weights[number] if number < len(weights) else None,
        "announced": source.quality.get("announced", 0),
        "polled_at": source.polled_at,
        "next_poll_at": source.next_poll_at,
        "problems": source.problems,
    }


def _by_site(sources: list[Source], visits: dict[str, Any]) -> list[dict[str, Any]]:
    import numpy as np

    from crawlsched.crawl.source_quality import quality

    found = []
    for host in sorted({source.host for source in sources if source.host}):
        own = [source for source in sources if source.host == host]
        fitted = quality(visits, np.isin(visits["source"], [source.source for source in own]))
        found.append({"host": host, "sources": len(own), **fitted})
    return found


def _by_part(store: Store, sources: list[Source], visits: dict[str, Any]) -> list[dict[str, Any]]:
    """Fit each source separately for each site and first directory of its pages, if it has several of these."""
    import numpy as np

    from crawlsched.crawl.source_quality import quality
    from crawlsched.planner.plans.plan import LEAST_GROUP

    pages = np.unique(visits["page"])
    part_of = dict(zip(pages.tolist(), _parts(store, pages), strict=True))
    # Host and part can become one text, since a host's name has no slash.
    parts = np.array(["".join(part_of[page]) for page in visits["page"].tolist()], dtype=str)
    found = []
    for source in sources:
        own = visits["source"] == source.source
        names, counts = np.unique(parts[own], return_counts=True)
        shown = names[counts >= LEAST_GROUP]
        if shown.size > 1:
            for name in shown.tolist():
                host, directory = name.partition("/")[::2]
                fitted = quality(visits, own & (parts == name))
                found.append({"source": source.source, "host": host, "part": f"/{directory}", **fitted})
    return found


def _parts(store: Store, pages: Any) -> Iterable[tuple[str, str]]:
    """Yield host and part of each page."""
    from crawlsched.change_signals import part_of_site
    from crawlsched.store import host_of

    for start in range(0, len(pages), AT_ONCE):
        for facts in store.reader.facts(pages[start : start + AT_ONCE]):
            yield ("", "/") if facts is None else (host_of(facts.url), part_of_site(facts.url))


def worth(source: dict[str, Any]) -> tuple[bool, float]:
    """Return the key that orders sources by precision times recall; sources of unknown quality come last."""
    if source["precision"] is None:
        return False, 0.0
    return True, source["precision"] * (1.0 if source["recall"] is None else source["recall"])


def say(report: dict[str, Any]) -> str:
    if not report["sources"]:
        return "No source of announcements is known yet."
    now = report["time"]
    rows = [[*_HEADINGS, "believed", "next poll", "source"]]
    for source in report["sources"]:
        poll = "-" if source["next_poll_at"] is None else say_duration(max(source["next_poll_at"] - now, 0.0))
        notes = [f"{kind} {n}" for kind, n in source["problems"].items()]
        noted = f"  ({', '.join(notes)})" if notes else ""
        rows.append([*_said(source), _believed(source), poll, f"{source['name']}{noted}"])
    lines = ["sources of announcements, best first", *say_table(rows, right="llrrrrl")]
    named = {
        "by site": [(site, site["host"]) for site in report["sites"]],
        "by part of a site": [
            (part, f"{part['host']}{part['part']} of source {part['source']}") for part in report["parts"]
        ],
    }
    for title, parts in named.items():
        if parts:
            rows = [[*_HEADINGS, ""], *([*_said(part), name] for part, name in parts)]
            lines += ["", title, *say_table(rows, right="llrrl")]
    read = max((source["polled_at"] or 0.0 for source in report["sources"]), default=0.0)
    last = f"; the last one was read {say_past(read, now)}" if read else ""
    lines += ["", f"{say_count(len(report['sources']), 'source')}{last}", "", *_LEGEND]
    return "\n".join(lines)


def _believed(quality: dict[str, Any]) -> str:
    weight = quality["signal_weight"]
    return "not known yet" if weight is None or not quality["heard"] else say_share(-math.expm1(-weight))


def _said(quality: dict[str, Any]) -> list[str]:
    true = f"{quality['true']:,} of {quality['heard']:,}"
    precision = say_trust(quality["precision"], quality["precision_interval"], quality.get("unknown"))
    recall = say_trust(quality["recall"], quality["recall_interval"])
    if quality["false_per_day"] is None:
        return [precision, recall, "-", true]
    low, high = map(say_per_day, quality["false_per_day_interval"])
    return [precision, recall, f"{say_per_day(quality['false_per_day'])} a day ({low} to {high})", true]
