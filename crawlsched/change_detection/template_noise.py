"""Template noise: which tokens of a template's pages change by themselves, on what evidence, and since when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from crawlsched.change_detection.evidence import Evidence
from crawlsched.change_detection.limits import FEW, MOST_PAGES, MOST_PLACES
from crawlsched.change_detection.trace import Difference, Kind, Trace, digest_of

__all__ = ["Hidden", "Restless", "TemplateNoise"]


class Hidden(NamedTuple):
    """A place that is left out.

    Attributes
    ----------
    place : str
        How to call it.
    since : float
        POSIX seconds.
    evidence : str
    said : str
        What was left out last.
    """

    place: str
    since: float
    evidence: str
    said: str


@dataclass(slots=True)
class Restless:
    """How often visits found a place changed, for a suggestion: it hides nothing.

    Attributes
    ----------
    name : str
        How to call it.
    differed, still : int
        Visits that found it changed since the reader was told last, and that did not.
    pages : list of int
        Some of the pages where it differed.
    """

    name: str
    differed: int = 0
    still: int = 0
    pages: list[int] = field(default_factory=list)

    @property
    def is_suggested(self) -> bool:
        """Whether it differs at most visits of several pages."""
        return self.differed >= 2 * FEW and len(self.pages) >= FEW and self.differed > self.still

    def say(self) -> str:
        """Say how often it differed, and which setting leaves it out."""
        leaves = ""
        if self.name.startswith("@"):
            keys = [self.name[1:].rpartition(".")[2]]
            leaves = f"; `CRAWLSCHED_FINGERPRINTS = {{'*': {{'ignore_keys': {keys!r}}}}}` leaves it out"
        elif " " not in self.name or ">" in self.name or self.name.startswith("["):
            leaves = f"; `CRAWLSCHED_FINGERPRINT_DROP = [{self.name!r}]` leaves it out"
        return (
            f"`{self.name.removeprefix('@')}` differed at {self.differed} of {self.differed + self.still} visits on "
            f"{len(self.pages)} pages{' or more' * (len(self.pages) >= MOST_PAGES)} and is told each time{leaves}"
        )


class TemplateNoise:
    """What is known of the places of one template's pages.

    Notes
    -----
    What is known is known of tokens: those that stand between two others at a place. A place is the path that leads to
    a block. Where several blocks of a page have one path, it is a number among them, counted from the beginning and
    from the end, and all of them where most differ at once.
    """

    def __init__(self) -> None:
        self._evidence: dict[str, dict[tuple[str, str], Evidence]] = {}
        self._names: dict[str, str] = {}
        self._visits: dict[int, Restless] = {}
        self._pages: list[int] = []
        self.n_probes = 0
        self.n_quiet = 0
        #: How often in a row a page that said what it had said before said so twice.
        self.n_returns = 0
        self.n_learned = 0
        self._suggested: set[str] = set()

    @property
    def is_known(self) -> bool:
        """Whether so many visits of the template were probed that a change can be told without."""
        return self.n_probes >= FEW

    @property
    def n_pages(self) -> int:
        """How many pages of the template have been visited again, up to twelve."""
        return len(self._pages)

    def hidden(self, page: int, found: Sequence[Difference]) -> dict[int, Evidence]:
        """Return which of some differences are noise, by their number, and what proves it."""
        proved = {}
        for number, one in enumerate(found):
            for key, evidence in self._speaking_for(one):
                least = FEW if key[0] in "se" else 2
                if _covers(evidence, one) and evidence.is_noise_of(page, least_others=least):
                    proved[number] = evidence
                    break
        return proved

    def say(self, one: Difference, evidence: Evidence) -> str:
        """Say why a difference is left out."""
        name = next((self._names[key] for key in _keys(one) if key in self._names), "?")
        return f"{name} {evidence.say()}"

    def _speaking_for(self, one: Difference) -> list[tuple[str, Evidence]]:
        """Return what is known of the tokens of a difference, and of whole blocks there."""
        slots = [(one.left, one.right), ("", "")][one.is_whole :]
        return [
            (key, known[slot])
            for key in _keys(one)
            if (known := self._evidence.get(key))
            for slot in slots
            if slot in known
        ]

    def are_suspects(self, found: Sequence[Difference]) -> bool:
        """Whether all differences are at places that have differed at once, or differ at most visits."""
        return bool(found) and all(
            any(evidence.is_suspect for _, evidence in self._speaking_for(one)) or self._is_restless(one)
            for one in found
        )

    def _is_restless(self, one: Difference) -> bool:
        visits, known = self._visits.get(one.place), self._speaking_for(one)
        return visits is not None and visits.is_suggested and (not known or any(e.is_suspect for _, e in known))

    def are_new_suspects(self, found: Sequence[Difference]) -> bool:
        """Whether all differences between fetches made at once may be noise that is not known yet."""
        return all(all(evidence.may_be_noise for _, evidence in self._speaking_for(one)) for one in found)

    def learn_at_once(
        self, page: int, found: Sequence[Difference], trace: Trace, now: float, apart: float = 0.0,
        *, may_be_old: bool = False,
    ) -> bool:  # fmt: skip
        """Learn from two fetches made at once; return whether they differed where that was not known.

        Parameters
        ----------
        page : int
        found : sequence of Difference
            Between the two.
        trace : Trace
            Of the second.
        now : float
            POSIX seconds.
        apart : float, default 0
            The time between the two as a share of that since the visit before.
        may_be_old : bool, default False
            Whether the page said before what the second fetch gave: then only what other fetches have shown before it
            teaches, as of two states by turns.
        """
        is_surprised = len(self.hidden(page, found)) < len(found)
        differing: dict[str, set[tuple[str, str]]] = {}
        all_known = True
        for one, key in self._keys_at_once(found, trace):
            evidence = self._track(key, one, trace)
            is_there = one.kind in (Kind.ADDED, Kind.REMOVED)
            evidence.only_digits = evidence.only_digits and one.is_digits
            evidence.toggles = evidence.toggles or is_there
            if not is_there:
                evidence.keep(one.kept)
            slots = differing.setdefault(key, set())
            if (one.left, one.right) in slots:
                continue
            slots.add((one.left, one.right))
            # Of what comes and goes the states are that it is there, and that it is not.
            states = [bool(one.old), bool(one.new)] if is_there else [digest_of(one.old), digest_of(one.new)]
            known = [evidence.knows(state) for state in states]
            if may_be_old and not known[0]:
                all_known = False
                continue
            evidence.probed(page, differed=True, now=now, apart=apart)
        if not all_known:
            return False
        for evidence in self._standing(trace, differing):
            evidence.probed(page, differed=False, apart=apart)
        self.n_probes += 1
        self.n_quiet = 0 if is_surprised else self.n_quiet + 1
        self.n_learned += 1
        return is_surprised

    def learn_from_visit(self, page: int, found: Sequence[Difference], trace: Trace, before: Trace) -> None:
        """Count a visit of a page that had been visited before, for suggestions."""
        if page not in self._pages and len(self._pages) < MOST_PAGES:
            self._pages.append(page)
        differing = {one.place for one in found if one.place}
        for place in differing:
            visits = self._visits.get(place)
            if visits is None:
                name = trace.names.get(place) or before.names.get(place, "?")
                visits = self._visits[place] = Restless(name)
                if len(self._visits) > MOST_PLACES:
                    del self._visits[min(self._visits, key=lambda one: self._visits[one].differed)]
            visits.differed += 1
            if page not in visits.pages and len(visits.pages) < MOST_PAGES:
                visits.pages.append(page)
        for place in self._visits.keys() & trace.names.keys() - differing:
            self._visits[place].still += 1
        self.n_learned += bool(differing)

    def suggestions(self) -> list[str]:
        """Return what is told at most visits and proved by nothing, and how to leave it out."""
        proved = {_place_of(key) for key, known in self._evidence.items() if any(e.is_noise for e in known.values())}
        return [one.say() for place, one in self._visits.items() if one.is_suggested and place not in proved]

    def new_suggestions(self) -> list[str]:
        """Return what was not returned yet, by the names of the places."""
        new = [text for text in self.suggestions() if text.partition(" ")[0] not in self._suggested]
        self._suggested.update(text.partition(" ")[0] for text in new)
        return new

    def known(self) -> list[Hidden]:
        """Return what is left out."""
        return [
            Hidden(f"{self._names.get(key, '?')}{_say_slot(slot)}", evidence.since, evidence.say(), evidence.said)
            for key, known in self._evidence.items()
            for slot, evidence in known.items()
            if evidence.is_noise
        ]

    def _keys_at_once(self, found: Sequence[Difference], trace: Trace) -> list[tuple[Difference, str]]:
        blocks = {(one.place, one.number, one.kind == Kind.REMOVED) for one in found if one.kind != Kind.ORDER}
        counts = Counter(place for place, _, _ in blocks)
        keys = []
        for one in found:
            is_most = counts[one.place] >= min(FEW, one.n) and 2 * counts[one.place] >= one.n
            keys += [(one, key) for key in _keys(one) if one.n <= 1 or (key[0] == "m") == is_most or key[0] == "r"]
        return keys

    def _track(self, key: str, one: Difference, trace: Trace) -> Evidence:
        known = self._evidence.setdefault(key, {})
        self._names.setdefault(key, trace.names.get(one.place, "a block that is gone"))
        evidence = known.setdefault((one.left, one.right), Evidence())
        if len(self._evidence) > MOST_PLACES:
            others = (other for other in self._evidence if other != key)
            least = min(others, key=lambda other: max(e.differed for e in self._evidence[other].values()))
            del self._evidence[least], self._names[least]
        return evidence

    def _standing(self, trace: Trace, but: Mapping[str, set[tuple[str, str]]]) -> list[Evidence]:
        """Return what is known of places that a page has, and in which nothing differed."""
        if not self._evidence:
            return []
        counts = Counter(trace.places)
        standing = []
        for key, known in self._evidence.items():
            n, differing = counts[_place_of(key)], but.get(key, set())
            if not n or (key[0] in "se" and not -n <= int(key.partition(".")[2]) < n):
                continue
            for slot, evidence in known.items():
                # Where a whole block differed its tokens did, and the other way round.
                if slot not in differing and ("", "") not in differing and not (differing and slot == ("", "")):
                    standing.append(evidence)
        return standing

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        places = [
            (key, self._names[key], [(*slot, evidence.to_list()) for slot, evidence in known.items()])
            for key, known in self._evidence.items()
        ]
        visits = [(place, v.name, v.differed, v.still, v.pages) for place, v in self._visits.items()]
        return {
            "version": 3, "places": places, "visits": visits, "pages": self._pages,
            "n_probes": self.n_probes, "n_quiet": self.n_quiet,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TemplateNoise:
        """Return what `to_dict` gave; of what earlier versions kept nothing can be used."""
        made = cls()
        if data.get("version") == 3:
            for key, name, known in data["places"]:
                made._names[key] = name
                made._evidence[key] = {(left, right): Evidence.from_list(one) for left, right, one in known}
            made._visits = {place: Restless(*one) for place, *one in data["visits"]}
            made._pages, made.n_probes, made.n_quiet = data["pages"], data["n_probes"], data["n_quiet"]
            made._suggested = {text.partition(" ")[0] for text in made.suggestions()}
        return made


def _covers(evidence: Evidence, one: Difference) -> bool:
    """Whether a difference is of the kind that was proved."""
    if one.kind in (Kind.ADDED, Kind.REMOVED):
        return evidence.toggles
    # Where a whole text is noise, what stood still in it is none.
    return (one.is_digits or not evidence.only_digits) and not Counter(evidence.kept) - Counter(one.kept)


def _keys(one: Difference) -> list[str]:
    """Return the names of the places that a difference is evidence for."""
    if one.kind == Kind.REST:  # it is never noise
        return []
    if one.kind in (Kind.ORDER, Kind.MOVED):
        return [f"r{one.place:x}", f"m{one.place:x}"]
    if one.n <= 1:
        return [f"p{one.place:x}"]
    return [f"m{one.place:x}", f"s{one.place:x}.{one.number}", f"e{one.place:x}.{one.number - one.n}"]


def _place_of(key: str) -> int:
    return int(key[1:].partition(".")[0], 16)


def _say_slot(slot: tuple[str, str]) -> str:
    return f" between {slot[0] or 'the beginning'!r} and {slot[1] or 'the end'!r}" if any(slot) else ""
