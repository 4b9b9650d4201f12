"""Figures: settings that can be set, numbers that repeat, tables that are written whole."""

import csv
import io

import pytest

from crawlsched.simulation.figures import FIGURES, Row, Settings, SimulationError, Table, repeated


def silent(done: int, total: int) -> None:
    """Show no progress."""


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"repetitions": 0}, "repetitions must be a whole number above 0, got 0."),
        ({"pages": [10, 0]}, "pages must be whole numbers above 0, got 10, 0."),
        ({"horizon": 0.0}, "horizon must be a number above 0 and finite, got 0.0."),
        ({"horizon": float("nan")}, "horizon must be a number above 0 and finite, got nan."),
        ({"seed": -1}, "seed must be a whole number, 0 or more, got -1."),
        ({"history": "changes.csv"}, "noisy-signals-2 takes no history; leave --history out."),
    ],
)
def test_a_setting_that_is_not_possible_is_refused_in_one_sentence(wrong: dict[str, object], sentence: str) -> None:
    """The sentence names the setting, the value and what is allowed."""
    with pytest.raises(SimulationError) as caught:
        FIGURES["noisy-signals-2"].with_settings(**wrong)  # type: ignore[arg-type]
    assert str(caught.value) == sentence


def test_more_repetitions_leave_those_before_as_they_were() -> None:
    """Every repetition and every case in it has random numbers of its own, which depend on the seed alone."""

    def drawn(repetitions: int, seed: int) -> list[Row]:
        run = repeated(["repetition", "case"], lambda _, case, rng, k: {("draw", k, case): rng.random()}, [1, 2])
        return list(run(Settings(repetitions, seed=seed), silent).rows)

    assert drawn(5, seed=1)[:6] == drawn(3, seed=1)
    assert len({row.mean for row in [*drawn(5, seed=1), *drawn(5, seed=2)]}) == 20


def test_a_table_is_written_with_all_digits() -> None:
    """What is read back is what was there; there is no standard error of a single repetition."""
    rows = (Row("x", (1, "a"), 1 / 3, 0.1, 2), Row("y", (2, ""), 2e-9, float("nan"), 1))
    file = io.StringIO(newline="")
    Table(("pages", "policy"), rows).write(file)
    read = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert [float(line["mean"]) for line in read] == [1 / 3, 2e-9]
    assert [line["standard_error"] for line in read] == ["0.1", ""]
    assert [(line["quantity"], line["pages"], line["policy"]) for line in read] == [("x", "1", "a"), ("y", "2", "")]
