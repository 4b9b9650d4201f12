"""Plans: what all pages together teach, made by a pure function of a snapshot, and adopted later.

Runs in any thread or process; knows no planner. Begin reading with `plan`.
"""
