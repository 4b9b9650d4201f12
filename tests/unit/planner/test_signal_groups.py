"""What announcements are worth, for each part of a site: learned, pooled, bounded, and what crawl values go by."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from crawlsched.change_signals import newest_of_each, part_number
from crawlsched.planner import Plan, Planner, explain, plan
from crawlsched.planner.parameters.signal_groups import WHOLE_SITE, SignalGroup, SignalGroups

NEWS, SHOP = part_number("https://a/news/1"), part_number("https://a/shop/1")


def _free(_host: int, now: float) -> float:
    return now


def _visits(rng: np.random.Generator, n: int, weight: float, source: int, host: int, part: int) -> dict[str, Any]:
    """Return visits to pages of one group, whose announcements are worth `weight` nats."""
    elapsed = rng.exponential(100.0, n)
    n_signals = rng.poisson(0.01 * elapsed)
    changed = rng.random(n) < -np.expm1(-(0.002 * elapsed + weight * n_signals))
    columns = {"elapsed": elapsed, "n_signals": n_signals, "changed": changed}
    return columns | {name: np.full(n, value) for name, value in (("source", source), ("host", host), ("part", part))}


def _joined(*visits: dict[str, Any]) -> dict[str, Any]:
    return {name: np.concatenate([each[name] for each in visits]) for name in visits[0]}


def _planner(n_pages: int = 4) -> Planner:
    planner = Planner(1.0)
    pages = planner.add(0, 0.0, n=n_pages, part=np.where(np.arange(n_pages) % 2 == 0, NEWS, SHOP))
    planner.covered(pages, 0, 0.0)
    return planner


def _adopt(planner: Planner, made: Plan, now: float) -> None:
    planner.adopt(made, now)
    while planner.work(now):
        pass


# -- a site whose one sitemap is honest for /news/ and lies for /shop/

N_PAGES, BANDWIDTH, END, MEASURED_FROM = 80, 0.1, 18_000.0, 6_000.0
CHANGE_RATE, FALSE_RATE, RECALL = 1 / 1500.0, 1 / 400.0, 0.9


def _run(seed: int, *, by_part: bool) -> tuple[float, Planner]:
    """Return the freshness kept with one quality for the sitemap, or one for each part of its site."""
    rng = np.random.default_rng(seed)
    planner = _planner(N_PAGES)
    pages = np.arange(N_PAGES)
    news = pages % 2 == 0
    stale = np.zeros(N_PAGES, bool)
    visits: list[tuple[Any, ...]] = []
    made, fresh, next_plan = None, [], 2000.0
    for slot in range(1, int(END * BANDWIDTH) + 1):
        now = slot / BANDWIDTH
        changes = rng.random(N_PAGES) < -np.expm1(-CHANGE_RATE / BANDWIDTH)
        told = changes & (rng.random(N_PAGES) < RECALL)
        lies = rng.random(N_PAGES) < -np.expm1(-FALSE_RATE / BANDWIDTH)
        stale |= changes
        planner.signalled(pages[np.where(news, told, lies)], 0, now)
        pick = planner.pick(now, _free)
        assert pick is not None
        first = planner.pages.n_crawls[pick.page] == 0
        found = planner.crawled(pick.page, now, None if first else bool(stale[pick.page]))
        stale[pick.page] = False
        if found is not None:
            visits.append((found.page, found.elapsed, found.n_signals, found.source, found.changed))
        if now >= next_plan:
            names = ("page", "elapsed", "n_signals", "source", "changed")
            columns = {name: np.array(c) for name, c in zip(names, zip(*visits, strict=True), strict=True)}
            if by_part:
                columns["host"], columns["part"] = planner.places(columns["page"])
            made = plan(planner.snapshot(), BANDWIDTH, columns, made)
            _adopt(planner, made, now)
            next_plan += 3000.0
        if now > MEASURED_FROM:
            fresh.append(1.0 - stale.mean())
    return float(np.mean(fresh)), planner


@pytest.mark.statistics
def test_a_sitemap_that_is_honest_for_news_and_lies_for_the_shop_is_believed_for_news_only() -> None:
    """The crawl goes by it: on the same histories pages are fresher than with one quality for the sitemap."""
    gained = []
    for seed in range(1, 12):
        as_one, _ = _run(seed, by_part=False)
        by_part, planner = _run(seed, by_part=True)
        gained.append(by_part - as_one)
        _, weight = planner.announcements.signals(np.arange(N_PAGES))
        precision = -np.expm1(-weight)
        assert precision[::2].mean() > 0.95
        assert precision[1::2].mean() < 0.1
        assert explain(planner, 0, END).precision_of == "part"
    # By less than if pages were not told apart by their own visits, too.
    assert np.mean(gained) > 0.0


# -- learning


def test_parts_are_learned_where_they_differ_and_the_site_where_sites_do() -> None:
    """Two sites of one source, and two parts of the first: each gets what its own visits show."""
    rng = np.random.default_rng(5)
    visits = _joined(
        _visits(rng, 2000, 3.0, 0, 0, NEWS), _visits(rng, 2000, 0.0, 0, 0, SHOP), _visits(rng, 2000, 1.0, 0, 1, NEWS)
    )
    groups = plan(_planner().snapshot(), 1.0, visits).signal_groups
    assert len(groups) == 4
    wanted = {(0, NEWS): 3.0, (0, SHOP): 0.0, (1, WHOLE_SITE): 1.0}
    for (host, part), weight in wanted.items():
        group = groups.of(0, host, part)
        assert group is not None
        assert group[:3] == (0, host, part)
        assert -np.expm1(-group.signal_weight) == pytest.approx(-np.expm1(-weight), abs=0.05)
    # The other site has one part only: that is the site.
    assert groups.of(0, 1, NEWS) == groups.of(0, 1, WHOLE_SITE)
    assert groups.of(1, 0, NEWS) is None


def test_a_part_with_little_evidence_stays_near_its_source() -> None:
    """Ten lies among thousands of true announcements leave a part between the two; nine are not looked at."""
    rng = np.random.default_rng(6)
    honest = _visits(rng, 3000, 3.0, 0, 0, NEWS)
    for n, fitted in ((10, True), (9, False)):
        few = {
            "elapsed": np.full(n, 1.0), "n_signals": np.ones(n, int), "changed": np.zeros(n, bool),
            "source": np.zeros(n, int), "host": np.zeros(n, int), "part": np.full(n, SHOP),
        }  # fmt: skip
        group = plan(_planner().snapshot(), 1.0, _joined(honest, few)).signal_groups.of(0, 0, SHOP)
        assert (group is not None) == fitted
        if group is not None:
            # Ten of the source's kind, of which 95 % are true, and ten lies.
            assert -np.expm1(-group.signal_weight) == pytest.approx(0.475, abs=0.03)


def test_a_part_that_changes_often_is_believed_beside_one_that_is_stamped_and_never_changes() -> None:
    """Taken together announcements and changes have nothing to do with each other; that must not count against it."""
    rng = np.random.default_rng(3)
    news = _visits(rng, 400, 1.0, 0, 0, NEWS)
    fast = rng.random(400) < -np.expm1(-(0.006 * news["elapsed"] + 1.0 * news["n_signals"]))
    shop = _visits(rng, 400, 0.0, 0, 0, SHOP)
    stamped = shop | {"n_signals": shop["n_signals"] + 2, "changed": np.zeros(400, bool)}
    made = plan(_planner().snapshot(), 1.0, _joined(news | {"changed": fast}, stamped))
    assert -np.expm1(-made.signal_weights[0]) < 0.1
    believed, other = made.signal_groups.of(0, 0, NEWS), made.signal_groups.of(0, 0, SHOP)
    assert believed is not None
    assert other is not None
    assert -np.expm1(-believed.signal_weight) == pytest.approx(-np.expm1(-1.0), abs=0.15)
    assert -np.expm1(-other.signal_weight) < 0.02


@pytest.mark.parametrize(("before", "after"), [(0.0, 2.5), (2.5, 0.0)])
def test_a_part_that_changes_its_ways_is_known_again_within_bounded_visits(before: float, after: float) -> None:
    """However long it lied or was honest: a thousand visits that heard of its source are all that counts."""
    rng = np.random.default_rng(12)

    def both(n: int, of_shop: float) -> dict[str, Any]:
        visits = _joined(_visits(rng, n, 2.5, 0, 0, NEWS), _visits(rng, n, of_shop, 0, 0, SHOP))
        mixed = rng.permutation(2 * n)
        return {name: column[mixed] for name, column in visits.items()}

    newest_first = _joined(both(2000, after), both(20_000, before))
    heard = newest_of_each(newest_first, 1000)
    shop = plan(_planner().snapshot(), 1.0, heard).signal_groups.of(0, 0, SHOP)
    assert shop is not None
    assert -np.expm1(-shop.signal_weight) == pytest.approx(-np.expm1(-after), abs=0.06)


def test_there_are_never_more_than_512_groups_of_a_kind() -> None:
    """Those with most visits after an announcement have one."""
    n_parts = 600
    n = np.arange(n_parts) // 2 + 20
    part = np.repeat(np.arange(n_parts), n)
    rng = np.random.default_rng(7)
    visits = _visits(rng, part.size, 1.0, 0, 0, 0) | {"part": part, "n_signals": np.ones(part.size, int)}
    groups = plan(_planner().snapshot(), 1.0, visits).signal_groups
    assert len(groups) == 512
    kept = [row[2] for row in groups.to_list()]
    assert min(kept) >= n_parts - 512 - 1


def test_visits_whose_pages_were_forgotten_count_for_the_source_only() -> None:
    """Their place is not known any more."""
    rng = np.random.default_rng(8)
    visits = _joined(_visits(rng, 500, 3.0, 0, -1, 0), _visits(rng, 500, 3.0, 0, 0, NEWS))
    made = plan(_planner().snapshot(), 1.0, visits)
    assert len(made.signal_groups) == 0
    assert made.signal_weights[0] > 2.0
    planner = _planner(3)
    planner.remove([1])
    hosts, parts = planner.places([0, 1, 2])
    assert hosts.tolist() == [0, -1, 0]
    assert parts.tolist()[::2] == [NEWS, NEWS]
    with pytest.raises(ValueError, match=r"pages must hold row numbers from 0 to 2"):
        planner.places([3])


def test_a_group_announces_at_a_rate_of_its_own() -> None:
    """Counted in its own pages, beside one announcement at the rate of its source."""
    planner = _planner(40)
    shop = np.arange(1, 40, 2)
    for now in np.arange(100.0, 2000.0, 100.0):
        planner.signalled(shop, 0, now)
    rng = np.random.default_rng(9)
    visits = _joined(_visits(rng, 500, 3.0, 0, 0, NEWS), _visits(rng, 500, 0.0, 0, 0, SHOP))
    groups = plan(planner.snapshot(), 1.0, visits).signal_groups
    news, shop_group = groups.of(0, 0, NEWS), groups.of(0, 0, SHOP)
    assert news is not None
    assert shop_group is not None
    assert shop_group.signal_rate == pytest.approx(0.01, rel=0.1)
    assert news.signal_rate < 0.001


# -- what crawl values go by


def _groups(rng: np.random.Generator, n: int) -> SignalGroups:
    return SignalGroups(
        {key: SignalGroup(*key, float(rng.uniform(0, 3)), float(rng.uniform(1e-6, 1e-3)), 10)
         for key in {(int(rng.integers(3)), int(rng.integers(4)), int(rng.integers(-1, 6))) for _ in range(n)}}.values()
    )  # fmt: skip


@pytest.mark.parametrize("n", [0, 1, 40])
def test_one_page_and_many_pages_find_the_same_group(n: int) -> None:
    """For sources, hosts and parts with and without a group."""
    rng = np.random.default_rng(n)
    groups = _groups(rng, n)
    sources, hosts, parts = rng.integers(0, 5, 300), rng.integers(0, 6, 300), rng.integers(0, 8, 300)
    rows = groups.rows(sources, hosts.astype(np.int32), parts.astype(np.uint16))
    for row, key in zip(rows.tolist(), zip(sources.tolist(), hosts.tolist(), parts.tolist(), strict=True), strict=True):
        group = groups.of(*key)
        assert (group is None) == (row < 0)
        if group is not None:
            assert (group.signal_weight, group.signal_rate) == (groups.signal_weights[row], groups.signal_rates[row])


def test_crawl_values_of_one_page_and_of_many_are_the_same_with_groups() -> None:
    """To the last bit, also for a page that a second source covers."""
    planner = _planner(20)
    planner.covered([4, 5], 1, 1.0)
    for page in range(20):
        planner.crawled(page, 10.0 + page, changed=None)
        planner.signalled([page], 0, 60.0)
    planner.signalled([4, 5], 1, 70.0)
    rng = np.random.default_rng(10)
    visits = _joined(
        *(_visits(rng, 500, w, s, 0, p) for w, s, p in ((3, 0, NEWS), (0.1, 0, SHOP), (2, 1, NEWS), (0.2, 1, SHOP)))
    )
    _adopt(planner, plan(planner.snapshot(), 1.0, visits), 80.0)
    pages = np.arange(20)
    rates, weights = planner.announcements.signals(pages)
    assert np.unique(weights[[0, 1, 4, 5]]).size == 4
    many = planner.values.value_at(pages, 100.0)
    for page in pages.tolist():
        assert planner.announcements.signals_one(page) == (rates[page], weights[page])
        assert planner.values.value_at(np.array([page]), 100.0).item() == pytest.approx(many[page], rel=1e-12)


def test_a_plan_keeps_its_groups_as_text_with_hosts_by_name() -> None:
    """Another process numbers hosts otherwise; one that knows no names does without; old plans have none."""
    rng = np.random.default_rng(11)
    visits = _joined(_visits(rng, 500, 3.0, 0, 1, NEWS), _visits(rng, 500, 0.0, 0, 1, SHOP))
    made = plan(_planner().snapshot(), 1.0, visits)
    data = json.loads(json.dumps(made.to_dict(["a.example", "b.example"])))
    read = Plan.from_dict(data, {"b.example": 7}.__getitem__)
    assert len(read.signal_groups) == 2
    group, original = read.signal_groups.of(0, 7, SHOP), made.signal_groups.of(0, 1, SHOP)
    assert group is not None
    assert original is not None
    assert group[3:] == original[3:]
    assert len(Plan.from_dict(data).signal_groups) == 0
    del data["signal_groups"]
    assert len(Plan.from_dict(data).signal_groups) == 0
