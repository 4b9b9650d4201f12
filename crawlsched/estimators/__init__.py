"""Estimators of how often pages change: banks of arrays with one row of state per page.

`SignalQuality` and `learn_prior` learn what pages have in common.
"""

from crawlsched.estimators.estimator import Estimator
from crawlsched.estimators.frequency_classes import FrequencyClasses
from crawlsched.estimators.gamma_posterior import GammaPosterior
from crawlsched.estimators.last_modified import LastModified
from crawlsched.estimators.law_of_large_numbers import LawOfLargeNumbers
from crawlsched.estimators.learned_rates import LearnedRates
from crawlsched.estimators.maximum_likelihood import MaximumLikelihood
from crawlsched.estimators.moment_matching import MomentMatching
from crawlsched.estimators.momentum import Momentum
from crawlsched.estimators.online_parameters import OutsideTheorem
from crawlsched.estimators.population_prior import learn_prior
from crawlsched.estimators.posterior import Posterior
from crawlsched.estimators.rate_grid import DEFAULT_RATES as DEFAULT_RATES
from crawlsched.estimators.rate_grid import DEFAULT_RATES_ID as DEFAULT_RATES_ID
from crawlsched.estimators.rate_grid import grid_id
from crawlsched.estimators.signal_fit import SignalFit
from crawlsched.estimators.signal_quality import SignalQuality
from crawlsched.estimators.stochastic_approximation import StochasticApproximation
from crawlsched.estimators.visit_counts import BiasReduced, Naive, UniformPrior
from crawlsched.estimators.visit_frequency import BEST_FREQUENCY_RATIO, best_frequency_ratio, best_visit_interval

__all__ = [
    "BEST_FREQUENCY_RATIO",
    "BiasReduced",
    "Estimator",
    "FrequencyClasses",
    "GammaPosterior",
    "LastModified",
    "LawOfLargeNumbers",
    "LearnedRates",
    "MaximumLikelihood",
    "MomentMatching",
    "Momentum",
    "Naive",
    "OutsideTheorem",
    "Posterior",
    "SignalFit",
    "SignalQuality",
    "StochasticApproximation",
    "UniformPrior",
    "best_frequency_ratio",
    "best_visit_interval",
    "grid_id",
    "learn_prior",
]
