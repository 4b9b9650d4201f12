"""Estimators of how often pages change: banks of arrays with one row of state per page.

`SignalQuality` and `learn_prior` learn what pages have in common.
"""

from crawlsched.estimators.estimator import Estimator
from crawlsched.estimators.frequency_classes import FrequencyClasses
from crawlsched.estimators.gamma_posterior import GammaPosterior
from crawlsched.estimators.learned_rates import LearnedRates
from crawlsched.estimators.online_estimators import LawOfLargeNumbers, Momentum, OutsideTheorem, StochasticApproximation
from crawlsched.estimators.population_prior import learn_prior
from crawlsched.estimators.posterior import DEFAULT_RATES as DEFAULT_RATES
from crawlsched.estimators.posterior import DEFAULT_RATES_ID as DEFAULT_RATES_ID
from crawlsched.estimators.posterior import Posterior, grid_id
from crawlsched.estimators.signal_fit import SignalFit
from crawlsched.estimators.signal_quality import SignalQuality
from crawlsched.estimators.solved_rates import MaximumLikelihood, MomentMatching
from crawlsched.estimators.visit_counts import (
    BiasReduced,
    LastModified,
    Naive,
    UniformPrior,
    best_frequency_ratio,
    best_visit_interval,
)

__all__ = [
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
