"""The planner: what is known of all pages, what each is worth, and which goes next."""
