"""The results of the demo of many processes, from the site's own log of requests: a table and a picture."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from crawlsched.sharing import shard_of

from living_site.measuring import Truth

COLOURS, FRESH, QUIET = ("#1b6ca8", "#e0a458", "#6a9f6b"), "#1b6ca8", "#666666"
WINDOW = 10.0  # seconds: any such window may have 1.02 times the bandwidth, and one request more for each process
SMOOTHED = 3.0  # seconds: the picture's rates are means over this time
STEP = 0.5
HALF_A_NAME = 9  # steps of the picture


@dataclass(frozen=True)
class Shared:
    """One crawl by several processes over one site.

    Parameters
    ----------
    truth
        The site's log; each process is named by the User-Agent that it sends.
    members
        The processes, in the order in which they were started.
    killed, stopped
        Which of them were killed, and stopped for a while.
    start, killed_at, stopped_at, continued_at, end
        POSIX seconds.
    """

    truth: Truth
    members: tuple[str, ...]
    n_shards: int
    bandwidth: float
    killed: str
    stopped: str
    start: float
    killed_at: float
    stopped_at: float
    continued_at: float
    end: float

    @cached_property
    def arrivals(self) -> dict[str, list[float]]:
        """The times at which each process's requests arrived, in order."""
        found: dict[str, list[float]] = {member: [] for member in self.members}
        for arrived, _, _, agent in self.truth.asked:
            found[agent].append(arrived)
        return {member: sorted(times) for member, times in found.items()}

    def rate(self, member: str, since: float, until: float) -> float:
        """Return the requests a second that one process sent."""
        times = self.arrivals[member]
        return (bisect_left(times, until) - bisect_left(times, since)) / (until - since)

    @property
    def most(self) -> int:
        """The most requests of all processes in any ten seconds."""
        times = sorted(self.truth.arrivals)
        return max(bisect_right(times, time + WINDOW) - i for i, time in enumerate(times))

    @property
    def allowed(self) -> float:
        """The most requests that are allowed in any ten seconds."""
        return 1.02 * WINDOW * self.bandwidth + len(self.members)

    @property
    def n_together(self) -> int:
        """How often a process sent a request to a host that still answered another process."""
        last: dict[str, tuple[float, str]] = {}
        n = 0
        for arrived, answered, host, agent in sorted(self.truth.asked):
            busy_until, owner = last.get(host, (0.0, agent))
            n += owner != agent and arrived < busy_until
            last[host] = (max(busy_until, answered), agent)
        return n

    @property
    def n_moves(self) -> int:
        """How often a host's next request came from another process than the one before."""
        by_host: dict[str, list[str]] = {}
        for _, _, host, agent in sorted(self.truth.asked):
            by_host.setdefault(host, []).append(agent)
        return sum(left != right for agents in by_host.values() for left, right in pairwise(agents))

    def waits(self, member: str, at: float) -> list[float]:
        """Return how long each shard of a killed or stopped process waited for its next request by another process.

        A shard belonged to that process if it had sent the shard's last request.
        """
        owners: dict[int, str] = {}
        waited: dict[int, float] = {}
        for arrived, _, host, agent in sorted(self.truth.asked):
            shard = shard_of(host, self.n_shards)
            if arrived < at:
                owners[shard] = agent
            elif owners.get(shard) == member != agent:
                waited.setdefault(shard, arrived - at)
        return sorted(waited.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the object of the last line of the demo."""
        middle = (self.start + self.end) / 2
        return {
            "bandwidth": self.bandwidth,
            "processes": len(self.members),
            "shards": self.n_shards,
            "achieved_rate": round(self.truth.rate(self.start, self.end), 3),
            "rates": {member: round(self.rate(member, self.start, self.end), 3) for member in self.members},
            "most_in_10_s": self.most,
            "allowed_in_10_s": round(self.allowed, 1),
            "asked_by_two_at_once": self.n_together,
            "hosts_moved": self.n_moves,
            "killed_waits": [round(wait, 2) for wait in self.waits(self.killed, self.killed_at)],
            "stopped_waits": [round(wait, 2) for wait in self.waits(self.stopped, self.stopped_at)],
            "freshness": round(self.truth.freshness(middle, self.end), 4),
            "freshness_of_all": round(self.truth.freshness(self.start, self.end), 4),
            "requests": len(self.truth.arrivals),
            "changes_found": len(self.truth.change_times),
            "pages": self.truth.steps[-1][2],
            "seconds": round(self.end - self.start, 3),
        }

    def table(self) -> str:
        """Return a table of the rates of each process in each part of the run, and of figures for the whole run."""
        edges = (self.start, self.killed_at, self.stopped_at, self.continued_at, self.end)
        spans = list(pairwise(edges))
        names = ("all run", f"{self.killed} dead", f"{self.stopped} stopped", "it goes on")
        seconds = (f"{left - self.start:.0f} to {right - self.start:.0f} s" for left, right in spans)
        lines = [f"  {'requests a second':<42}" + "".join(f"{name:>17}" for name in names)]
        lines.append(f"  {'':<42}" + "".join(f"{span:>17}" for span in seconds))
        for member in self.members:
            lines.append(f"  {member:<42}" + "".join(f"{self.rate(member, *span):>17.2f}" for span in spans))
        total = f"  all together (allowed: {self.bandwidth:g})"
        lines.append(f"{total:<44}" + "".join(f"{self.truth.rate(*span):>17.2f}" for span in spans))
        freshness = "".join(f"{self.truth.freshness(*span):>17.1%}" for span in spans)
        lines += [f"  {'freshness':<42}{freshness}", ""]
        facts = [
            ("most requests in any 10 s", f"{self.most}, allowed are {self.allowed:.0f}"),
            ("times that two processes asked a host at once", f"{self.n_together}"),
            ("times that a host went to another process", f"{self.n_moves}"),
            (f"shards of {self.killed} waited, killed", _seconds(self.waits(self.killed, self.killed_at))),
            (f"shards of {self.stopped} waited, stopped", _seconds(self.waits(self.stopped, self.stopped_at))),
        ]
        return "\n".join([*lines, *(f"  {name:<48} {value}" for name, value in facts)])

    def write_picture(self, path: Path) -> Path:
        """Draw the stacked rates of all processes, and freshness below, both over time."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 6.5), dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        rates, fresh = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        seconds = self.end - self.start
        times = [STEP * i for i in range(int(seconds / STEP) + 1)]
        series = [[self._around(member, self.start + t) for t in times] for member in self.members]
        rates.stackplot(times, series, colors=COLOURS, linewidth=0)
        rates.axhline(self.bandwidth, color="black", linewidth=1, linestyle=(0, (4, 3)))
        said = f"{self.bandwidth:g} requests a second for all"
        rates.annotate(said, (0, self.bandwidth), (6, 5), textcoords="offset points", ha="left", va="bottom")
        below = [0.0] * len(times)
        for member, height in zip(self.members, series, strict=True):
            # The name stands where the band is broad enough for it.
            room = [min(height[max(0, i - HALF_A_NAME) : i + HALF_A_NAME]) for i in range(len(times))]
            i = max(range(HALF_A_NAME, len(times) - HALF_A_NAME), key=room.__getitem__)
            if room[i] > 0.1 * self.bandwidth:
                middle = below[i] + height[i] / 2
                rates.text(times[i], middle, member, ha="center", va="center", color="white", fontweight="bold")
            below = [a + b for a, b in zip(below, height, strict=True)]
        rates.set(ylim=(0, 1.35 * self.bandwidth), ylabel="requests a second, as the site counts them")
        rates.set_yticks(range(0, int(self.bandwidth) + 1, 5))
        freshness = self.truth.series(self.start, self.end, STEP)
        fresh.plot([t for t, _ in freshness], [share for _, share in freshness], color=FRESH, linewidth=2)
        fresh.set(xlim=(0, seconds), ylim=(0, 1), xlabel="seconds since the first request")
        fresh.set_ylabel("share of the pages of which\nthe copy is up to date")
        fresh.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        events = (
            (self.killed_at, f"{self.killed}\nis killed"),
            (self.stopped_at, f"{self.stopped}\nis stopped"),
            (self.continued_at, "and\ngoes on"),
        )
        for axes in (rates, fresh):
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(axis="y", color="#dddddd", linewidth=0.6)
            axes.set_axisbelow(True)
            for at, _ in events:
                axes.axvline(at - self.start, color=QUIET, linewidth=1, linestyle=(0, (1, 2)))
        for at, words in events:
            place = (at - self.start, 1.34 * self.bandwidth)
            rates.annotate(words, place, (5, 0), textcoords="offset points", ha="left", va="top", color=QUIET)
        title = f"One crawl, {len(self.members)} processes, {self.n_shards} shards, one bandwidth"
        rates.set_title(title, loc="left", fontsize=12)
        figure.savefig(path)
        return path

    def _around(self, member: str, at: float) -> float:
        """Return a process's rate over the seconds around a moment, within the run."""
        return self.rate(member, max(self.start, at - SMOOTHED / 2), min(self.end, at + SMOOTHED / 2))


def _seconds(waits: list[float]) -> str:
    return f"{', '.join(f'{wait:.1f}' for wait in waits)} s" if waits else "-"
