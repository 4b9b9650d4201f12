"""Limits: numbers that several parts of the detector share, each with its reason."""

#: Fewer cases than these may be an accident. The cases are pages that prove or suggest noise, blocks that differ at the
#: same time, or words that pages share.
FEW = 3

#: Two contents that share less than this belong to two pages. A log-in wall shares its frame with the page behind it.
LEAST_SHARED = 0.3

#: The most second fetches and requests for a page that cannot exist, as a share of the visits that could find a change.
SHARE_AGAIN = 0.05

#: At most this many places of a template, and edits of a site, are remembered. Each takes some 200 bytes.
MOST_PLACES = 512

#: For each place, edit and host, only this many pages and texts are remembered, the newest. Older pages and texts
#: would prove nothing further.
REMEMBERED = 16

#: At most this many former contents of a page, and changes for `why`, are stored.
OF_A_PAGE = 8

#: The most blocks of a page, members of an archive, or elements side by side that are judged: this takes 15 ms.
MOST_BLOCKS = 4_096

#: At most this many tags of a page are read one by one. For values of JSON and tags of XML the limit is the same, or
#: higher in a long text. Each of them takes 2 to 9 µs.
MOST_DENSE = 20_000

#: Beyond 4,096 tags, a page needs this many characters for each further tag that is read. Beyond 20,000 values or tags,
#: JSON and XML need as many characters for each further value or tag. What people write has fewer tags than one in 25
#: characters.
DENSE = 25

#: At most this many characters of a page are stored as text, which takes 20 kB compressed. For each further block, only
#: a digest is stored.
MOST_KEPT = 200_000

#: At most this many characters are compared token by token, which takes 7 ms; each text counts as 64 more characters
#: than it has. All further differences are one remainder. One text may use a quarter of the limit, so that others have
#: room. A difference in a longer text is never noise.
MOST_COMPARED = 40_000
LONGEST_COMPARED = MOST_COMPARED // 4

#: The most elements, keys or columns in the path of a place. Searches for an open element, and searches around a word,
#: have the same limit.
DEEPEST = 64

#: The most characters of a class, an id, a key or a column, and of a text that is shown. A longer key counts as made up
#: by a program.
LONGEST_NAME = 64

#: This many bytes at the start of a body decide its kind. Tags with more characters are not remembered.
LOOKED_AT = 1_024
