"""The part of this process where several processes crawl one collection.

Begin reading with `shared_crawl`; `membership` renews this process's grant in the database, `holding` loads and
gives back shards, and `inbox` takes in what other processes have found for these shards.
"""
