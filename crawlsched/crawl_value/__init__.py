"""Crawl values: what crawling a page now is worth.

=========================  ====================================================================================
`greedy` without announcements `greedy_cis` every announcement taken for a true one `greedy_cis_plus` `greedy_cis` where
announcements are good, `greedy` elsewhere `greedy_ncis` noisy announcements, as in the paper; with ``max_terms`` its
approximations `noisy_value` the same, by the natural parameters alpha, gamma and kappa `merge_sources` one source of
announcements in place of several `elapsed_at_value` the elapsed time at which `greedy_ncis` reaches a value
`posterior_value` the expectation over a posterior of the change rate: the default of crawlsched
=========================  ====================================================================================

Arrays in, arrays out (numpy broadcasting, float64), in seconds and per-second rates.
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
