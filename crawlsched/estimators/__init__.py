"""Estimators of how often pages change, as banks of arrays."""

from crawlsched.estimators.population_prior import learn_prior
from crawlsched.estimators.posterior import Posterior
from crawlsched.estimators.rate_grid import DEFAULT_RATES, DEFAULT_RATES_ID, grid_id
from crawlsched.estimators.signal_fit import SignalFit
from crawlsched.estimators.signal_quality import SignalQuality

__all__ = [
    "DEFAULT_RATES",
    "DEFAULT_RATES_ID",
    "Posterior",
    "SignalFit",
    "SignalQuality",
    "grid_id",
    "learn_prior",
]
