"""Shared texts: what a site's pages say alike at the same place of their markup, kept from a few of them."""

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from crawlsched.change_detection.block_groups import Words
from crawlsched.change_detection.template_edit import END, START, TemplateEdit

__all__ = ["SharedTexts", "replacements"]

_MOST_SAMPLES = 4
# A replacement of words that is the same beside the texts of so many other pages is no difference between pages.
_LEAST_AGREEING = 2
_MOST_PATHS = 2_048
# Paths that come up within so many pages, when so many others were seen before, may be a new part of the template.
_YOUNG_PAGES = 64
_OLD_PAGES = 8
# Of the paths that a page brings so many from its beginning and from its end are taken over.
_MOST_ADDED = 128
_MOST_WORDS = 600
_MOST_CHARACTERS = 65_536
# What belongs to the site most surely: the same texts on several pages.
_ALIKE = 2
# When there is no room for more texts, some go until so much of it is used.
_LEFT = 0.75
# Longer texts of which less than this share of the words is common to two pages are the pages' own.
_SHORT = 40
_LEAST_COMMON = 0.5
_MOST_COMPARED = 200
# Words that are repeated make the comparison slow.
_MOST_PAIRS = 400
_SEEN_BYTES = 4_096
_SEEN_MOST = 4_000


class _Sample(NamedTuple):
    page: int
    template: int
    words: Words


