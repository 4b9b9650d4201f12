"""Evidence: what takes something off the probability that a copy is fresh, beside its age.

Announcements and neighbours, both a `Hint`. Imports parameters; begin reading with
`announcements`.
"""
