"""Content: what a body says, and whether that is a change.

Turns responses into judgements by `crawlsched.change_detection` and by what the store knows of a page; sends nothing.
Begin reading with `reading`, then `judging`.
"""
