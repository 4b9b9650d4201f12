"""Bandwidth: how many crawls per second each page should get.

============================  =================================================================================
`refresh_rates`               the best rates without announcements
`refresh_rates_with_signals`  the best rates, and thresholds of effective elapsed time, with ChangeSignals
`poisson_crawl_rates`         the best rates for crawls at random times
`harmonic_rates`              rates that starve no page
`demand`                      the total rate of crawls at a threshold
`low_discrepancy_schedule`    a page for every slot, at given rates
============================  =================================================================================

Each function that divides a bandwidth returns an `Allocation`: the rates and the threshold.
``docs/explanation/bandwidth.md`` describes how they are computed, and when to use each of them.
"""

from crawlsched.bandwidth.announced import demand, refresh_rates_with_signals
from crawlsched.bandwidth.division import Allocation, SignalAllocation
from crawlsched.bandwidth.low_discrepancy import low_discrepancy_schedule
from crawlsched.bandwidth.unannounced import harmonic_rates, poisson_crawl_rates, refresh_rates

__all__ = [
    "Allocation",
    "SignalAllocation",
    "demand",
    "harmonic_rates",
    "low_discrepancy_schedule",
    "poisson_crawl_rates",
    "refresh_rates",
    "refresh_rates_with_signals",
]
