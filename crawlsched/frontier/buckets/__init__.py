"""Buckets: sets of page numbers by key, many at once: the one structure below timers and levels.

Knows numbers, and neither values nor time. Begin reading with `buckets`.
"""
