"""The default policy beside crawling in turn and the harmonic plan, on made-up sites whose pages change in other ways.

    python -m tests.benchmarks.bench_made_up_sites [--kinds mass bursty] [--seeds 1 2 3] [--bandwidths 0.3 1 3]

Real pages are no Poisson processes: they change together, in bursts, less with age, by the calendar. Each kind of site
has one of these ways alone, so that it shows where the default gains and where it loses. Two years of 500 pages with
some eight changes each; freshness of the second year, everything learned from the first visit on. Printed are the mean
over the seeds and, with its standard error, the difference to the better of the two others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.simulation import History, replay

FloatArray = npt.NDArray[np.float64]
Rng = np.random.Generator

N_PAGES, DAYS, CHANGES = 500, 730.0, 8.0
DAY = 86_400.0
OTHERS = "round_robin", "harmonic"


class Site(NamedTuple):
    """Changes of each page, and from when to when it is there; days."""

    changes: list[list[float]]
    birth: FloatArray
    end: FloatArray


def _site(changes: list[list[float]]) -> Site:
    return Site(changes, np.zeros(N_PAGES), np.full(N_PAGES, DAYS))


def _rates(rng: Rng) -> FloatArray:
    """Changes a day, lognormal with sigma = 1.5."""
    return np.minimum(rng.lognormal(-1.125, 1.5, N_PAGES) * CHANGES / DAYS, 1.0)


def _poisson(rng: Rng, rate: float, begin: float = 0.0, end: float = DAYS) -> list[float]:
    return np.sort(rng.uniform(begin, end, rng.poisson(rate * (end - begin)))).tolist()


def poisson(rng: Rng) -> Site:
    """Each page on its own, at a rate of its own."""
    return _site([_poisson(rng, rate) for rate in _rates(rng)])


def uniform(rng: Rng) -> Site:
    """Each page on its own, all at one rate."""
    return _site([_poisson(rng, CHANGES / DAYS) for _ in range(N_PAGES)])


def heavy(rng: Rng) -> Site:
    """A few pages have most of the changes."""
    return _site([_poisson(rng, min(rate * 0.2 / DAYS, 2.0)) for rate in rng.pareto(0.8, N_PAGES)])


def sections(rng: Rng) -> Site:
    """Eight sections, each of which is edited some six times a year: four of five of its pages at once."""
    changes, section = [_poisson(rng, 0.4 * rate) for rate in _rates(rng)], np.sort(rng.integers(0, 8, N_PAGES))
    for number in range(8):
        for edit in _poisson(rng, 6 / DAYS):
            for page in np.flatnonzero((section == number) & (rng.random(N_PAGES) < 0.8)).tolist():
                changes[page].append(edit + 0.2 * rng.random())
    return _site(changes)


def rebuilds(rng: Rng) -> Site:
    """Quiet pages, three edits of most of the site, and twelve of a few dozen neighbours."""
    changes = [_poisson(rng, 0.25 * rate) for rate in _rates(rng)]
    for begin, length in ((60, 100), (350, 100), (560, 120)):
        edit, share = begin + length * rng.random(), rng.uniform(0.5, 1.0)
        for page in np.flatnonzero(rng.random(N_PAGES) < share).tolist():
            changes[page].append(edit + rng.random())
    for _ in range(12):
        edit, first = DAYS * rng.random(), int(rng.integers(0, N_PAGES - 40))
        for page in range(first, first + int(rng.integers(10, 40))):
            changes[page].append(edit + 0.5 * rng.random())
    return _site(changes)


def bursty(rng: Rng) -> Site:
    """After each change there are two or three more within days."""
    changes: list[list[float]] = []
    for rate in _rates(rng):
        changes.append([])
        for time in _poisson(rng, 0.3 * rate):
            changes[-1].append(time)
            while rng.random() < 0.7:
                time += rng.exponential(1.5)
                changes[-1].append(time)
    return _site(changes)


def aging(rng: Rng) -> Site:
    """Pages come one after the other, and change less the older they get."""
    birth = np.where(rng.random(N_PAGES) < 0.3, 0.0, rng.uniform(0, 0.8 * DAYS, N_PAGES))
    changes: list[list[float]] = []
    for rate, time in zip(_rates(rng).tolist(), birth.tolist(), strict=True):
        age = 0.0 if time else rng.uniform(20, 900)
        changes.append([])
        while time < DAYS:
            step = min(rng.exponential(1 / (90 * rate / (30 + age) + 1e-4)), 30.0)
            time, age = time + step, age + step
            if step < 30.0:
                changes[-1].append(time)
    return Site(changes, birth, np.full(N_PAGES, DAYS))


def switching(rng: Rng) -> Site:
    """Busy for two months, quiet for half a year, and so on."""
    changes: list[list[float]] = []
    for rate in _rates(rng):
        changes.append([])
        time, is_busy = 0.0, bool(rng.random() < 0.2)
        while time < DAYS:
            until = min(time + rng.exponential(60 if is_busy else 200), DAYS)
            changes[-1] += _poisson(rng, rate * (4.0 if is_busy else 0.3), time, until)
            time, is_busy = until, not is_busy
    return _site(changes)


def weekdays(rng: Rng) -> Site:
    """From eight to three, five days a week."""
    pages = (_poisson(rng, 1.4 * rate) for rate in _rates(rng))
    return _site([[int(t) + 0.33 + 0.3 * rng.random() for t in times if int(t) % 7 < 5] for times in pages])


def periodic(rng: Rng) -> Site:
    """Daily, weekly, monthly, each quarter, each year: nearly on time."""
    periods = rng.choice([1.0, 7.0, 30.0, 90.0, 365.0, 1000.0], N_PAGES, p=[0.03, 0.1, 0.3, 0.3, 0.2, 0.07])
    regular = (np.arange(period * rng.random(), DAYS, period) for period in periods)
    jittered = (
        times + 0.05 * period * rng.normal(size=times.size) for times, period in zip(regular, periods, strict=True)
    )
    return _site([times.tolist() for times in jittered])


def passing(rng: Rng) -> Site:
    """Pages come and go, after a year as a rule."""
    birth = np.where(rng.random(N_PAGES) < 0.5, 0.0, rng.uniform(0, 0.9 * DAYS, N_PAGES))
    end = np.minimum(birth + rng.exponential(400, N_PAGES), DAYS)
    lives = zip(_rates(rng).tolist(), birth.tolist(), end.tolist(), strict=True)
    return Site([_poisson(rng, 1.5 * rate, *life) for rate, *life in lives], birth, end)


KINDS = (poisson, uniform, heavy, sections, rebuilds, bursty, aging, switching, weekdays, periodic, passing)


def history(site: Site) -> History:
    """Return what happens at a site, in seconds."""
    rows = np.repeat(np.arange(N_PAGES), [len(times) for times in site.changes])
    times = np.concatenate([np.sort(times) for times in site.changes])
    alive = (times > site.birth[rows]) & (times < site.end[rows])
    return History(
        page=np.arange(N_PAGES),
        birth=site.birth * DAY,
        end=site.end * DAY,
        importance=np.ones(N_PAGES),
        change_rows=rows[alive],
        change_times=times[alive] * DAY,
    )


def differences(kind: Callable[[Rng], Site], seed: int, bandwidth: float) -> tuple[float, float]:
    """Return the default's freshness, and what it is ahead of the better of the others."""
    happened = history(kind(np.random.default_rng([seed, len(kind.__name__)])))
    window = {"start": 0.0, "end": DAYS * DAY, "measure_from": DAYS * DAY / 2}
    # The sum over pages of their changes by their lives, as in docs/notes/replay.md.
    lives = happened.end - happened.birth
    total = float((np.bincount(happened.change_rows, minlength=N_PAGES) / np.maximum(lives, DAY)).sum())
    ours, *others = (replay(happened, bandwidth * total, name, **window).freshness for name in ("posterior", *OTHERS))
    return ours, ours - max(others)


def main() -> None:
    """Print a line for each kind of site and bandwidth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [kind.__name__ for kind in KINDS]
    parser.add_argument("--kinds", choices=names, nargs="+", default=names)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--bandwidths", type=float, nargs="+", default=[0.3, 1.0, 3.0], help="crawls per change")
    options = parser.parse_args()
    print(f"{'site':<12}{'bandwidth':>10}{'freshness':>12}{'ahead of the better of ' + ' and '.join(OTHERS):>50}")
    for kind in KINDS:
        for bandwidth in options.bandwidths if kind.__name__ in options.kinds else ():
            found = np.array([differences(kind, seed, bandwidth) for seed in options.seeds])
            mean, error = found.mean(axis=0), found[:, 1].std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
            print(f"{kind.__name__:<12}{bandwidth:>10g}{mean[0]:>12.4f}{mean[1]:>+40.4f} +-{error:.4f}", flush=True)


if __name__ == "__main__":
    main()
