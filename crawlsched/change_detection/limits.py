"""Limits: numbers that several parts of the detector share, each with its reason."""

#: Fewer may be an accident: pages that prove or are suggested, blocks that differ at once, words that pages share.
FEW = 3

#: Contents that share less are of two pages: a log-in wall shares its frame with what is behind it.
LEAST_SHARED = 0.3

#: Places of a template, and edits of a site, that are remembered: some 200 bytes each.
MOST_PLACES = 512

#: Pages that are remembered for a change at a place, or an edit: more of them prove no more.
MOST_PAGES = 12

#: Changes of a page that are kept for `why`, and characters of each.
MOST_SHOWN, LONGEST_SHOWN = 8, 80

#: Blocks of a page, members of an archive, elements side by side: judging them takes 15 ms.
MOST_BLOCKS = 4_096

#: Tags of a page that are read one by one; values of JSON and tags of XML where they are dense: 2 to 20 µs each.
MOST_DENSE = 20_000

#: Characters of a page that are kept as they are, and of what lies beyond a digest of each block: 20 kB compressed.
MOST_KEPT = 200_000

#: Characters that are compared token by token, 40 more for each text: 7 ms. All differences behind are one remainder.
MOST_COMPARED = 30_000

#: Elements, keys and columns that make a place; no search for an element that is open goes further.
DEEPEST = 64

#: Characters of a class, an id, a key, a column; what is longer is a text, or made up by a program.
LONGEST_NAME = 40

#: Bytes that decide what a body is.
LOOKED_AT = 1_024
