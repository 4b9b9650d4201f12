"""Columns: arrays with one number for each page, which grow in place or are compact.

Imports nothing of the package. Begin reading with `growing`.
"""
