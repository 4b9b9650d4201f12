"""The demonstration: processes that it starts, what it reports, and its picture."""
