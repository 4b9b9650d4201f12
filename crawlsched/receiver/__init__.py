"""The receiver: an HTTP server inside the crawl that takes pings, off unless an address is set.

Reads and limits what comes in, and hands it to the crawl. Begin reading with `receiver`.
"""
