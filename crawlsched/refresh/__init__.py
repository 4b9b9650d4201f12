"""Refresh."""
