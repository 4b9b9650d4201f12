"""Plans: what all pages together teach, made by a pure function of a snapshot, and adopted later.

This package runs in any thread or process, and knows no planner. Begin reading with `plan`.
"""
