"""Reports of a planner: why a page is crawled when it is, and how fresh pages would be.

Reports ask the planner and change nothing; nothing in the planner imports them. Begin reading with `explaining`.
"""
