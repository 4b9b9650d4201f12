"""What announcements are worth, for each site of a source: learned, pooled, bounded, and what crawl values go by."""

import json
from typing import Any

import numpy as np
import pytest

from crawlsched.change_signals import newest_of_each
from crawlsched.planner import Plan, Planner, plan
from crawlsched.planner.plans.parameters import SignalGroup, SignalGroups

NEWS, SHOP = 0, 1


def _group(groups: SignalGroups, source: int, host: int) -> SignalGroup | None:
    """Return the group of a source and a site; None if it has none."""
    row = int(groups.rows(np.array([source]), np.array([host]))[0])
    return None if row < 0 else SignalGroup(*groups.to_list()[row])


def _visits(rng: np.random.Generator, n: int, weight: float, source: int, host: int) -> dict[str, Any]:
    """Return visits to pages of one group, whose announcements are worth `weight` nats."""
    elapsed = rng.exponential(100.0, n)
    n_signals = rng.poisson(0.01 * elapsed)
    changed = rng.random(n) < -np.expm1(-(0.002 * elapsed + weight * n_signals))
    columns = {"elapsed": elapsed, "n_signals": n_signals, "changed": changed}
    return columns | {name: np.full(n, value) for name, value in (("source", source), ("host", host))}


def _joined(*visits: dict[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([each[name] for each in visits]) for name in visits[0]}


def _planner(n_pages: int = 4) -> Planner:
    """Return a planner whose pages are of two sites by turns, all covered by one source."""
    planner = Planner(1.0)
    pages = planner.add(np.where(np.arange(n_pages) % 2 == 0, NEWS, SHOP), 0.0)
    planner.covered(pages, 0, 0.0)
    return planner


# -- learning


def test_sites_are_learned_where_a_source_has_several() -> None:
    """Two sites of one source get what their own visits show; the one site of another source is that source."""
    rng = np.random.default_rng(5)
    visits = _joined(
        _visits(rng, 2000, 3.0, 0, NEWS), _visits(rng, 2000, 0.0, 0, SHOP), _visits(rng, 2000, 1.0, 1, NEWS)
    )
    groups = plan(_planner().snapshot(), 1.0, visits).signal_groups
    assert len(groups) == 2
    for host, weight in ((NEWS, 3.0), (SHOP, 0.0)):
        group = _group(groups, 0, host)
        assert group[:2] == (0, host)
        assert -np.expm1(-group.signal_weight) == pytest.approx(-np.expm1(-weight), abs=0.05)
    assert _group(groups, 1, NEWS) is None


def test_a_site_that_changes_often_is_believed_beside_one_that_is_stamped_and_never_changes() -> None:
    """Taken together announcements and changes have nothing to do with each other; that must not count against it."""
    rng = np.random.default_rng(3)
    news = _visits(rng, 400, 1.0, 0, NEWS)
    fast = rng.random(400) < -np.expm1(-(0.006 * news["elapsed"] + 1.0 * news["n_signals"]))
    shop = _visits(rng, 400, 0.0, 0, SHOP)
    stamped = shop | {"n_signals": shop["n_signals"] + 2, "changed": np.zeros(400, bool)}
    made = plan(_planner().snapshot(), 1.0, _joined(news | {"changed": fast}, stamped))
    assert -np.expm1(-made.signal_weights[0]) < 0.1
    believed, other = _group(made.signal_groups, 0, NEWS), _group(made.signal_groups, 0, SHOP)
    assert -np.expm1(-believed.signal_weight) == pytest.approx(-np.expm1(-1.0), abs=0.15)
    assert -np.expm1(-other.signal_weight) < 0.02


@pytest.mark.parametrize(("before", "after"), [(0.0, 2.5), (2.5, 0.0)])
def test_a_site_that_changes_its_ways_is_known_again_within_bounded_visits(before: float, after: float) -> None:
    """However long it lied or was honest: a thousand visits that heard of its source are all that counts."""
    rng = np.random.default_rng(12)

    def both(n: int, of_shop: float) -> dict[str, Any]:
        visits = _joined(_visits(rng, n, 2.5, 0, NEWS), _visits(rng, n, of_shop, 0, SHOP))
        mixed = rng.permutation(2 * n)
        return {name: column[mixed] for name, column in visits.items()}

    newest_first = _joined(both(2000, after), both(20_000, before))
    heard = newest_of_each(newest_first, 1000)
    shop = _group(plan(_planner().snapshot(), 1.0, heard).signal_groups, 0, SHOP)
    assert -np.expm1(-shop.signal_weight) == pytest.approx(-np.expm1(-after), abs=0.06)


def test_there_are_never_more_than_512_groups() -> None:
    """Those with most visits after an announcement have one."""
    n_sites = 600
    n = np.arange(n_sites) // 2 + 20
    host = np.repeat(np.arange(n_sites), n)
    rng = np.random.default_rng(7)
    visits = _visits(rng, host.size, 1.0, 0, 0) | {"host": host, "n_signals": np.ones(host.size, int)}
    groups = plan(_planner().snapshot(), 1.0, visits).signal_groups
    assert len(groups) == 512
    kept = [row[1] for row in groups.to_list()]
    assert min(kept) >= n_sites - 512 - 1


def test_visits_whose_pages_were_forgotten_count_for_the_source_only() -> None:
    """Their place is not known any more."""
    rng = np.random.default_rng(8)
    visits = _joined(_visits(rng, 500, 3.0, 0, -1), _visits(rng, 500, 3.0, 0, NEWS))
    made = plan(_planner().snapshot(), 1.0, visits)
    assert len(made.signal_groups) == 0
    assert made.signal_weights[0] > 2.0
    planner = _planner(3)
    planner.remove([1])
    assert planner.hosts([0, 1, 2]).tolist() == [NEWS, -1, NEWS]
    with pytest.raises(ValueError, match=r"pages must hold row numbers from 0 to 2"):
        planner.hosts([3])


def test_a_group_announces_at_a_rate_of_its_own() -> None:
    """Counted in its own pages, beside one announcement at the rate of its source."""
    planner = _planner(40)
    shop = np.arange(1, 40, 2)
    for now in np.arange(100.0, 2000.0, 100.0):
        planner.signalled(shop, 0, now)
    rng = np.random.default_rng(9)
    visits = _joined(_visits(rng, 500, 3.0, 0, NEWS), _visits(rng, 500, 0.0, 0, SHOP))
    groups = plan(planner.snapshot(), 1.0, visits).signal_groups
    news, shop_group = _group(groups, 0, NEWS), _group(groups, 0, SHOP)
    assert shop_group.signal_rate == pytest.approx(0.01, rel=0.1)
    assert news.signal_rate < 0.001


# -- what crawl values go by


def test_a_plan_keeps_its_groups_as_text_with_hosts_by_name() -> None:
    """Another process numbers hosts otherwise; one that knows no names does without."""
    rng = np.random.default_rng(11)
    visits = _joined(_visits(rng, 500, 3.0, 0, NEWS), _visits(rng, 500, 0.0, 0, SHOP))
    made = plan(_planner().snapshot(), 1.0, visits)
    data = json.loads(json.dumps(made.to_dict(["a.example", "b.example"])))
    read = Plan.from_dict(data, {"a.example": 3, "b.example": 7}.__getitem__)
    assert len(read.signal_groups) == 2
    group, original = _group(read.signal_groups, 0, 7), _group(made.signal_groups, 0, SHOP)
    assert group[2:] == original[2:]
    assert len(Plan.from_dict(data).signal_groups) == 0
