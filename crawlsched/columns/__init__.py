"""Columns: how arrays of one number a page are kept: growing in place, compact, or in one file.

Imports nothing of the package. Begin reading with `growing`.
"""
