"""Visits: what is under way: requests that were sent, second fetches, changes on their way to the spider.

Plain objects, written to no store; an outcome is the store's word. Begin reading with `visits`.
"""
