"""Content: reading a response and judging it, as functions of plain values.

Begin reading with `reading`, then `verdict`; `crawl.responses` carries out the verdicts.
"""
