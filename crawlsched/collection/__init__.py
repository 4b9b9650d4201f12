"""The collection: what is remembered of pages and hosts, between the memory of a crawl and its store.

May import the store, the planner and what is known of content and sources; no flow. Begin reading with `collection`.
"""
