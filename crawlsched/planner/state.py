"""What a planner knows as arrays, so that a crawl can begin where the last one ended without reading its store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.frontier import Filed, file_anew, filed, put_back
from crawlsched.pages import FREE
from crawlsched.planner.planner import Planner
from crawlsched.planner.plans.plan import Plan

__all__ = ["planner_arrays", "planner_facts", "plans_in_turn", "restore_planner"]


def plans_in_turn(planner: Planner) -> tuple[Plan | None, ...]:
    """Return the plan in force; or the one that is being adopted, after the one still in force for the other pages.

    None stands for what a planner supposes before its first plan.
    """
    in_force = planner.in_force
    before, coming = in_force.plan_before, in_force.plan_coming
    if planner.rule != "posterior" or coming is None or in_force.adopted_below is None:
        return (planner.plan,)
    return before, coming


def planner_facts(planner: Planner) -> dict[str, Any]:
    """Return what says whether a planner can go on with the arrays of this one, and from where, as JSON can hold it."""
    frontier = planner.frontier if planner.has_frontier else None
    facts = {
        "grid": planner.grid,
        "n_pages": planner.pages.n,
        "time": planner.now if frontier is not None else None,
        "threshold": planner.threshold,
        "rules": _rules(planner),
    }
    if frontier is not None:
        where = filed(frontier, 0)  # of no page: the arrays are large, and `planner_arrays` has them
        facts |= {
            # By the papers' rules no page counts as filed by a plan.
            "n_filed": planner.pages.n if planner.rule == "posterior" else 0,
            "n_adopted": planner.in_force.adopted_below,
            **{name: getattr(where, name) for name in Filed._fields[2:]},
        }
    return facts


def planner_arrays(planner: Planner) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of all pages, their posterior, and where each is filed; views."""
    n = planner.pages.n
    arrays = {f"pages.{name}": array for name, array in planner.pages.everything().items()}
    arrays |= {f"further.{name}": array for name, array in planner.further.table().items()}
    arrays["own_precision"] = planner.own_precision.roots[:n]
    arrays["posterior"] = planner.posterior.codes(n)
    if planner.has_frontier:
        where = filed(planner.frontier, n)
        arrays |= {"filed.place": where.place, "filed.alarm": where.alarm}
    return arrays


def restore_planner(
    planner: Planner,
    facts: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    now: float,
) -> None:
    """Take over what `planner_facts` and `planner_arrays` returned, into a planner without pages.

    Parameters
    ----------
    planner : Planner
        `plans_in_turn` are in force, the second, if there is one, for as many pages as had adopted it.
    facts, arrays : mapping
    now : float
        POSIX seconds, not before the arrays were taken.
    """
    now = planner.at(now)
    planner.pages.restore(_named("pages.", arrays))
    planner.further.restore(_named("further.", arrays))
    planner.own_precision.restore(arrays["own_precision"])
    planner.posterior.set_codes(arrays["posterior"])
    planner.threshold = facts["threshold"]
    if "filed.place" not in arrays:
        return
    if facts["n_filed"] and facts["rules"] == _rules(planner):
        numbers = [facts[name] for name in Filed._fields[2:]]
        put_back(planner.frontier, Filed(arrays["filed.place"], arrays["filed.alarm"], *numbers), now)
        return
    file_anew(planner.frontier, np.flatnonzero(planner.pages.state[: planner.pages.n] != FREE), now)


def _rules(planner: Planner) -> list[Any]:
    """Return what else decides where a page is filed."""
    longest, horizon = planner.max_crawl_interval, planner.discovery_horizon
    rules = [list(limits) for limits in planner.intervals.rules]
    return [planner.rule, planner.min_crawl_interval, longest, horizon, *([rules] if rules else [])]


def _named(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
