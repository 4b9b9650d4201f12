"""Content: reading a response, and the verdict on it, from values alone.

Begin reading with `reading`, then `verdict`; `crawl.responses` carries verdicts out.
"""
