"""Jobs: work outside of the crawl's slots, such as planning, pruning and importing, and figures of stored pages.

APScheduler starts the jobs, in the crawl or in a process of its own. Begin reading with `crawl_jobs`.
"""
