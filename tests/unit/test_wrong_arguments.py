"""Wrong arguments: the calls of `wrong_arguments.txt` are refused with the sentences that stand below them.

Each names the argument, the value and what is allowed.
"""

import re
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crawlsched import bandwidth, crawl_value, estimators, freshness, planner, simulation
from crawlsched.change_detection import Recipe
from crawlsched.estimators import Estimator
from crawlsched.planner.reports.outlook import Outlook
from crawlsched.simulation import figures
from crawlsched.slot_clock import SlotClock
from tests.planners import crawled_pages

CALLS = re.findall(r"^(\S.*)\n {4}(.+)$", (Path(__file__).parent / "wrong_arguments.txt").read_text(), re.MULTILINE)
ROOMS = (np, bandwidth, crawl_value, estimators, freshness, planner, simulation, figures)
NAMES: dict[str, Any] = {name: thing for room in ROOMS for name, thing in vars(room).items()}
NAMES |= {thing.__name__: thing for thing in (Outlook, Recipe, SlotClock, crawled_pages)}
NONE, ONE = np.zeros(0), np.ones(1)
NAMES["history"] = simulation.History(0 * ONE.astype(int), 0 * ONE, 9 * ONE, ONE, NONE.astype(int), NONE)

BANKS = [made for made in vars(estimators).values() if isinstance(made, type) and issubclass(made, Estimator)][1:]
TAUGHT = [made(5) for made in BANKS]
for bank in TAUGHT:
    bank.update(range(5), 60.0, [True, False, True, False, True])
LEARNED = [bank.rows_to_bytes(range(5)) for bank in TAUGHT]


def divide_with_signals(change_rate: Any, importance: Any, bandwidth: float) -> object:
    return NAMES["refresh_rates_with_signals"](change_rate, 0.5, 0.1, importance, bandwidth)


DIVISIONS = [*(NAMES[f"{kind}_rates"] for kind in ("refresh", "poisson_crawl", "harmonic")), divide_with_signals]
# What a name in the table stands for, if for more than one thing.
MEANINGS = {"divide": DIVISIONS, "made": BANKS, "taught": TAUGHT}


@pytest.mark.parametrize(("call", "sentence"), CALLS, ids=[call for call, _ in CALLS])
def test_a_wrong_argument_is_refused_in_one_sentence(call: str, sentence: str) -> None:
    """And what is known already stays as it was."""
    name = re.split(r"\W", call)[0]
    for meaning in MEANINGS.get(name, [NAMES.get(name)]):
        with pytest.raises(ValueError) as refused:
            eval(call, {**NAMES, name: meaning})
        assert OutputChecker().check_output(sentence, str(refused.value), ELLIPSIS)
    assert [bank.rows_to_bytes(range(5)) for bank in TAUGHT] == LEARNED
