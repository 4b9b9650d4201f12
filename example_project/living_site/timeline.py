"""Timelines: when pages change, vanish, return and move. The seed decides, so two sites with one seed are the same."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from random import Random

from living_site.cast import FALSE_STAMP_INTERVAL, FASTEST, PARTIAL_RECALL, SPELL, Host


@dataclass
class Timeline:
    """The life of one page in seconds since the site's epoch.

    A version is the number of changes so far. ``stamps`` are the times at which the page's ``lastmod`` moves. On an
    honest host these are the changes; on a careless one some of the changes, and other times.
    """

    changes: list[float] = field(default_factory=list)
    stamps: list[float] = field(default_factory=list)
    born: float = -math.inf
    gone: float = math.inf
    returned: float = math.inf
    moved: float = math.inf

    def version(self, at: float) -> int:
        """Return how often the page had changed by then."""
        return bisect_right(self.changes, at)

    def last_change(self, at: float) -> float | None:
        """Return the time of the latest change, None before the first."""
        version = self.version(at)
        return self.changes[version - 1] if version else None

    def last_stamp(self, at: float) -> float | None:
        """Return the time of the latest stamp in the sitemap, None before the first."""
        n = bisect_right(self.stamps, at)
        return self.stamps[n - 1] if n else None

    def is_alive(self, at: float) -> bool:
        """Whether the page can be fetched at this address."""
        return self.born <= at < self.moved and not (self.gone <= at < self.returned)

    def events(self) -> list[tuple[float, str]]:
        """Return the page's events as (time, ``change`` | ``gone`` | ``returned`` | ``moved`` | ``born``).

        Changes while the page is gone are left out. If it returns with another version, that is a change.
        """
        turns = {"born": self.born, "gone": self.gone, "returned": self.returned, "moved": self.moved}
        life = [(time, name) for name, time in turns.items() if math.isfinite(time)]
        return sorted(life + [(time, "change") for time in self.changes if self.is_alive(time)])


def draw_interval(host: Host, rng: Random) -> float:
    """Draw a page's mean time between changes: lognormal around the host's median; infinity if it never changes."""
    if rng.random() < host.never:
        return math.inf
    return max(FASTEST, host.change_interval * math.exp(host.spread * rng.gauss(0.0, 1.0)))


def draw_changes(interval: float, burst: float, horizon: float, rng: Random) -> list[float]:
    """Draw change times in (0, horizon): a Poisson process of bursts whose sizes are geometric with mean ``burst``."""
    changes: list[float] = []
    time = 0.0
    while math.isfinite(interval) and (time := time + rng.expovariate(1.0 / (interval * burst))) < horizon:
        member = time
        changes.append(member)
        while rng.random() < 1.0 - 1.0 / burst:
            member += rng.expovariate(1.0)
            changes.append(member)
    return sorted(change for change in changes if change < horizon)


def draw_stamps(host: Host, changes: list[float], horizon: float, rng: Random) -> list[float]:
    """Draw the times at which the page's ``lastmod`` moves."""
    if host.sitemap != "partial":
        return changes
    announced = [change for change in changes if rng.random() < PARTIAL_RECALL]
    return sorted(announced + draw_changes(FALSE_STAMP_INTERVAL, 1.0, horizon, rng))


def draw_spells(mean_interval: float | None, horizon: float, rng: Random) -> list[tuple[float, float]]:
    """Draw the spells in which a host answers nothing but errors, as (start, end); the first comes early."""
    spells: list[tuple[float, float]] = []
    time = 0.0
    while mean_interval is not None and (time := time + mean_interval * rng.uniform(0.5, 1.5)) < horizon:
        spells.append((time, time + SPELL))
        time += SPELL
    return spells
