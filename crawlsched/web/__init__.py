"""The page for operators: views of a collection, metrics, health, and the change feed over HTTP.

It is a process of its own, even if a crawl starts it, and only reads the database. So it uses no slot of a crawl.
"""
