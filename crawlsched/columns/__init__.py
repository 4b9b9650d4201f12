"""Columns."""
