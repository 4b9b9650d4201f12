"""Limits: numbers that several parts of the detector share, each with its reason."""

#: Fewer may be an accident: pages that prove or suggest noise, blocks that differ at once, words that pages share.
FEW = 3

#: Contents that share less are of two pages: a log-in wall shares its frame with the page behind it.
LEAST_SHARED = 0.3

#: Second fetches, and requests for a page that cannot exist, as a share of the visits that could find a change.
SHARE_AGAIN = 0.05

#: Places of a template, and edits of a site, that are remembered: some 200 bytes each.
MOST_PLACES = 512

#: Pages and texts that are remembered of a place, an edit or a host, the newest: more of them prove no more.
REMEMBERED = 16

#: Changes of a page that are kept for `why`.
MOST_SHOWN = 8

#: Blocks of a page, members of an archive, elements side by side: judging them takes 15 ms.
MOST_BLOCKS = 4_096

#: Tags of a page that are read one by one. Values of JSON and tags of XML: as many, or more in a long text. Each takes
#: 2 to 9 µs.
MOST_DENSE = 20_000

#: Characters of a page for each tag beyond the first 4,096, and of JSON and XML for each value or tag beyond 20,000:
#: nobody writes more of them than one in 25 characters.
DENSE = 25

#: Characters of a page that are kept as they are: 20 kB compressed. Beyond these, a digest of each block is kept.
MOST_KEPT = 200_000

#: Characters that are compared token by token, 64 more for each text: 7 ms. All differences after these are one
#: remainder. One text may use a quarter, which leaves room for others. A difference in a longer text is never noise.
MOST_COMPARED = 40_000
LONGEST_COMPARED = MOST_COMPARED // 4

#: Elements, keys and columns that make a place. No search for an open element, or around a word, goes further.
DEEPEST = 64

#: Characters of a class, an id, a key, a column, and of a text where it is shown; a longer key is made up by a program.
LONGEST_NAME = 64

#: Bytes that decide what a body is; a longer tag is not remembered.
LOOKED_AT = 1_024
