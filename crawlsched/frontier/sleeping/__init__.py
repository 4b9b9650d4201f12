"""Sleeping."""
