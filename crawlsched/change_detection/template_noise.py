"""Template noise: which tokens of a template's pages change by themselves, on what evidence, and since when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crawlsched.change_detection.evidence import Evidence
from crawlsched.change_detection.limits import FEW, MOST_PAGES, MOST_PLACES
from crawlsched.change_detection.trace import Difference, Trace, digest_of

__all__ = ["TemplateNoise"]

_Key = tuple[int, str]
"""A place, and which of its blocks: the "only" one, "all", one by its number from the beginning or end, "order"."""
_Where = tuple[int, str, str, str]
"""The same, and the tokens before and behind those that differ."""


class TemplateNoise:
    """What is known of the places of one template's pages.

    Notes
    -----
    What is known is known of tokens: those that stand between two others at a place. A place is the path that leads to
    a block. Where several blocks of a page have one path, it is a number among them, counted from the beginning and
    from the end, and all of them where most differ at once.
    """

    def __init__(self) -> None:
        self._evidence: dict[_Where, Evidence] = {}
        #: How often visits found a place changed, for suggestions: it hides nothing.
        self._visits: dict[int, Evidence] = {}
        self._suggested: set[int] = set()
        self._pages: list[str] = []
        self.n_probes = 0
        self.n_quiet = 0
        #: How often in a row a page that said what it had said before said so twice.
        self.n_returns = 0
        self.n_learned = self.n_written = 0

    @property
    def is_known(self) -> bool:
        """Whether enough visits of the template were probed to judge a change without a probe."""
        return self.n_probes >= FEW

    @property
    def n_pages(self) -> int:
        """How many pages of the template have been visited again, up to twelve."""
        return len(self._pages)

    def hidden(self, page: str, found: Sequence[Difference]) -> dict[int, Evidence]:
        """Return which of some differences are noise, by their number, and what proves it."""
        proved = {}
        for number, one in enumerate(found):
            for which, evidence in self._speaking_for(one):
                least = FEW if _is_number(which) else 2
                if _covers(evidence, one) and evidence.is_noise_of(page, least_others=least):
                    proved[number] = evidence
                    break
        return proved

    def _speaking_for(self, one: Difference) -> list[tuple[str, Evidence]]:
        """Return what is known of the tokens of a difference, and of whole blocks there."""
        slots = [(one.left, one.right), ("", "")][one.is_whole :]
        return [
            (which, evidence)
            for place, which in _keys(one)
            for slot in slots
            if (evidence := self._evidence.get((place, which, *slot)))
        ]

    def are_suspects(self, found: Sequence[Difference]) -> bool:
        """Whether all differences are at places that have differed at once, or differ at most visits."""
        return all(map(self._is_suspect, found))

    def _is_suspect(self, one: Difference) -> bool:
        known, visits = self._speaking_for(one), self._visits.get(one.place)
        if known:
            return any(evidence.score > 0.0 for _, evidence in known)
        return visits is not None and _is_restless(visits)

    def learn_at_once(
        self, page: str, found: Sequence[Difference], trace: Trace, now: float, apart: float = 0.0,
        *, may_be_old: bool = False,
    ) -> bool:  # fmt: skip
        """Learn from two fetches made at once; return whether they differed where that was not known.

        `apart` is the time between the two as a share of that since the visit before. With `may_be_old` the second may
        be an old copy: then only differences that other fetches have shown teach.
        """
        is_surprised = len(self.hidden(page, found)) < len(found)
        differing: dict[_Key, set[tuple[str, str]]] = {}
        all_known = True
        for one, key in _keys_at_once(found)[:MOST_PLACES]:
            evidence = self._track((*key, one.left, one.right), trace)
            is_there = one.kind in ("added", "removed")
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

    def learn_from_visit(self, page: str, found: Sequence[Difference], trace: Trace, before: Trace) -> None:
        """Count a visit of a page that had been visited before, for suggestions."""
        if page not in self._pages and len(self._pages) < MOST_PAGES:
            self._pages.append(page)
        differing = {one.place for one in found if one.place}
        for place in differing:
            visits = self._visits.get(place)
            if visits is None:
                name = trace.names.get(place) or before.names.get(place, "?")
                self._visits = _most_telling(self._visits)
                visits = self._visits[place] = Evidence(name)
            visits.differed += 1
            if len(visits.pages) < MOST_PAGES:
                visits.pages.setdefault(page, [])
        for place in self._visits.keys() & trace.names.keys() - differing:
            self._visits[place].agreed += 1
        self.n_learned += bool(differing)

    def suggestions(self, *, new: bool = False) -> list[str]:
        """Return what differs at most visits without a proof that it is noise; if asked for, only what is `new`."""
        proved = {where[0] for where, evidence in self._evidence.items() if evidence.is_noise}
        said = proved | self._suggested if new else proved
        found = {place: one for place, one in self._visits.items() if place not in said and _is_restless(one)}
        self._suggested |= found.keys()
        return [_suggestion(one) for one in found.values()]

    def known(self) -> Iterator[dict[str, Any]]:
        """Yield what is left out: how to call the place, since when, on what evidence, and what it said last."""
        for (_, _, *slot), one in self._evidence.items():
            if one.is_noise:
                place = f"{one.name}{_say_slot(*slot)}"
                yield {"place": place, "since": one.since, "evidence": one.say(), "said": one.said}

    def _track(self, where: _Where, trace: Trace) -> Evidence:
        evidence = self._evidence.get(where)
        if evidence is None:
            self._evidence = _most_telling(self._evidence)
            evidence = self._evidence[where] = Evidence(trace.names.get(where[0], "a block that is gone"))
        return evidence

    def _standing(self, trace: Trace, but: Mapping[_Key, set[tuple[str, str]]]) -> list[Evidence]:
        """Return what is known of places that a page has, and in which nothing differed."""
        counts = Counter(trace.places) if self._evidence else Counter()
        standing = []
        for (place, which, *slot), evidence in self._evidence.items():
            n, differing = counts[place], but.get((place, which), set())
            is_there = n > 0 and (not _is_number(which) or -n <= int(which) < n)
            # Where a whole block differed its tokens did, and the other way round.
            is_whole = not any(slot)
            if is_there and not (differing if is_whole else {(*slot,), ("", "")} & differing):
                standing.append(evidence)
        return standing

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        return {
            "version": 5,
            "places": [(*where, evidence.to_list()) for where, evidence in self._evidence.items()],
            "visits": [(place, visits.to_list()) for place, visits in self._visits.items()],
            "pages": self._pages, "n_probes": self.n_probes, "n_quiet": self.n_quiet,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TemplateNoise:
        """Return what `to_dict` gave; of what earlier versions kept nothing can be used."""
        made = cls()
        if data.get("version") == 5:
            made._evidence = {(*where,): Evidence(*one) for *where, one in data["places"]}
            made._visits = {place: Evidence(*one) for place, one in data["visits"]}
            made._pages, made.n_probes, made.n_quiet = data["pages"], data["n_probes"], data["n_quiet"]
            made.suggestions()  # they were said when they were new
        return made


def _is_restless(visits: Evidence) -> bool:
    """Whether a place differs at most visits of several pages."""
    return visits.differed >= 2 * FEW and len(visits.pages) >= FEW and visits.differed > visits.agreed


def _suggestion(visits: Evidence) -> str:
    """Say how often a place differed, and which setting leaves it out."""
    name, leaves = visits.name, ""
    if name.startswith("@"):
        keys = [name[1:].rpartition(".")[2]]
        leaves = f"; `CRAWLSCHED_FINGERPRINTS = {{'*': {{'ignore_keys': {keys!r}}}}}` leaves it out"
    elif " " not in name or ">" in name or name.startswith("["):
        leaves = f"; `CRAWLSCHED_FINGERPRINT_DROP = [{name!r}]` leaves it out"
    return (
        f"`{name.removeprefix('@')}` differed at {visits.differed} of {visits.differed + visits.agreed} visits on "
        f"{len(visits.pages)} pages{' or more' * (len(visits.pages) >= MOST_PAGES)} and is told each time{leaves}"
    )


def _most_telling(places: dict[Any, Any]) -> dict[Any, Any]:
    """Return what has differed most, if there is too much."""
    if len(places) < 2 * MOST_PLACES:
        return places
    return dict(sorted(places.items(), key=lambda item: -item[1].differed)[:MOST_PLACES])


def _covers(evidence: Evidence, one: Difference) -> bool:
    """Whether a difference is of the kind that was proved."""
    if one.kind in ("added", "removed"):
        return evidence.toggles
    if evidence.only_digits and not one.is_digits:
        return False
    # Where a whole text is noise, what stood still in it is none.
    return not evidence.kept or not Counter(evidence.kept) - Counter(one.kept)


def _keys(one: Difference) -> list[_Key]:
    """Return what a difference is evidence for."""
    if one.kind == "rest":  # it is never noise
        return []
    if one.kind in ("order", "moved"):
        return [(one.place, "order"), (one.place, "all")]
    if one.n <= 1:
        return [(one.place, "only")]
    return [(one.place, "all"), (one.place, f"{one.number}"), (one.place, f"{one.number - one.n}")]


def _keys_at_once(found: Sequence[Difference]) -> list[tuple[Difference, _Key]]:
    """Name differing blocks by their place alone where most blocks there differ, and by place and number elsewhere."""
    blocks = {(one.place, one.number, one.kind == "removed") for one in found if one.kind != "order"}
    counts = Counter(place for place, _, _ in blocks)
    keys = []
    for one in found:
        is_most = counts[one.place] >= min(FEW, one.n) and 2 * counts[one.place] >= one.n
        keys += [(one, key) for key in _keys(one) if one.n <= 1 or key[1] == "order" or (key[1] == "all") == is_most]
    return keys


def _is_number(which: str) -> bool:
    return which[-1].isdigit()


def _say_slot(left: str, right: str) -> str:
    return f" between {left or 'the beginning'!r} and {right or 'the end'!r}" if left or right else ""
