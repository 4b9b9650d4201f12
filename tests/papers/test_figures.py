"""`crawlsched simulate`: the figures of the papers beside what is claimed of them, closed forms and printed values."""

import tomllib
import warnings
from math import log
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas

from crawlsched.bandwidth import poisson_crawl_rates
from crawlsched.exceptions import CrawlschedError
from crawlsched.simulation.figures import FIGURES, SimulationError, Table
from crawlsched.simulation.figures.frequency_of_change import SIMULATED
from tests.papers.claims import claims_of

SIZES = tomllib.loads((Path(__file__).parent / "figures.toml").read_text())
# In these nothing is random.
EXACT = ("frequency-of-change-6", "frequency-of-change-19", "noisy-signals-6")
FAILS = {name: set(size.pop("fails", ())) for name, size in SIZES.items()}


def silent(done: int, total: int) -> None:
    """Show no progress."""


def run(name: str, **settings: object) -> Table:
    figure = FIGURES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return figure.run(figure.with_settings(**{**SIZES.get(name, {}), **settings}), silent)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SIZES)
def test_its_claims_come_out_as_documented(name: str) -> None:
    """Each part of what the paper says holds, but for those of which docs/notes/simulate.md says why they do not."""
    claims = claims_of(name, run(name))
    failed = {number for number, claim in enumerate(claims) if claim.held is False}
    assert failed == FAILS[name], [claim.sentence for claim in claims]
    assert all(claim.held is not None for claim in claims)


@pytest.mark.parametrize("name", FIGURES)
def test_it_is_the_same_for_the_same_seed_and_can_be_drawn_and_told_from_a_single_repetition(name: str) -> None:
    """With one repetition there are no standard errors; claims that need them cannot be told; it is drawn anyway."""
    default = FIGURES[name].settings
    small: dict[str, object] = {"repetitions": 1, "pages": [50]} if default.pages else {"repetitions": 1}
    if default.horizon is not None:
        small["horizon"] = 20.0 if default.horizon > 20.0 else 3.0
    table = run(name, **small)
    assert repr(run(name, **small)) == repr(table)
    assert name in EXACT or repr(run(name, **small, seed=2)) != repr(table)
    assert all(claim.sentence for claim in claims_of(name, table))
    canvas = Canvas(layout="constrained")
    FigureCanvasAgg(canvas)
    FIGURES[name].draw(table, canvas)
    canvas.canvas.draw()
    assert canvas.axes


def test_a_given_history_takes_the_place_of_the_generated_one(tmp_path: Path) -> None:
    """Of several pages the one that changes most is taken; the Q-Q plot tells that its changes are not random."""
    times = 1e9 + 3600.0 * np.arange(2000)
    lines = [f"7,{time:.3f}" for time in times] + [f"8,{time:.3f}" for time in times[::40]]
    history = tmp_path / "changes.csv"
    history.write_text("\n".join(["page,time", *lines, ""]))
    table = run("online-estimators-1", repetitions=3, history=history)
    assert claims_of("online-estimators-1", table)[0].held is False
    quantiles = table.some("quantile of the times between changes")
    assert [row.mean for row in quantiles] == pytest.approx([1.0] * 49)  # one change an hour


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("page,time\n", "must hold changes (page,time) of a page, but there are none."),
        ("page,time\n1,2\n", "must hold a page with at least 100 changes, got 1."),
        ("page,time\n1,nan\n", "must give finite times, in POSIX seconds, for all its rows."),
        ("time\n1\n", "must begin with a line naming the columns page,time, but page is missing."),
    ],
)
def test_a_history_that_cannot_be_used_is_refused_in_one_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    """The sentence names the file and what it must hold."""
    history = tmp_path / "changes.csv"
    history.write_text(content)
    with pytest.raises(CrawlschedError) as caught:
        run("online-estimators-1", history=history)
    assert str(caught.value) == f"{history} {sentence}"


def test_the_optimal_rates_are_those_of_azar_et_al() -> None:
    """The straight lines of Figure 6 are the solution with the true rates, of pages of both kinds."""
    table = run("online-estimators-6", repetitions=1, horizon=1.0)
    kinds = np.array([4.5 / 7] * 7 + [0.5 / 43] * 43)
    best = poisson_crawl_rates(kinds, np.where(kinds > 0.1, 2.0, 1.0), 5.0).rates
    fast = table.one("crawl rate", page="frequently changing page 5", round=0, estimator="optimum")
    slow = table.one("crawl rate", page="slowly changing page 10", round=0, estimator="optimum")
    assert (fast.mean, slow.mean) == pytest.approx((best[4], best[9]))
    assert fast.standard_error == 0.0


def test_figure_18_of_a_history_counts_the_days_on_which_its_pages_changed(tmp_path: Path) -> None:
    """A page that changed every ten days: both estimates by hand, and how far off they are."""
    history = tmp_path / "changes.csv"
    lines = ["page,time", *(f"7,{86400.0 * (day + 0.5)}" for day in range(0, 141, 10)), f"8,{86400.0 * 140}"]
    history.write_text("\n".join([*lines, ""]))
    table = run("frequency-of-change-18", history=history, repetitions=2)
    # Of the last 127 days before the last change 12 had one, and so had 12 of their 18 weeks.
    naive, ours = 12 / 18 / 7, -log((6 + 0.5) / (18 + 0.5)) / 7
    for name, estimate in (("naive", naive), ("ours", ours)):
        off = table.one("mean distance of the ratio from 1", estimator=name, ratio=0.0).mean
        assert off == pytest.approx(abs(estimate / (12 / 127) - 1))
    history.write_text("page,time\n1,0\n1,86400\n")
    with pytest.raises(SimulationError, match="must hold changes"):
        run("frequency-of-change-18", history=history)


@pytest.mark.parametrize("name", [f"frequency-of-change-{number}" for number in (3, 4, 5, 7, 11, 12, 14)])
def test_curves_are_exact(name: str) -> None:
    """Their numbers have no standard error; that what is simulated lies on them is a claim of each figure."""
    table = run(name, repetitions=2, pages=[10])
    exact = [row for row in table.rows if not row.quantity.startswith(SIMULATED)]
    assert exact
    assert all(row.standard_error == 0.0 for row in exact)
