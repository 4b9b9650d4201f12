"""Jobs: what is done over and over beside the slots: re-planning, pruning, checking the store.

Drives the flows and the store by APScheduler, in the crawl or in a process of its own. Begin reading with `crawl_jobs`.
"""
