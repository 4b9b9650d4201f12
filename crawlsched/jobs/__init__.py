"""Jobs: work outside of the crawl's slots, such as planning, pruning and importing, and figures of stored pages.

APScheduler starts the jobs of a crawl. Begin reading with `crawl_jobs`.
"""
