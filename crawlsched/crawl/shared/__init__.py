"""Several shards in one process: one crawl for Scrapy, made of a refresher for each shard that this process owns.

Begin reading with `refresher`; `membership` speaks with the database, `turns` says whose slot it is, and `routing`
finds what belongs to a visit.
"""
