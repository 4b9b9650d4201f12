"""Template noise: which places of a template's pages change by themselves, on what evidence, and since when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.evidence import OF_TIME, PROTECTED, RELATIVE, SELF_MADE, Evidence, Ignores
from crawlsched.change_detection.trace import Difference, Kind, place_of

__all__ = ["TemplateNoise"]


_MOST_PLACES = 512
_MANY = 3
_MOST_PAGES = 12
# A template is known after so many probes.
_FIRST_PROBES = 3
# A text that is a time or a count, as "last seen on Monday at noon by 12 visitors", has no more words than this.
_MOST_WORDS = 15


class TemplateNoise:
    """What is known of the places of one template's pages.

    Notes
    -----
    A place is the path that leads to a block. Where several blocks of a page have one path, the place is the path only
    if most of them differ; otherwise it is a number among them, counted from the beginning or from the end, and then
    only what several pages agree in counts for a page that has not shown it itself.
    """

    def __init__(self) -> None:
        self._places: dict[str, Evidence] = {}
        self._names: dict[str, str] = {}
        self._pages: list[int] = []
        self.n_probes = 0
        self.n_quiet = 0
        #: How often in a row a page that said what it had said before said so twice.
        self.n_returns = 0
        self.n_learned = 0

    @property
    def is_known(self) -> bool:
        """Whether so many visits of the template were probed that a change can be told without."""
        return self.n_probes >= _FIRST_PROBES

    @property
    def n_pages(self) -> int:
        """How many pages of the template have been visited again, up to twelve."""
        return len(self._pages)

    def ignored(self, page: int, found: Sequence[Difference]) -> dict[int, str]:
        """Return which of some differences are noise, by their number, and what that is known from."""
        told: dict[int, str] = {}
        for number, one in enumerate(found):
            for key in _keys(page, one, False, is_asked=True):
                evidence = self._places.get(key)
                level = self._level(key, evidence) if evidence is not None else Ignores.NOTHING
                if level == Ignores.ALL or (level == Ignores.DIGITS and one.is_digits):
                    told[number] = f"{self._names.get(key, '?')} {evidence.say()}"  # type: ignore[union-attr]
                    break
        return told

    def are_suspects(self, page: int, found: Sequence[Difference]) -> bool:
        """Whether each of some differences is at a place that has differed between fetches made at once."""
        return bool(found) and all(
            any(key in self._places and self._places[key].is_suspect for key in _keys(page, one, False, is_asked=True))
            for one in found
        )

    def are_new_suspects(self, page: int, found: Sequence[Difference]) -> bool:
        """Whether each of some differences between fetches made at once may be noise that is not known yet."""
        return all(
            all(self._places[key].may_be_noise for key in _keys(page, one, False, is_asked=True) if key in self._places)
            for one in found
        )

    def learn_at_once(
        self, page: int, found: Sequence[Difference], changed: Sequence[Difference], trace: Sequence[int],
        blocks: PageBlocks, now: float, elsewhere: Mapping[int, Sequence[int]] = {},
    ) -> bool:  # fmt: skip
        """Learn from two fetches made at once; return whether they differed where that was not known.

        What differs for the first time may have differed at once on pages of other templates, `elsewhere` by place:
        they count as if they were of this one.
        """
        known = self.ignored(page, found)
        is_surprised = len(known) < len(found)
        changed_keys = self._keys_of(page, changed, blocks, now, must_track=False)
        differing = self._keys_of(page, found, blocks, now)
        for key in differing:
            evidence = self._places[key]
            if key[0] == "p" and not evidence.probed_pages:
                for other in elsewhere.get(int(key[1:], 16), ()):
                    evidence.probed(other, differed=True, had_changed=False)
            evidence.probed(page, differed=True, had_changed=key in changed_keys)
        self._note_digits(page, found)
        for key, evidence in self._standing(page, trace, differing):
            evidence.probed(page, differed=False, had_changed=key in changed_keys)
        self.n_probes += 1
        self.n_quiet = 0 if is_surprised else self.n_quiet + 1
        self.n_learned += 1
        return is_surprised

    def learn_from_visit(
        self, page: int, found: Sequence[Difference], trace: Sequence[int], blocks: PageBlocks, now: float,
        *, announced: bool = False,
    ) -> None:  # fmt: skip
        """Learn from a visit of a page that had been visited before; `announced`: because a change was announced."""
        if page not in self._pages and len(self._pages) < _MOST_PAGES:
            self._pages.append(page)
        differing = self._keys_of(page, found, blocks, now)
        self._note_digits(page, found)
        # What differs beside something else may be noise of its own only where that is known, or its name says so.
        others = [key for key in differing if self._places[key].hint < 2 and not self._level(key, self._places[key])]
        if not announced:  # else that is why it was visited, and no sign of noise
            for key, text in differing.items():
                place = key[1:].partition(".")[0]
                alone = all(other[1:].partition(".")[0] == place for other in others)
                self._places[key].visited(page, differed=True, alone=alone, text=text)
        for _, evidence in self._standing(page, trace, differing):
            evidence.visited(page, differed=False, alone=False)
        if differing:
            self.n_learned += 1

    def _level(self, key: str, evidence: Evidence) -> int:
        level = evidence.ignores(self.n_pages, is_order=key[0] == "r")
        if key[0] in "se" and (len(evidence.changed_pages) < _MANY and len(evidence.probed_pages) < _MANY):
            return Ignores.NOTHING
        if key[0] in "se" and evidence.still_pages and not evidence.is_noise_at_once:
            return Ignores.NOTHING
        return level

    def _keys_of(
        self, page: int, found: Sequence[Difference], blocks: PageBlocks, now: float, *, must_track: bool = True
    ) -> dict[str, int]:
        many = _mostly(found)
        keys: dict[str, int] = {}
        for one in found:
            for key in _keys(page, one, one.place in many):
                keys[key] = one.new
                if must_track and key not in self._places:
                    self._track(key, one, blocks, now)
        return {key: text for key, text in keys.items() if key in self._places}

    def _track(self, key: str, one: Difference, blocks: PageBlocks, now: float) -> None:
        way = blocks.way_to(blocks.path_of[one.key]) if one.key is not None else []
        text = blocks.texts[one.key] if one.key is not None else ""
        names = [
            step for step in way if step not in ("html", "body", "main", "article", "div", "p", "span", "li", "ul")
        ]
        name = "/".join(names[-2:])
        evidence = Evidence(since=now)
        # What differs in a longer text is something else than the time that it mentions, unless it is digits.
        speaks = one.is_digits or len(text.split(maxsplit=_MOST_WORDS)) <= _MOST_WORDS
        if speaks and RELATIVE.search(text):
            evidence.hint = 3
        elif any(SELF_MADE.search(step) for step in names[-3:]):
            evidence.hint = 2
        elif any(OF_TIME.search(step) for step in names[-3:]) or (
            speaks and (OF_TIME.search(text) or SELF_MADE.search(text[:200]))
        ):
            evidence.hint = 1
        evidence.is_protected = any(PROTECTED.search(step) for step in way[-2:]) or bool(PROTECTED.search(text[:200]))
        self._places[key] = evidence
        self._names[key] = name or (way[-1] if way else "a block")
        if len(self._places) > _MOST_PLACES:
            least = min(self._places, key=lambda key: self._places[key].differed + 2.0 * self._places[key].at_once)
            del self._places[least], self._names[least]

    def _note_digits(self, page: int, found: Sequence[Difference]) -> None:
        many = _mostly(found)
        for one in found:
            if not one.is_digits:
                for key in _keys(page, one, one.place in many):
                    if key in self._places:
                        self._places[key].only_digits = False

    def _standing(self, page: int, trace: Sequence[int], but: Mapping[str, int]) -> list[tuple[str, Evidence]]:
        """Return the places that a page has, and in which nothing differed."""
        if not self._places:
            return []
        counts = Counter(map(place_of, trace))
        standing = []
        for key, evidence in self._places.items():
            if key in but:
                continue
            parts = key[1:].split(".")
            n = counts[int(parts[0], 16)]
            if not n:
                continue
            if key[0] == "o" and (int(parts[3], 16) != page or int(parts[2]) != n):
                continue
            if key[0] in "se" and not (n > 1 and -n <= int(parts[1]) < n):
                continue
            standing.append((key, evidence))
        return standing

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        places = [(key, self._names[key], evidence.to_list()) for key, evidence in self._places.items()]
        return {
            "version": 2, "places": places, "pages": self._pages, "n_probes": self.n_probes, "n_quiet": self.n_quiet,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TemplateNoise:
        """Return what `to_dict` gave; of what earlier versions kept nothing can be used."""
        made = cls()
        if data.get("version") == 2:
            made._places = {key: Evidence.from_list(evidence) for key, _, evidence in data["places"]}
            made._names = {key: name for key, name, _ in data["places"]}
            made._pages, made.n_probes, made.n_quiet = data["pages"], data["n_probes"], data["n_quiet"]
        return made

    def known(self) -> list[tuple[str, float, str]]:
        """Return what is ignored: its name, since when (POSIX seconds), and what that is known from."""
        return [
            (self._names[key], evidence.since, evidence.say())
            for key, evidence in self._places.items()
            if self._level(key, evidence)
        ]


def _mostly(found: Sequence[Difference]) -> set[int]:
    """Return the places at which three or more blocks differ, and at least half of those that there are."""
    counts = Counter(one.place for one in found if one.kind != Kind.ORDER)
    n_of = {one.place: one.n for one in found}
    return {place for place, n in counts.items() if n >= _MANY and 2 * n >= n_of[place]}


def _keys(page: int, one: Difference, is_most: bool, *, is_asked: bool = False) -> list[str]:
    """Return the names of the places that a difference is evidence for."""
    place = f"{one.place:x}"
    if one.kind == Kind.ORDER:
        return [f"r{place}"]
    if one.n <= 1:
        return [f"p{place}"]
    keys = [f"m{place}"] if is_most or is_asked else []
    if one.number >= 0:
        keys += f"s{place}.{one.number}", f"e{place}.{one.number - one.n}", f"o{place}.{one.number}.{one.n}.{page:x}"
    return keys
