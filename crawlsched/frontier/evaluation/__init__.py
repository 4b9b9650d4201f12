"""Evaluation: crawl values of many pages found a part at a time, between picks.

Begin reading with `evaluation`; `evaluation_queue` holds what waits.
"""
