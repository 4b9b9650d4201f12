"""What operators look at: pages about a collection, metrics, health, and the change feed over HTTP.

It runs as a process of its own over the database, also when a crawl starts it: looking at a crawl takes no slot. It
writes nothing.
"""
