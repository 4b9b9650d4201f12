"""Estimators of how often pages change, as banks of arrays."""

from crawlsched.estimators.population_prior import learn_prior
from crawlsched.estimators.posterior import Posterior
from crawlsched.estimators.rate_grid import DEFAULT_RATES, DEFAULT_RATES_ID, grid_id

__all__ = ["DEFAULT_RATES", "DEFAULT_RATES_ID", "Posterior", "grid_id", "learn_prior"]
