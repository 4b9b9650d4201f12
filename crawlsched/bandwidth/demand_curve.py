"""Demand curve: how much bandwidth pages can use, by what a crawl has to be worth."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.bandwidth.announced import AnnouncedGain
from crawlsched.bandwidth.division import Gain, total_rate
from crawlsched.bandwidth.unannounced import EvenGain

__all__ = ["demand"]


def demand(
    threshold: ArrayLike,
    change_rate: ArrayLike,
    importance: ArrayLike = 1.0,
    recall: ArrayLike = 0.0,
    false_signal_rate: ArrayLike = 0.0,
) -> Any:
    """Give the total rate at which pages would be crawled if every crawl worth the threshold were made.

    Parameters
    ----------
    threshold : array_like
        Crawl values, in importance times seconds, 0 or more.

    Returns
    -------
    array_like of the shape of `threshold`
        Crawls per second. It falls as the threshold rises, and at a threshold of 0 it is ``inf`` unless every change is
        announced.

    Notes
    -----
    Σ f(ι*(Λ)) of Theorem 1 in Busa-Fekete et al.; its inverse is the `threshold` of `refresh_rates` and
    `refresh_rates_with_signals`. It answers what a larger bandwidth would bring: the threshold is the gain, in
    importance, per additional crawl per second.

    References
    ----------
    R. Busa-Fekete et al. (2025). A scalable crawling algorithm utilizing noisy change-indicating signals.

    Examples
    --------
    >>> from crawlsched.bandwidth import demand, refresh_rates
    >>> demand([0.1, 0.3, 1.0, 2.0], change_rate=[1.0, 2.0])
    array([4.3064..., 1.9002..., 0.        , 0.        ])
    >>> float(demand(refresh_rates([1.0, 2.0], 1.0, bandwidth=3.0).threshold, [1.0, 2.0]))
    3.0
    """
    thresholds = np.asarray(threshold, dtype=np.float64)
    if not (thresholds >= 0.0).all():
        raise ValueError(f"threshold contains {float(np.min(thresholds))!r}; every threshold must be 0 or more.")
    gain: Gain = AnnouncedGain.announced(change_rate, recall, false_signal_rate, importance)
    if not np.any(recall):
        gain = EvenGain(gain.change_rate, gain.importance)  # false announcements alone change nothing
    totals = [total_rate(gain, float(each)) for each in thresholds.ravel()]
    return np.array(totals).reshape(thresholds.shape)[()]
