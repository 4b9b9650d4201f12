"""Overrides: pages that go next although others are worth more now: in their turn, or because somebody asks.

Each override names one page at most; the planner asks them in order. Begin reading with `out_of_turn`.
"""
