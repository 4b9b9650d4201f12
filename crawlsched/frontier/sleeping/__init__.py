"""Sleeping: pages by the level of crawl value that they cannot reach before their timer fires.

Begin reading with `level_queue`; `levels` is the scale.
"""
