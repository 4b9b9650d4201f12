"""The results of the demo: a table for people and a JSON object for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from living_site.cast import by_address
from living_site.measuring import Truth

#: If a crawl sends less than this share of its bandwidth (23 of 25 a second), the machine is too slow for a comparison.
LEAST_SHARE = 0.92


@dataclass(frozen=True)
class Side:
    """One of the two crawls: its site's truth, and Scrapy's final statistics."""

    truth: Truth
    stats: dict[str, Any]

    @property
    def n_crawls(self) -> int:
        """Requests for pages that the site answered."""
        return sum(n for (what, _), n in self.truth.statuses.items() if what == "page")

    @property
    def n_changes(self) -> int:
        """Fetches that brought a new version of a page fetched before."""
        return len(self.truth.change_times)

    @property
    def changes_per_100_crawls(self) -> float:
        """Share of the crawls that found a change, in per cent."""
        return 100.0 * self.n_changes / max(1, self.n_crawls)


@dataclass(frozen=True)
class Report:
    """Both sides over the same time.

    Parameters
    ----------
    start, measured_from, end
        POSIX seconds; freshness and rates are averages over the time from measured_from to end.
    sources
        What crawlsched learned about sitemaps: address to its row of ``crawlsched status --json``; ``precision`` and
        ``recall``, with ``_interval``, are None if they are not known yet.
    """

    ours: Side
    in_turn: Side
    bandwidth: float
    start: float
    measured_from: float
    end: float
    sources: dict[str, dict[str, Any]]
    picture: str

    def freshness(self, side: Side) -> float:
        """Return the side's freshness over the measured time."""
        return side.truth.freshness(self.measured_from, self.end)

    def rate(self, side: Side) -> float:
        """Return the requests per second of all kinds that the site got over the measured time."""
        return side.truth.rate(self.measured_from, self.end)

    def freshness_of_all(self, side: Side) -> float:
        """Return the side's freshness from the first second on, while copies are still being made."""
        return side.truth.freshness(self.start, self.end)

    @property
    def void(self) -> bool:
        """Whether this machine was too slow for a comparison: a side sent clearly fewer requests than it was allowed.

        Only requests of the measured time count.
        """
        return min(self.rate(side) for side in (self.ours, self.in_turn)) < LEAST_SHARE * self.bandwidth

    def to_dict(self) -> dict[str, Any]:
        """Return the object of the last line of the demo."""
        stats = self.ours.stats
        return {
            "achieved_rate": round(self.rate(self.ours), 3),
            "achieved_rate_in_turn": round(self.rate(self.in_turn), 3),
            "bandwidth": self.bandwidth,
            "freshness": round(self.freshness(self.ours), 4),
            "freshness_in_turn": round(self.freshness(self.in_turn), 4),
            "freshness_of_all": round(self.freshness_of_all(self.ours), 4),
            "freshness_of_all_in_turn": round(self.freshness_of_all(self.in_turn), 4),
            "void": self.void,
            "crawls": self.ours.n_crawls,
            "crawls_in_turn": self.in_turn.n_crawls,
            "changes_found": self.ours.n_changes,
            "changes_found_in_turn": self.in_turn.n_changes,
            "changes_told_to_the_spider": stats.get("crawlsched/changes_found", 0),
            "not_modified": self.ours.truth.n_status(304),
            "not_modified_in_turn": self.in_turn.truth.n_status(304),
            "signals": stats.get("crawlsched/change_signals/received", 0),
            "dispatched": stats.get("crawlsched/dispatched", 0),
            "resolved": stats.get("crawlsched/resolved", 0),
            "pages": self.ours.truth.steps[-1][2],
            "seconds": round(self.end - self.start, 3),
            "measured_seconds": round(self.end - self.measured_from, 3),
            "sitemaps": {address: self._sitemap(address) for address in self._with_sitemaps()},
            "picture": self.picture,
        }

    def table(self) -> str:
        """Return a table of both sides for people, with the quality of the sitemaps."""
        rows = [("", "crawlsched", "in turn")]
        rows += [(name, f(self.ours), f(self.in_turn)) for name, f in self._rows()]
        lines = [f"  {name:<42} {ours:>12} {in_turn:>12}" for name, ours, in_turn in rows]
        lines += ["", *self._sitemap_lines()]
        return "\n".join(lines)

    def _rows(self) -> list[tuple[str, Any]]:
        measured = self.end - self.measured_from
        return [
            (f"freshness, mean of the last {measured:g} s", lambda side: f"{self.freshness(side):.1%}"),
            (f"  over all {self.end - self.start:g} s", lambda side: f"{self.freshness_of_all(side):.1%}"),
            (f"requests per second (allowed: {self.bandwidth:g})", lambda side: f"{self.rate(side):.2f}"),
            ("pages asked for, in all", lambda side: f"{side.n_crawls}"),
            ("  of these: first visits", lambda side: f"{len(side.truth.first_visit_times)}"),
            ("  changes found", lambda side: f"{side.n_changes}"),
            ("  304 Not Modified", lambda side: f"{side.truth.n_status(304)}"),
            ("  gone, moved, errors", lambda side: _others(side.truth)),
            ("changes found per 100 pages asked for", lambda side: f"{side.changes_per_100_crawls:.1f}"),
            ("sitemaps and robots.txt asked for", lambda side: f"{_overhead(side.truth)}"),
            ("forbidden pages asked for", lambda side: f"{side.truth.forbidden}"),
        ]

    def _with_sitemaps(self) -> list[str]:
        return sorted({*self.ours.truth.sitemaps, *self.sources} & set(by_address()))

    def _sitemap(self, address: str) -> dict[str, Any]:
        truth, learned = self.ours.truth.sitemaps.get(address), self.sources.get(address, {})
        return {
            "kind": by_address()[address].sitemap,
            "precision": _rounded(learned.get("precision")),
            "precision_interval": [_rounded(end) for end in learned.get("precision_interval") or ()] or None,
            "recall": _rounded(learned.get("recall")),
            "recall_interval": [_rounded(end) for end in learned.get("recall_interval") or ()] or None,
            "true_precision": _rounded(truth.precision if truth else None),
            "true_recall": _rounded(truth.recall if truth else None),
            "heard_first": _rounded(truth.recall_in_time if truth else None),
        }

    def _sitemap_lines(self) -> list[str]:
        lines = [
            f"  {'what the sitemaps were worth':<30} {'precision':>19} {'in truth':>9} {'recall':>19} {'in truth':>9}"
        ]
        for address in self._with_sitemaps():
            host, facts = by_address()[address], self._sitemap(address)
            numbers = [
                text
                for name in ("precision", "recall")
                for text in (f"{_trust(facts, name):>19}", f"{_share(facts[f'true_{name}']):>9}")
            ]
            lines.append(f"  {f'{host.subject} ({host.sitemap})':<30} {' '.join(numbers)}")
        return lines


def _others(truth: Truth) -> str:
    groups = ((404, 410), (301,), (429, 503))
    return ", ".join(str(sum(truth.n_status(status) for status in group)) for group in groups)


def _overhead(truth: Truth) -> int:
    return sum(n for (what, _), n in truth.statuses.items() if what in ("sitemap", "robots"))


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 3)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.2f}"


def _trust(facts: dict[str, Any], name: str) -> str:
    """Say a learned value with its 95 % interval."""
    if facts[name] is None:
        return "not known yet"
    low, high = facts[f"{name}_interval"]
    return f"{facts[name]:.2f} ({low:.2f}-{high:.2f})"
