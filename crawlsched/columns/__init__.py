"""Columns: how arrays of one number a page are kept: growing in place, or compact.

Imports nothing of the package. Begin reading with `growing`.
"""
