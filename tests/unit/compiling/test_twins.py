"""Loops and numpy: whichever code is in use, the same pages are picked and the same is learned.

Modules say in their own tests how close their twins are. Here every function that is compiled to be called from outside
has to take part in one of a few histories, each of which runs once by numpy and plain Python, and once compiled: a new
one that no history calls fails the test.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import crawlsched
from crawlsched.compiling import compilable, use_compiled
from crawlsched.crawl_value import noisy_value
from crawlsched.frontier.buckets.entries import LOOPS as BUCKET_LOOPS
from crawlsched.frontier.buckets.entries import CompactEntries, PlainEntries
from crawlsched.pages import FREE
from crawlsched.planner import Planner, plan
from crawlsched.planner.values.plug_in_values import PointValues, RuleValues
from crawlsched.planner.values.rules import RULES
from crawlsched.planner.values.signalled import Grid, GrowingValues, SignalledValues
from tests.benchmarks.frontier_collection import START, collection

pytest.importorskip("numba")
N_PAGES, N_HOSTS, BANDWIDTH = 600, 6, 20.0
# POSIX seconds are known to a ten-millionth.
ROUNDED_UP = 1 + 1e-6


def history(crawl_value: str) -> Iterator[Any]:
    """Crawl: announcements, a plan, ten times the bandwidth, pages that go; hosts rest. Give picks, then values."""
    rng = np.random.default_rng(4)
    given = collection(N_PAGES, BANDWIDTH, crawl_value, signalled=1 / 3, hosts=N_HOSTS)
    planner, now, free_at = given.planner, START, np.zeros(N_HOSTS)
    for slot in range(900):
        now += 1 / planner.bandwidth
        if slot == 100:
            planner.signalled(rng.choice(N_PAGES, 200, replace=False), 0, now)
        if slot == 250:
            planner.adopt(plan(planner.snapshot(), planner.bandwidth), now)
        if slot == 400:
            planner.set_bandwidth(10 * BANDWIDTH, now)
        if slot == 600:
            planner.set_bandwidth(BANDWIDTH, now)
            planner.remove(rng.choice(N_PAGES, 50, replace=False))
        pick = planner.pick(now, lambda host, now: free_at.item(host))
        if pick is not None:
            yield pick.page
            free_at[planner.pages.host.item(pick.page)] = now + 0.02
            planner.crawled(pick.page, now, given.has_changed(pick.page, now, rng))
    yield from known(planner, now)


def known(planner: Planner, now: float) -> Iterator[Any]:
    """Give what is known of pages at the end, and what they are worth, alone and together."""
    alive = np.flatnonzero(planner.pages.state[:N_PAGES] != FREE)
    values = planner.frontier.values.many(alive)
    for time in (now, now + 100.0):
        yield values.at(time)
    # Bounds may differ, and hold whichever code is in use.
    reached = values.crossings(np.full(alive.size, planner.threshold), now, np.ones(alive.size, bool))
    for row in range(0, alive.size, 20):
        value = planner.frontier.values.one(int(alive[row]))
        height, slope, curve = value.parabola(now, now + 10.0)
        assert value.at(now + 9.0) <= (height + 9.0 * slope + 81.0 * curve) * ROUNDED_UP
        for time in (reached.item(row), value.crossing(planner.threshold, now)):
            assert not now < time < np.inf or value.at(time) <= planner.threshold * ROUNDED_UP
    if isinstance(planner.frontier.values, PointValues):
        yield planner.frontier.values.supposing(alive, np.full(alive.size, now), np.ones(alive.size)).at(now + 50.0)
    yield planner.posterior.log_likelihood(alive)


def values_of_rows() -> Iterator[Any]:
    """Evaluate pages that are told by their rows of probabilities alone."""
    rng = np.random.default_rng(3)
    n, rates = 200, np.geomspace(1e-6, 1.0, 24)
    grid, weights = Grid(rates), rng.dirichlet(np.ones(24), n)
    crawled_at, importance = -rng.exponential(1e4, n), rng.lognormal(0.0, 1.0, n)
    announced = rng.integers(0, 4, n) * 0.7, rng.lognormal(-9.0, 1.0, n), np.full(n, 0.7)
    growing = GrowingValues(grid, weights, crawled_at, importance)
    for values in (growing, SignalledValues(grid, weights, crawled_at, importance, *announced)):
        yield values.at(0.0)
        height, slope, curve = values.parabolas(0.0, 50.0)
        assert (values.at(50.0) <= (height + 50.0 * slope + 2500.0 * curve) * ROUNDED_UP).all()
        assert all(values.one(row).at(50.0) <= values.one(row).bound(50.0, True) * ROUNDED_UP for row in range(n))
        aims = 2.0 * values.at(0.0)
        reached = values.crossings(aims, 0.0, np.ones(n, bool))
        for row in np.flatnonzero(np.isfinite(reached)).tolist():
            assert values.one(row).at(reached[row]) <= aims[row] * ROUNDED_UP
    rule = RULES["greedy_ncis"]
    columns = np.array([*rng.lognormal(-8.0, 1.0, (1, n)), *rng.random((1, n)), *rng.lognormal(-9.0, 1.0, (1, n))])
    known = np.vstack([rule.heard(columns), rng.integers(0, 3, n), crawled_at, importance, importance * 1e4])
    yield RuleValues(rule, known, 1e6).at(0.0)


def entries() -> Iterator[Any]:
    """Put page numbers into buckets, look at them, sweep and take them."""
    rng = np.random.default_rng(1)
    held: Any = CompactEntries() if BUCKET_LOOPS.compiled else PlainEntries()
    column = rng.integers(0, 9, 500).astype(np.uint32)
    held.add(rng.integers(0, 7, 300), rng.integers(0, 500, 300))
    yield np.sort(held.look_at_some([5, 0, 3], column, np.array([2, 0, 4]), np.array([6, 8, 4])))
    for key in range(7):
        yield np.sort(held.look(key, column, 2, 6))
        held.leave(np.array([key]))
        held.sweep(key, column, 2, 6)
        yield held.living(key), held.size(key)
        yield np.sort(held.take(key, 10, column, 3, 6))


def arrays() -> Iterator[Any]:
    """Evaluate crawl values of an array."""
    yield noisy_value(np.random.default_rng(2).exponential(3.0, 70_000), 2.0, 0.5, 0.3, 1.1)


HISTORIES: dict[str, Callable[[], Iterator[Any]]] = {
    "posterior": lambda: history("posterior"),
    "greedy_ncis": lambda: history("greedy_ncis"),
    "values of rows": values_of_rows,
    "entries": entries,
    "arrays": arrays,
}


def compilables() -> list[compilable.Compilable]:
    """Return those of all modules."""
    for module in pkgutil.walk_packages(crawlsched.__path__, "crawlsched."):
        if module.name.startswith(("crawlsched.planner", "crawlsched.frontier", "crawlsched.estimators")):
            importlib.import_module(module.name)
    return [one for one in compilable._COMPILABLE if one._module.__name__.startswith("crawlsched.")]


def counted(functions: dict[str, Any], name: str, called: set[tuple[str, str]], module: str) -> None:
    """Let a function say that it was called."""
    function = functions[name]

    def count(*arguments: Any) -> Any:
        called.add((module, name))
        return function(*arguments)

    functions[name] = count


def test_every_compiled_function_takes_part_in_a_history_that_goes_as_it_does_without_numba() -> None:
    """Picks are the same, and what is known at the end agrees to ten digits."""
    use_compiled(False)
    plain = {name: list(happen()) for name, happen in HISTORIES.items()}
    use_compiled(True)
    called: set[tuple[str, str]] = set()
    wanted = {(one._module.__name__, name) for one in compilables() for name in one._module.EXAMPLES}
    with pytest.MonkeyPatch.context() as patched:
        for one in compilables():
            # What the attributes are, and what `compiled_function` gives.
            for functions in (vars(one), one._made):
                for name in one._module.EXAMPLES:
                    patched.setitem(functions, name, functions[name])
                    counted(functions, name, called, one._module.__name__)
        compiled = {name: list(happen()) for name, happen in HISTORIES.items()}
    for name, found in compiled.items():
        assert len(found) == len(plain[name])
        for one_of, other in zip(found, plain[name], strict=True):
            np.testing.assert_allclose(np.atleast_1d(one_of), np.atleast_1d(other), rtol=1e-9, err_msg=name)
    assert wanted - called == set()
