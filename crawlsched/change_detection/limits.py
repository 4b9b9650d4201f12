"""Limits: numbers that several parts of the detector share, each with its reason."""

#: Fewer than this number of cases may be an accident. The cases are pages that prove or suggest noise, blocks that
#: differ at the same time, or words that pages share.
FEW = 3

#: Two contents with a smaller common share belong to different pages. A log-in wall shares its frame with the page
#: behind it.
LEAST_SHARED = 0.3

#: At most this share of the visits that could find a change has a second fetch, or a request for a page that cannot
#: exist.
SHARE_AGAIN = 0.05

#: At most this many places of a template, and edits of a site, are remembered. Each takes some 200 bytes.
MOST_PLACES = 512

#: At most this many pages or texts are remembered for one place, one edit or one host: the newest. Older pages and
#: texts would prove nothing further.
REMEMBERED = 16

#: At most this many former contents of a page, and changes for `why`, are stored.
OF_A_PAGE = 8

#: At most this many blocks of a page, members of an archive, or elements side by side are judged, which takes 15 ms.
MOST_BLOCKS = 4_096

#: At most this many tags of a page are read one by one. For values of JSON and tags of XML the limit is the same, or
#: higher in a long text. Each tag or value takes 1 to 9 µs.
MOST_DENSE = 20_000

#: Beyond 4,096 tags, a page needs this many characters for each further tag that is read. Beyond 20,000 values or tags,
#: JSON and XML need as many characters for each further value or tag. People write fewer than one tag in 25 characters.
DENSE = 25

#: At most this many characters of a page are stored as text, which takes 20 kB compressed. For each further block, only
#: a digest is stored.
MOST_KEPT = 200_000

#: At most this many characters are compared token by token, which takes 7 ms; each text counts as 64 characters more
#: than its length. All further differences are one remainder. A single text may use a quarter of the limit, so that
#: other texts have room. A difference in a longer text is never noise.
MOST_COMPARED = 40_000
LONGEST_COMPARED = MOST_COMPARED // 4

#: The path of a place has at most this many elements, keys or columns. Searches for an open element, and searches
#: around a word, have the same limit.
DEEPEST = 64

#: This is the largest length of a class, an id, a key, a column, or a text that is shown. A longer key
#: counts as made up by a program.
LONGEST_NAME = 64

#: This many bytes at the start of a body decide its kind. Tags with more characters are not remembered.
LOOKED_AT = 1_024
