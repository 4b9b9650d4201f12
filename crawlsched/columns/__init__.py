"""Columns: arrays of one number a page, which grow in place or are compact.

Imports nothing of the package. Begin reading with `growing`.
"""
