"""The page for operators: views of a collection, metrics, health, and the change feed over HTTP.

It runs as a process of its own, even if a crawl starts it, and only reads the database. Views of a crawl take none of
its slots.
"""
