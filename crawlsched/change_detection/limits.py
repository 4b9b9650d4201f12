"""Limits: numbers that several parts of the detector share, each with its reason."""

__all__ = ["FEW", "LONGEST_SHOWN", "MOST_BLOCKS", "MOST_DENSE", "MOST_KEPT", "MOST_PAGES", "MOST_PLACES", "MOST_SHOWN"]

FEW = 3
"""Fewer may be an accident: pages that prove or are suggested, blocks that differ at once, words that pages share."""

MOST_PLACES = 512
"""Places of a template, and edits of a site, that are remembered: some 200 bytes each."""

MOST_PAGES = 12
"""Pages of which is remembered that they changed at a place, or showed an edit: more say no more."""

MOST_SHOWN, LONGEST_SHOWN = 8, 80
"""Changes of a page that are kept for who asks, and characters of each."""

MOST_BLOCKS = 4_096
"""Blocks of a page, and members of an archive, that are known one by one: judging them takes 15 ms."""

MOST_DENSE = 20_000
"""Values of JSON and elements of XML beyond which a document is read as one text if it is dense: 2 to 10 µs each."""

MOST_KEPT = 200_000
"""Characters of a page that are kept as they are, and of what lies beyond a digest of each block: 20 kB compressed."""
