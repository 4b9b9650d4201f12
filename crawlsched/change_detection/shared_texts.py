"""Shared texts: what the pages of a site say alike outside of their own parts, and how the site edits it on all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from math import inf
from typing import Any

from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.trace import Difference, Kind, place_of, text_of
from crawlsched.change_detection.zones import is_frame

__all__ = ["SharedTexts"]

_TEXT_BITS = 24
_TEXT_MASK = (1 << _TEXT_BITS) - 1
_MOST_COUNTS, _MOST_WAYS, _MOST_EDITS, _MOST_WORD_EDITS = 20_000, 4_096, 256, 64
_MOST_KEPT = 3_000
_LEAST_PAGES = 3
_NEARLY_ALL = 0.7
_SAMPLES, _LONGEST_SAMPLE = 4, 300
_LEAST_AGREEING = 2
_MOST_PAGES = 8
_MOST_RESTLESS = 3

_Words = tuple[str, ...]


class SharedTexts:
    """What is known of the frame around the pages of one site.

    Notes
    -----
    Of each text at each place the number of pages is known that say it, as they were last seen. An edit of a text in
    the frame (see `zones`) that nearly all pages with such a place say is the template's, unless pages show at the same
    time that they are in different states: one that was asked for since still says what another has replaced. Where
    pages say it among words of their own (*Tea 1.3 guide: cups*), the words that were replaced are put back as other
    pages have them; if that gives the text that was kept, by its hash, the edit is known word by word.
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._pages: Counter[int] = Counter()
        self._ways: dict[int, tuple[str, ...]] = {}
        self._sampled: dict[int, bool] = {}
        self._samples: dict[int, list[tuple[int, str]]] = {}
        #: Of edits of the template the pages that have shown them, and how many were seen without since.
        self._edits: dict[tuple[int, int, int], list[int]] = {}
        self._without: Counter[tuple[int, int, int]] = Counter()
        #: When each edit was first seen, POSIX seconds; of those of an earlier run it is not known.
        self._since: dict[tuple[int, int, int], float] = {}
        self._word_edits: dict[tuple[_Words, _Words], list[int]] = {}
        #: Texts that pages say at one place several times: that they say them still tells nothing.
        self._repeated: set[tuple[int, int]] = set()
        #: Places that differed between two fetches made at once, with some of the pages, of any template.
        self.restless: dict[int, list[int]] = {}
        self.n_learned = 0

    def saw(self, page: int, trace: Sequence[int], blocks: PageBlocks) -> None:
        """A page is seen for the first time."""
        seen = {self._key(entry) for entry in trace}
        self._count(seen, set())
        for key, path in blocks.path_of.items():
            if self._is_sampled(path, blocks) and key in blocks.texts:
                self._sample(page, path & _TEXT_MASK, blocks.texts[key])
        self.n_learned += 1

    def changed(self, page: int, given: Sequence[int], trace: Sequence[int], blocks: PageBlocks) -> None:
        """A page that was known says something else."""
        before, now = {self._key(entry) for entry in given}, {self._key(entry) for entry in trace}
        new = now - before
        self._count(now, before)
        for key, path in blocks.path_of.items():
            text = blocks.texts.get(key)
            if text and (path & _TEXT_MASK) << _TEXT_BITS | text_of(text) in new and self._is_sampled(path, blocks):
                self._sample(page, path & _TEXT_MASK, text)
        self.n_learned += 1

    def differed_at_once(self, page: int, places: Iterable[int]) -> dict[int, list[int]]:
        """Two fetches of a page, made at once, differed at these places; return on which pages each did before."""
        elsewhere = {place: [other for other in self.restless.get(place, ()) if other != page] for place in places}
        for place, others in elsewhere.items():
            self.restless[place] = [*others, page][-_MOST_RESTLESS:]
        if len(self.restless) > _MOST_WAYS:
            self.restless.clear()
        return elsewhere

    def _count(self, now: set[int], before: set[int]) -> None:
        """Count what a page says and has places for, and no longer what it did before."""
        _recount(self._counts, now, before)
        _recount(self._pages, *({key >> _TEXT_BITS for key in keys} for keys in (now, before)))

    def look_at(self, blocks: PageBlocks, trace: Sequence[int], found: Iterable[Difference]) -> None:
        """Take over where blocks stand that no page had before, and what a menu has twice."""
        says: set[int] = set()
        for one in found:
            if one.key is not None:
                self._is_sampled(blocks.path_of[one.key], blocks)
            elif one.kind == Kind.REMOVED:
                says = says or {self._key(entry) for entry in trace}
                if one.place << _TEXT_BITS | one.old in says:
                    if len(self._repeated) >= _MOST_WAYS:
                        self._repeated.clear()
                    self._repeated.add((one.place, one.old))

    def seen_again(self, page: int, trace: Sequence[int], found: Iterable[Difference], asked_at: float) -> None:
        """A page was asked for after edits of its template: does it still say what others have replaced?"""
        if not self._edits:
            return
        says = {self._key(entry) for entry in trace}
        texts = {entry & _TEXT_MASK for entry in trace}
        places = {place_of(entry) for entry in trace}
        shown = {(one.place, one.old, one.new) for one in found}
        for edit, pages in self._edits.items():
            place, old, new = edit
            # An answer that was asked for before the edit was first seen may come after it.
            if page in pages or edit in shown or asked_at < self._since.get(edit, -inf):
                continue
            if old:
                has_new = new and place << _TEXT_BITS | new in says
                is_without = place << _TEXT_BITS | old in says and not has_new and (place, old) not in self._repeated
            else:  # what was put into a menu stands elsewhere on the page that it leads to
                is_without = new not in texts and (place in places or self._could_have(place, len(pages), places))
            if is_without:
                self._without[edit] += 1

    def _could_have(self, place: int, n_pages: int, places: Collection[int]) -> bool:
        """Whether a page with some places could have one that has come to all that have it by one edit."""
        if self._pages[place] > n_pages:
            return False
        around = self._ways.get(place, ())[:-1]
        return any(self._ways.get(other, ())[: len(around)] == around for other in places)

    def is_own(self, entry: int) -> bool:
        """Whether a text is that of few of the pages which have such a place."""
        n = self._pages[place_of(entry)]
        return n >= 2 and self._counts[self._key(entry)] <= 0.5 * n

    def own_ways(self, trace: Sequence[int]) -> list[tuple[str, ...]]:
        """Return the ways to the texts of a page that are its own."""
        ways = (self._ways.get(place_of(entry)) for entry in trace if self.is_own(entry))
        return [
            way
            for way in ways
            if way and "head" not in way and way[0] not in ("script", "json-ld") and not is_frame(way, [])
        ]

    def is_frame(self, place: int, own_ways: Sequence[tuple[str, ...]]) -> bool:
        """Whether a place is outside of the pages' own parts."""
        way = self._ways.get(place)
        return way is not None and is_frame(way, own_ways)

    def is_heading_of_window(self, place: int) -> bool:
        """Whether a place is that of the title: its words are the page's and the site's."""
        way = self._ways.get(place)
        return way is not None and way[-1:] == ("title",)

    def of_template(
        self, page: int, one: Difference, own_ways: Sequence[tuple[str, ...]], text: str, now: float
    ) -> bool | None:
        """Say whether a difference is an edit of the template.

        Returns
        -------
        bool or None
            True if another page has shown the same edit; None if this page is the first to show what looks like one;
            False if it is the page's own.
        """
        in_frame = self.is_frame(one.place, own_ways)
        if one.kind == Kind.ORDER:
            return self._edited((one.place, 0, 0), page, now) if in_frame else False
        if self._without[one.place, one.old, one.new]:  # pages are in different states
            return False
        if in_frame and self._is_shared(one):
            return self._edited((one.place, one.old, one.new), page, now)
        if text and one.old and (in_frame or self.is_heading_of_window(one.place)):
            return self._by_words(page, one, text)
        return False

    def _is_shared(self, one: Difference) -> bool:
        n = self._pages[one.place]
        if (one.place, one.old, one.new) in self._edits:
            return True
        if one.old:
            return n >= _LEAST_PAGES and self._counts[one.place << _TEXT_BITS | one.old] >= _NEARLY_ALL * n
        return True

    def _edited(self, edit: tuple[int, int, int], page: int, now: float) -> bool | None:
        if self._without[edit]:
            return False
        back = edit[0], edit[2], edit[1]
        if back != edit and back in self._edits:  # what came back would otherwise pass for what was told before
            if self._without.pop(back, 0):
                self._without[edit] += 1
                return False
            self._forget(back)
        pages = self._edits.setdefault(edit, [])
        self._since.setdefault(edit, now)
        known = any(other != page for other in pages)
        if page not in pages and len(pages) < _MOST_PAGES:
            pages.append(page)
        if len(self._edits) > _MOST_EDITS:
            oldest = next(iter(self._edits))
            self._forget(oldest)
            del self._without[oldest]
            self._repeated.discard(oldest[:2])
        return True if known else None

    def _forget(self, edit: tuple[int, int, int]) -> None:
        del self._edits[edit]
        self._since.pop(edit, None)

    def _by_words(self, page: int, one: Difference, text: str) -> bool | None:
        words = tuple(text.split())
        for edit, pages in reversed(self._word_edits.items()):
            if self._is_put_back(words, *edit, one.old):
                known = any(other != page for other in pages)
                if page not in pages and len(pages) < _MOST_PAGES:
                    pages.append(page)
                return True if known else None
        samples = [tuple(sample.split()) for other, sample in self._samples.get(one.place, ()) if other != page]
        for sample in samples:
            for old, new in _replaced(sample, words):
                agreeing = sum(_holds(other, old) for other in samples)
                if agreeing >= _LEAST_AGREEING and self._is_put_back(words, old, new, one.old):
                    self._word_edits[old, new] = [page]
                    if len(self._word_edits) > _MOST_WORD_EDITS:
                        del self._word_edits[next(iter(self._word_edits))]
                    return None
        return False

    def _is_put_back(self, words: _Words, old: _Words, new: _Words, kept: int) -> bool:
        if not new or len(new) >= len(words) or not _holds(words, new):
            return False
        text, replaced, by = f" {' '.join(words)} ", f" {' '.join(new)} ", f" {' '.join(old)} " if old else " "
        return text_of(text.replace(replaced, by).strip()) == kept

    def _is_sampled(self, path: int, blocks: PageBlocks) -> bool:
        """Whether texts at a place are kept: those of titles, and of the frame."""
        place = path & _TEXT_MASK
        known = self._sampled.get(place)
        if known is None:
            if len(self._ways) >= _MOST_WAYS:
                return False
            way = self._ways[place] = tuple(blocks.way_to(path))
            known = self._sampled[place] = way[-1:] == ("title",) or is_frame(way, [])
        return known

    def _sample(self, page: int, place: int, text: str) -> None:
        """Keep what a few pages say where pages say different things in the frame or in their titles."""
        if len(text) > _LONGEST_SAMPLE:
            return
        samples = self._samples.setdefault(place, [])
        samples[:] = [sample for sample in samples if sample[0] != page][-_SAMPLES + 1 :]
        samples.append((page, text))

    @staticmethod
    def _key(entry: int) -> int:
        return place_of(entry) << _TEXT_BITS | entry & _TEXT_MASK

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        shared = [(key, n) for key, n in self._counts.most_common(_MOST_KEPT) if n > 1]
        places = {key >> _TEXT_BITS for key, _ in shared} | set(self._samples)
        return {
            "version": 2,
            "counts": shared,
            "pages": [(place, self._pages[place]) for place in places],
            "ways": [(place, " ".join(self._ways[place])) for place in places if place in self._ways],
            "samples": [(place, samples) for place, samples in self._samples.items()],
            "edits": [(*edit, self._without[edit], pages) for edit, pages in self._edits.items()],
            "word_edits": [(old, new, pages) for (old, new), pages in self._word_edits.items()],
            "restless": list(self.restless.items()),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SharedTexts:
        """Return what `to_dict` gave; of what earlier versions kept nothing can be used."""
        made = cls()
        if data.get("version") != 2:
            return made
        made._counts.update(dict(data["counts"]))
        made._pages.update(dict(data["pages"]))
        made._ways = {place: tuple(way.split(" ")) for place, way in data["ways"]}
        made._samples = {place: [(page, text) for page, text in samples] for place, samples in data["samples"]}
        for place, old, new, without, pages in data["edits"]:
            made._edits[place, old, new] = pages
            made._without[place, old, new] = without
        made._word_edits = {(tuple(old), tuple(new)): pages for old, new, pages in data["word_edits"]}
        made.restless = dict(data.get("restless", ()))  # earlier versions did not keep them
        return made


def _recount(counts: Counter[int], now: set[int], before: set[int]) -> None:
    """Count what is new once more, and what is gone once less; what nobody says any more is forgotten."""
    counts.update(now - before)
    for key in before - now:
        if counts[key] > 1:
            counts[key] -= 1
        else:
            counts.pop(key, None)
    if len(counts) > _MOST_COUNTS:
        most = counts.most_common(_MOST_COUNTS // 2)
        counts.clear()
        counts.update(dict(most))


def _replaced(before: _Words, after: _Words) -> Iterator[tuple[_Words, _Words]]:
    """Yield what was replaced by what.

    Examples
    --------
    >>> list(_replaced(("Tea", "1.3", "guide"), ("Tea", "1.4", "guide")))
    [(('1.3',), ('1.4',))]
    """
    if len(before) * len(after) > 2_500:
        return
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield before[i:j], after[k:m]


def _holds(words: _Words, part: _Words) -> bool:
    return any(words[start : start + len(part)] == part for start in range(len(words) - len(part) + 1))
