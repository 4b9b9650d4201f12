"""Plans: the knowledge from all pages together. A pure function makes a plan from a snapshot; it is adopted later.

This package runs in any thread or process, and does not use the planner. Begin reading with `plan`.
"""
