"""Evidence: what takes something off the probability that a copy is fresh, beside its age.

Announcements, co-changes, neighbours, and how old a page is. Imports parameters and models; begin reading with
`announcements`.
"""
