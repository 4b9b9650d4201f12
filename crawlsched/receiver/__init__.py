"""The receiver: an HTTP server inside the crawl that accepts pings. It only runs if an address is set.

It reads pings, limits their number, and gives them to the crawl. Begin reading with `receiver`.
"""
