"""Crawl values: what it is worth to crawl a page now.

=========================  ====================================================================================
`greedy`                   for pages without announcements
`greedy_cis`               if every announcement counts as true
`greedy_cis_plus`          `greedy_cis` where announcements are good, and `greedy` elsewhere
`greedy_ncis`              with noisy announcements, as in the paper; `max_terms` gives its approximations
`noisy_value`              the same value, by the natural parameters alpha, gamma and kappa
`merge_sources`            one source of announcements that replaces several
`elapsed_at_value`         the elapsed time at which `greedy_ncis` reaches a value
`posterior_value`          the expectation over a posterior of the change rate: the default of crawlsched
=========================  ====================================================================================

Arguments and results are arrays (numpy broadcasting, float64), in seconds and per-second rates.
``docs/explanation/posterior_crawl_value.md`` derives the formulas. Functions whose names begin with ``unchecked_`` do
not check their arguments.
"""

from crawlsched.crawl_value.inverse import elapsed_at_value
from crawlsched.crawl_value.noisy import merge_sources, noisy_value, posterior_value, unchecked_noisy_value
from crawlsched.crawl_value.rules import greedy, greedy_cis, greedy_cis_plus, greedy_ncis, unchecked_greedy

__all__ = [
    "elapsed_at_value",
    "greedy",
    "greedy_cis",
    "greedy_cis_plus",
    "greedy_ncis",
    "merge_sources",
    "noisy_value",
    "posterior_value",
    "unchecked_greedy",
    "unchecked_noisy_value",
]
