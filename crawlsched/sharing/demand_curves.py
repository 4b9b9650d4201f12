"""Demand curves: what each process would make of more or less of the rate, and the rate divided by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEVELS", "divided", "read_curve", "written_curve"]

FloatArray = NDArray[np.float64]
Name = TypeVar("Name", str, int)

#: The crawl values at which every curve is published, rising; importance times seconds.
LEVELS: FloatArray = np.geomspace(1e-4, 1e8, 97)
# Each shard gets this part of an equal share at least, so that no shard is blind for its changes.
_LEAST_SHARE = 0.002
# Below this a demand is as good as none; logarithms are taken of it.
_NOTHING = 1e-12
# What was reckoned for less than this share of the pages says nothing of the rest.
_LEAST_KNOWN = 0.1


def written_curve(demand: FloatArray, n_planned: int, n_pages: int) -> str | None:
    """Pack a demand curve (`Plan.demand`) of `n_planned` pages at the common levels, for the `n_pages` that there are.

    None: it says too little of so many.

    >>> demand = np.array([[10.0, 1.0], [1.0, 4.0]])
    >>> float(np.interp(1.0, LEVELS, read_curve(written_curve(demand, n_planned=10, n_pages=30))).round(2))
    12.0
    >>> written_curve(demand, n_planned=10, n_pages=1000) is None
    True
    """
    if not len(demand) or n_planned < _LEAST_KNOWN * n_pages:
        return None
    level, rate = np.log(demand[::-1, 0]), np.log(np.maximum(demand[::-1, 1], _NOTHING))
    asked = np.log(LEVELS)
    curve = np.exp(np.interp(asked, level, rate)) * n_pages / n_planned
    # Above its highest value nothing is wanted; below its lowest, no more than there.
    curve[asked > level[-1]] = 0.0
    return curve.astype("<f4").tobytes().hex()


def read_curve(packed: object) -> FloatArray | None:
    """Unpack what `written_curve` has packed; None if it is something else."""
    try:
        curve = np.frombuffer(bytes.fromhex(packed), "<f4").astype(np.float64)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if curve.size != LEVELS.size:
        return None
    return curve if np.isfinite(curve).all() and (curve >= 0).all() else None


def divided(rate: float, curves: Mapping[Name, FloatArray | None], n_pages: Mapping[Name, int]) -> dict[Name, float]:
    """Divide a rate so that the last crawl of each shard is worth the same; without its curve it gets one by pages.

    Examples
    --------
    >>> busy, calm = (np.maximum(1e3 - LEVELS, 0) * n for n in (3.0, 1.0))
    >>> shares = divided(8.0, {"a": busy, "b": calm}, {"a": 10, "b": 10})
    >>> round(shares["a"] / shares["b"], 1), round(sum(shares.values()), 6)
    (3.0, 8.0)
    >>> divided(8.0, {"a": None, "b": None}, {"a": 2, "b": 0})
    {'a': 6.0, 'b': 2.0}
    """
    if not curves:
        return {}
    weights = {name: n_pages.get(name, 0) + 1.0 for name in curves}
    total = sum(weights.values())
    shares = {name: rate * weights[name] / total for name in curves if curves[name] is None}
    known = [name for name in curves if name not in shares]
    left = rate - sum(shares.values())
    if known:
        least = _LEAST_SHARE * rate / len(curves)
        floors = min(least * len(known), left)
        for name, share in zip(known, _at_one_level(left - floors, known, curves, weights), strict=True):
            shares[name] = share + floors / len(known)
    return {name: float(shares[name]) for name in curves}


def _at_one_level(
    rate: float, known: list[Name], curves: Mapping[Name, FloatArray | None], weights: Mapping[Name, float]
) -> FloatArray:
    wanted = np.array([curves[name] for name in known], np.float64)
    total = wanted.sum(axis=0)
    pages = np.array([weights[name] for name in known])
    if not total.max() > 0.0:
        by_pages: FloatArray = rate * pages / pages.sum()
        return by_pages
    # The totals fall as the level rises; the level at which they are the rate is found between two of them.
    level = np.interp(-rate, -total, np.arange(total.size))
    below = min(int(level), total.size - 2)
    share = level - below
    got: FloatArray = wanted[:, below] * (1 - share) + wanted[:, below + 1] * share
    if not got.sum() > 0.0:  # the rate is less than what the most valuable pages alone want
        got = wanted[:, int(np.flatnonzero(total)[-1])]
    shares: FloatArray = rate * got / got.sum()
    return shares
