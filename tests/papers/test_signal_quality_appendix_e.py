"""Noisy signals, appendix E: bias of the counted and of the fitted precision and recall (Figures 10 and 11)."""

from functools import cache

import numpy as np

from crawlsched.estimators import SignalQuality


def simulated(rng, precision, recall, mean_time, crawls_per_change, horizon=100_000.0):
    """One page as in appendix E: changes, announcements of some of them, false announcements, and visits.

    The paper does not say how visits are spaced; here at random.
    """
    change_rate = 1 / mean_time
    changes = np.sort(rng.uniform(0, horizon, rng.poisson(change_rate * horizon)))
    true_signals = changes[rng.random(changes.size) < recall]
    false_rate = recall * change_rate * (1 - precision) / precision
    false_signals = rng.uniform(0, horizon, rng.poisson(false_rate * horizon))
    signals = np.sort(np.concatenate([true_signals, false_signals]))
    crawls = np.sort(rng.uniform(0, horizon, rng.poisson(crawls_per_change * change_rate * horizon)))
    n_signals = np.diff(np.searchsorted(signals, crawls))
    changed = np.diff(np.searchsorted(changes, crawls)) > 0
    return np.diff(crawls), n_signals, changed


@cache
def study():
    """Errors of counted and fitted (precision, recall) over 60 random settings."""
    rng = np.random.default_rng(0)
    counted, fitted, settings = [], [], []
    for _ in range(60):
        precision, recall = rng.uniform(0.2, 0.95, 2)
        mean_time, crawls = rng.uniform(2, 20), 4.0 ** rng.uniform(-1, 1)
        data = simulated(rng, precision, recall, mean_time, crawls)
        naive, fit = SignalQuality.fit_naive(*data), SignalQuality.fit(*data)
        counted.append((naive.precision - precision, naive.recall - recall))
        fitted.append((fit.precision - precision, fit.recall - recall))
        settings.append((precision, recall, mean_time, crawls, fit.change_rate * mean_time))
    return np.array(counted), np.array(fitted), np.array(settings)


def test_figure_10_counting_intervals_is_clearly_biased():
    """Counted precision and recall are far too high on average, and the more so the rarer the visits."""
    counted, _, settings = study()
    assert (counted.mean(axis=0) > 0.1).all()
    rare, frequent = settings[:, 3] < 0.5, settings[:, 3] > 2
    assert (counted[rare].mean(axis=0) > 2 * counted[frequent].mean(axis=0)).all()


def test_figure_11_the_fit_is_faithful():
    """The mean error of the fit is within four standard errors of 0 and below 0.005; typically it is below 0.01."""
    _, fitted, settings = study()
    error = fitted.std(axis=0) / np.sqrt(len(fitted))
    assert (abs(fitted.mean(axis=0)) < 4 * error).all()
    assert (abs(fitted.mean(axis=0)) < 0.005).all()
    assert (np.median(abs(fitted), axis=0) < 0.01).all()
    assert abs(np.median(settings[:, 4]) - 1) < 0.01  # and the change rate comes out


def test_the_printed_precision_is_that_of_the_erratum():
    """Precision = intervals with announcement and change by those with announcement, not by those with change."""
    n_signals, changed = [1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 1, 0]
    naive = SignalQuality.fit_naive(np.ones(6), n_signals, changed)
    assert round(naive.precision, 12) == 0.25
    assert round(naive.recall, 12) == 0.5
