"""Parameters: what a plan says of the pages as a whole, as crawl values need it.

Values without behaviour; imports models. Begin reading with `parameters`.
"""
