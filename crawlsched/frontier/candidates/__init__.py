"""Candidates: the few pages that are compared at each pick, with an upper bound of each crawl value.

Begin reading with `candidates`; `evaluated` and `just_crawled` are how pages become and leave it.
"""
