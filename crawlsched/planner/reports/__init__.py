"""Reports of a planner: why a page is crawled when it is, and how fresh pages would be at other bandwidths.

Reports read the planner and change nothing. The planner imports none of them. Begin reading with `explaining`.
"""
