"""Jobs: what is done beside the slots: re-planning, pruning, importing, and what the stored pages are worth.

Drives the flows and the store by APScheduler, in the crawl or in a process of its own. Begin reading with `crawl_jobs`.
"""
