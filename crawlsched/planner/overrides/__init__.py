"""Overrides."""
