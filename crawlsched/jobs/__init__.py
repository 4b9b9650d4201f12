"""Jobs: work beside the slots, such as planning, pruning and importing, and the worth of stored pages.

APScheduler starts the jobs, in the crawl or in a process of its own. Begin reading with `crawl_jobs`.
"""