class SharedTexts:
    """Texts of a few pages of a site, by the paths of their blocks, where pages say more or less the same.

    Notes
    -----
    Paths count from the second page on which they are seen. Of each, texts of at most four pages are kept; long texts
    that differ from page to page are the pages' own and are not kept, so that what is left is what belongs to the
    site: headings, navigation, footers. At most 2,048 paths and 64 KB of text (what several pages say alike counts
    once) are kept, and 8 KB of filters [1]_ that say which paths have been seen.

    References
    ----------
    .. [1] Bloom (1970), "Space/time trade-offs in hash coding with allowable errors".
    """

    def __init__(self) -> None:
        self._samples: dict[int, list[_Sample] | None] = {}  # None: texts with this path are the pages' own
        self._seen = [bytearray(_SEEN_BYTES), bytearray(_SEEN_BYTES)]
        self._n_seen = 0
        self._length_of: dict[int, int] = {}
        self._belonging: dict[int, int] = {}
        self._n_characters = 0
        self._n_pages = 0
        self._born: dict[int, int] = {}  # when a path was first kept, in pages

    def __len__(self) -> int:
        """How many paths have texts."""
        return sum(samples is not None for samples in self._samples.values())

    def is_known(self, path: int) -> bool:
        """Whether some page was seen to have blocks with this path; wrongly True for a few in a hundred."""
        return path in self._samples or any(_holds(seen, path) for seen in self._seen)

    def is_shared(self, path: int) -> bool:
        """Whether texts with this path are kept."""
        return self._samples.get(path) is not None

    def add(
        self, page: int, template: int, paths: Iterable[int], words: Callable[[int], Words], *, replacing: bool
    ) -> None:
        """Take over what a page says.

        Parameters
        ----------
        page, template : int
        paths : iterable of int
            Of the page's blocks.
        words : callable
            Gives the words of the blocks with a path.
        replacing : bool
            Whether it may take the place of other texts, of its own and of another page's.
        """
        self._n_pages += 1
        paths = list(paths)
        new = [path for path in paths if path not in self._samples]
        known = [path for path in new if self.is_known(path)]
        for path in set(new).difference(known):
            self._saw(path)
        # What belongs to the site stands at the beginning and the end of its pages.
        added = {*known[:_MOST_ADDED], *known[-_MOST_ADDED:]}
        for path in paths:
            if path not in self._samples:
                if path not in added:
                    continue
                self._make_room()
                self._samples[path] = []
                self._born[path] = self._n_pages
            if self._samples[path] is not None:
                self._add_to(path, _Sample(page, template, words(path)), replacing)

    def others(self, page: int, path: int, words: Words) -> list[Words]:
        """Return what at least two other pages say at a path, where it is not the same."""
        samples = self._samples.get(path)
        if not samples or len(words) > _MOST_WORDS:
            return []
        others = [sample.words for sample in samples if sample.page != page and sample.words != words]
        return others if len(others) >= _LEAST_AGREEING else []

    def replaced(self, path: int, words: Words, others: Sequence[Words]) -> list[TemplateEdit]:
        """Return the replacements of words by which a page differs in the same way from several others."""
        counts: Counter[tuple[Words, Words]] = Counter()
        sides: dict[tuple[Words, Words], tuple[str, str]] = {}
        for other in others:
            found = replacements(other, words)
            counts.update({(old, new) for old, new, _, _ in found})
            for old, new, left, right in found:
                sides.setdefault((old, new), (left, right))
        return [
            TemplateEdit(path, *replacement, *sides[replacement])
            for replacement, count in counts.items()
            if count >= _LEAST_AGREEING
        ]

    def is_unanimous(self, page: int, edit: TemplateEdit) -> bool:
        """Whether all other pages of which texts are kept have what an edit replaced, and none what it put there."""
        return self.n_unanimous(page, edit) >= _LEAST_AGREEING

    def n_unanimous(self, page: int, edit: TemplateEdit) -> int:
        """How many other pages have what an edit replaced; 0 if some have not, or have what it put there."""
        samples = [sample for sample in self._samples.get(edit.path) or () if sample.page != page]
        agree = all(_has(sample.words, edit.old) and not _has(sample.words, edit.new) for sample in samples)
        return len(samples) if agree else 0

    def is_alike(self, page: int, path: int) -> bool:
        """Whether all other pages of which texts are kept at a path say the same there."""
        samples = [sample for sample in self._samples.get(path) or () if sample.page != page]
        return len(samples) >= _LEAST_AGREEING and _are_alike(samples)

    def alike(self, without: Collection[int]) -> dict[Words, int]:
        """Return what several pages say alike at paths other than these, with its path."""
        alike = [path for path, belonging in self._belonging.items() if belonging == _ALIKE and path not in without]
        found = [(self._samples[path] or [], path) for path in alike]
        return {samples[0].words: path for samples, path in found if _are_alike(samples)}

    def is_young(self, path: int, words: Words) -> bool:
        """Whether a path is known for a short time only, and other pages say the same there."""
        born = self._born.get(path, 0)
        samples = self._samples.get(path)
        if born <= _OLD_PAGES or self._n_pages - born > _YOUNG_PAGES or not samples:
            return False
        return all(sample.words == words for sample in samples)

    def lost(self, page: int, template: int, paths: Collection[int]) -> Iterator[TemplateEdit]:
        """Yield what pages of this template have, all alike, and this one has not."""
        for path, belonging in self._belonging.items():
            if belonging == _ALIKE and path not in paths:
                samples = self._samples[path] or ()
                alike = [sample.words for sample in samples if sample.template == template and sample.page != page]
                if len(alike) >= _LEAST_AGREEING and all(words == alike[0] for words in alike):
                    yield TemplateEdit(path, alike[0], (), START, END, template)

    def _add_to(self, path: int, sample: _Sample, replacing: bool) -> None:
        samples = self._samples[path]
        if samples is None:
            return
        if len(sample.words) > _MOST_WORDS:
            self._disown(path)
            return
        same = [number for number, known in enumerate(samples) if known.page == sample.page]
        if same or len(samples) >= _MOST_SAMPLES:
            if not replacing:
                return
            del samples[same[0] if same else 0]
        if samples and len(sample.words) > _SHORT and _common(samples[-1].words, sample.words) < _LEAST_COMMON:
            self._disown(path)
            return
        alike = next((known.words for known in samples if known.words == sample.words), sample.words)
        samples.append(sample._replace(words=alike) if alike is not sample.words else sample)
        self._measure(path, samples)
        if self._n_characters > _MOST_CHARACTERS:
            self._disown_some()

    def _measure(self, path: int, samples: Sequence[_Sample]) -> None:
        """Count the characters that are kept of a path, those of texts that are the same counted once."""
        length = _length(samples)
        self._n_characters += length - self._length_of.get(path, 0)
        self._length_of[path] = length
        self._belonging[path] = _belonging(samples)

    def _disown_some(self) -> None:
        """Give up texts, the longest first, but what belongs to the site last.

        That is what several pages say alike, and, before it, what begins or ends alike: *Cups - Tea 1.3 guide*.
        """
        belonging = self._belonging
        for _, _, path in sorted([(belonging[path], -length, path) for path, length in self._length_of.items()]):
            self._disown(path)
            if self._n_characters <= _LEFT * _MOST_CHARACTERS:
                break

    def _disown(self, path: int) -> None:
        self._n_characters -= self._length_of.pop(path, 0)
        self._belonging.pop(path, None)
        self._samples[path] = None

    def _make_room(self) -> None:
        if len(self._samples) >= _MOST_PATHS:
            # What the pages' own is goes first, and many at once: looking at all of them takes half a millisecond.
            least = sorted(self._samples, key=lambda path: self._belonging.get(path, -1))
            for path in least[: _MOST_PATHS // 8]:
                self._disown(path)
                del self._samples[path], self._born[path]

    def _saw(self, path: int) -> None:
        if self._n_seen >= _SEEN_MOST:
            self._seen = [bytearray(_SEEN_BYTES), self._seen[0]]
            self._n_seen = 0
        for bit in _bits(path):
            self._seen[0][bit >> 3] |= 1 << (bit & 7)
        self._n_seen += 1

    def to_dict(self) -> dict[str, Any]:
        """Return them as plain data, for JSON."""
        return {
            "samples": [[path, None if group is None else _plain(group)] for path, group in self._samples.items()],
            "seen": [b64encode(seen).decode() for seen in self._seen],
            "n_seen": self._n_seen,
            "n_pages": self._n_pages,
            "born": [list(item) for item in self._born.items()],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SharedTexts":
        """Return what `to_dict` gave."""
        made = cls()
        for path, group in data["samples"]:
            samples = made._samples[path] = None if group is None else _samples(group)
            if samples is not None:
                made._measure(path, samples)
        made._seen = [bytearray(b64decode(seen)) for seen in data["seen"]]
        made._n_seen, made._n_pages = data["n_seen"], data["n_pages"]
        made._born = dict(data["born"])
        return made


def replacements(before: Words, after: Words) -> list[tuple[Words, Words, str, str]]:
    """Return what was replaced by what, and the words on both sides; nothing where too much differs.

    Examples
    --------
    >>> replacements(("Tea", "1.3", "guide"), ("Tea", "1.4", "guide"))
    [(('1.3',), ('1.4',), 'Tea', 'guide')]
    """
    one, two = (START, *before, END), (START, *after, END)
    shorter = min(len(one), len(two))
    start = next((n for n in range(shorter) if one[n] != two[n]), shorter)
    end = next((n for n in range(shorter - start) if one[-1 - n] != two[-1 - n]), shorter - start)
    one_left, two_left = one[start : len(one) - end], two[start : len(two) - end]
    if max(len(one_left), len(two_left)) > _MOST_COMPARED:
        return []
    counts = Counter(one_left)
    if sum(counts[word] for word in two_left) > _MOST_PAIRS:
        return []
    found = []
    for tag, i, j, k, m in SequenceMatcher(None, one_left, two_left, autojunk=False).get_opcodes():
        if tag != "equal":
            found.append((one_left[i:j], two_left[k:m], two[start + k - 1], two[start + m]))
    return found


def _has(words: Words, part: Words) -> bool:
    return any(words[start : start + len(part)] == part for start in range(len(words) - len(part) + 1))


def _are_alike(samples: Sequence[_Sample]) -> bool:
    return all(sample.words == samples[0].words for sample in samples)


def _belonging(samples: Sequence[_Sample]) -> int:
    """How sure it is that texts belong to the site: not, because they begin or end alike, because some are the same."""
    if len(samples) < _LEAST_AGREEING:
        return 0
    if len({id(sample.words) for sample in samples}) < len(samples):  # the same words are kept once
        return _ALIKE
    one, two = samples[0].words, samples[-1].words
    return int(bool(one and two) and (one[0] == two[0] or one[-1] == two[-1]))


def _common(one: Sequence[str], two: Sequence[str]) -> float:
    return 2.0 * (Counter(one) & Counter(two)).total() / (len(one) + len(two))


def _length(samples: Iterable[_Sample]) -> int:
    """How many characters these have, those of texts that are the same counted once."""
    different = {id(sample.words): sample.words for sample in samples}.values()
    return sum([len(word) for words in different for word in words]) + sum(map(len, different))


def _plain(samples: Sequence[_Sample]) -> list[list[Any]]:
    """Return samples as plain data; of texts that are the same the first is written, and the place of it for others."""
    places: dict[Words, int] = {}
    plain: list[list[Any]] = []
    for place, (page, template, words) in enumerate(samples):
        first = places.setdefault(words, place)
        plain.append([page, template, " ".join(words) if first == place else first])
    return plain


def _samples(plain: Sequence[Sequence[Any]]) -> list[_Sample]:
    made: list[_Sample] = []
    for page, template, text in plain:
        made.append(_Sample(page, template, made[text].words if isinstance(text, int) else tuple(text.split(" "))))
    return made


def _bits(path: int) -> tuple[int, int]:
    n = 8 * _SEEN_BYTES
    return path % n, (path >> 32) % n


def _holds(seen: bytearray, path: int) -> bool:
    return all(seen[bit >> 3] & (1 << (bit & 7)) for bit in _bits(path))
