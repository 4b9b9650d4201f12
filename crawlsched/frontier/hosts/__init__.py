"""Hosts: those that may not be asked now, and the pages that wait for them.

Begin reading with `resting`.
"""
