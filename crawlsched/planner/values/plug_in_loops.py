"""When the value of a page by one of the papers' rules reaches a level, in plain Python that numba can compile."""

from __future__ import annotations

from math import exp, inf, sqrt

from crawlsched.crawl_value.elements import element_terms

__all__ = ["EXAMPLES", "HIGHEST", "point_crossing", "tangent_wait"]

#: Values have to be finite; only a page that never changes and was announced by a rule that trusts blindly gets here.
HIGHEST = 1e300
# A crossing time is approached by so many tangents at most, until one adds less than this to the wait.
_MOST_TANGENTS = 4
_SHORT_STEP = 0.02


def tangent_wait(aim: float, value: float, slope: float, curvature: float) -> float:
    """Return in how many seconds, at the earliest, a value reaches `aim`; see `signalled.SignalledValues`."""
    missing = aim - value
    if missing <= 0:
        return 0.0
    rise = slope + sqrt(slope * slope + 2.0 * curvature * missing)
    return 2.0 * missing / rise * (1 - 1e-9) if rise > 0 else inf


def point_crossing(
    change_rate: float, alpha: float, gamma: float, kappa: float, max_terms: float, stale: float, aim: float
) -> float:
    """Return for how long, from where the staleness is `stale`, the value per importance is certainly below `aim`."""
    # Each tangent (see `RuleValues`) reaches the value too early, and from there the next is closer.
    if alpha == 0.0 or aim * change_rate >= 1.0:
        return inf
    wait = 0.0
    for _ in range(_MOST_TANGENTS):
        value, rise = element_terms(stale, alpha, gamma, kappa, max_terms)
        step = tangent_wait(aim, value, alpha * rise, alpha * exp(-stale))
        wait += step
        stale += alpha * step
        if step <= _SHORT_STEP * wait:
            break
    return wait


#: Arguments of the function that is called from outside, as numba is to compile it.
EXAMPLES = {"point_crossing": (0.5, 0.5, 0.5, 0.5, inf, 0.5, 0.1)}
