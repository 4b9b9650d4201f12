"""Evidence: announcements, which lower the probability that a copy is fresh. Begin reading with `announcements`."""
