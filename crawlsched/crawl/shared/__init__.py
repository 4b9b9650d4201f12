"""How this process takes part in a collection that several processes crawl.

Begin reading with `shared_crawl`; `membership` renews this process's grant in the database. `holding` loads and
gives back shards. `inbox` takes in rows that other processes have written for these shards.
"""
