"""Several processes, one collection: this process's part in it.

Begin reading with `shared_crawl`; `membership` speaks with the database, `holding` has the shards that are here, and
`inbox` takes in what other processes have found for them.
"""
