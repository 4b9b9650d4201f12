"""Evidence: what takes something off the probability that a copy is fresh, beside its age.

Announcements. Imports parameters and models; begin reading with
`announcements`.
"""
