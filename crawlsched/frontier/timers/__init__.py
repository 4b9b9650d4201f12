"""Timers: page to tick, for when a page has to be looked at again, or may be crawled again.

Begin reading with `timing_wheel`.
"""
