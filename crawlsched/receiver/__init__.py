"""The receiver: an HTTP server inside the crawl that takes pings, off unless an address is set.

It reads pings, limits their number, and hands them to the crawl. Begin reading with `receiver`.
"""
