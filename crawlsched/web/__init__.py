"""The page for operators: views of a collection, metrics, health, and the change feed over HTTP.

It runs as a process of its own that only reads the database, even if a crawl starts it. Looking at a crawl takes no
slot.
"""
