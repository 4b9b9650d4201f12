"""Bandwidth: how many crawls per second each page should get."""

from crawlsched.bandwidth.harmonic import harmonic_rates
from crawlsched.bandwidth.low_discrepancy import low_discrepancy_schedule
from crawlsched.bandwidth.poisson import poisson_crawl_rates

__all__ = ["harmonic_rates", "low_discrepancy_schedule", "poisson_crawl_rates"]
