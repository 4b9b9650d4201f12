"""Template noise: which tokens of a template's pages change by themselves, on what evidence, and since when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

from crawlsched.change_detection.limits import FEW, LONGEST_NAME, MOST_PLACES, REMEMBERED
from crawlsched.change_detection.trace import Difference, Trace, digest_of

__all__ = ["Evidence", "TemplateNoise"]

# Two fetches at once differ in at least half of the cases at a place of noise, and in at most a tenth at a place that
# is edited. These shares decide how much a difference proves (Wald 1945, "Sequential tests of statistical hypotheses").
_EDITED, _LEAST_NOISE = 0.1, 0.5
# No noise counts as surer than this, so that a single fetch that agrees proves little.
_MOST_NOISE = 1.0 - 0.5 * _EDITED
# If every visit finds an edit, the probability that it fell between the two fetches is the time between them, as a
# share of the time between visits. Where this share is larger, a page is visited as fast as it can be edited, and
# nothing could be proved. A page also contradicts noise if its fetches agree so often that chance would do so in a
# smaller share of cases.
_MOST_EDITED = 2.0 * _EDITED
# A place is noise beyond the first of these odds, until an edit is as likely. Evidence beyond the highest odds, on
# either side, is dropped, so that a place which stands still from now on is recognised after three to twelve fetches.
_ODDS, _HIGHEST = log(100.0), log(1_000.0)

#: A place, and which of its blocks: the "only" one, "all", one by its number from the beginning or end, "order".
_Key = tuple[int, str]
#: The same, and the tokens before and behind those that differ.
_Where = tuple[int, str, str, str]


@dataclass(slots=True)
class Evidence:
    """The evidence about tokens at one place of a template; where visits are counted, about the place as a whole."""

    name: str = ""  # how to call the place
    differed: int = 0  # fetches made at once, or visits, that differed here, and that did not
    agreed: int = 0
    score: float = 0.0  # their evidence for noise
    only_digits: bool = True  # whether only digits differed; whether one fetch had no such block
    toggles: bool = False
    is_noise: bool = False  # whether chance and edits are ruled out
    # How often two fetches of some pages differed here, and how often they did not.
    pages: dict[str, list[int]] = field(default_factory=dict)
    # The texts, by their digests, that fetches at once have shown, up to `REMEMBERED`.
    states: list[int] = field(default_factory=list)
    # Where a whole text differs, the tokens that stood still in all pairs of fetches, digits as "#".
    kept: list[str] | None = None
    said: str = ""  # the text that was left out last
    said_of: dict[str, int] = field(default_factory=dict)  # the same by page, as digests
    since: float = 0.0  # when it became noise, POSIX seconds

    def probed(self, page: str, *, differed: bool, now: float = 0.0, apart: float = 0.0) -> None:
        """Count two fetches made at once.

        Examples
        --------
        >>> clock = Evidence()
        >>> for page in ("1", "2", "3"):
        ...     clock.probed(page, differed=True)
        >>> clock.is_noise, clock.is_noise_of("1"), clock.is_noise_of("9")
        (True, True, True)
        >>> clock.probed("9", differed=False)
        >>> clock.is_noise_of("1"), clock.is_noise_of("9")
        (True, False)
        """
        share = (self.differed + 0.5) / (self.differed + self.agreed + 1.0)
        share = min(max(share, _LEAST_NOISE), _MOST_NOISE)
        edited = min(_EDITED + apart, _MOST_EDITED)
        step = log(share / edited) if differed else log((1.0 - share) / (1.0 - edited))
        self.score = min(max(self.score + step, -_HIGHEST), _HIGHEST)
        self.differed += differed
        self.agreed += not differed
        own = self.pages.setdefault(page, [0, 0])
        own[not differed] += 1
        if len(self.pages) > REMEMBERED:
            del self.pages[next(iter(self.pages))]
        if self.score >= _ODDS and not self.is_noise:
            self.is_noise, self.since = True, now
        elif self.score <= 0.0:
            self.is_noise = False

    def is_noise_of(self, page: str) -> bool:
        """Whether this is noise on a page: the page has shown it, or two others have and it does not contradict."""
        if not self.is_noise or self.has_shown(page):
            return self.is_noise
        _, still_here = self.pages.get(page, (0, 0))
        # How often the fetches of other pages agree: with two states by turns, in half of the cases.
        agreeing = (self.agreed - still_here + 0.5) / (self.differed + self.agreed - still_here + 1.0)
        if agreeing**still_here < _MOST_EDITED:
            return False
        noisy = sum(differed > 0 for differed, _ in self.pages.values())
        still = sum(not differed and agreeing**agreed < _MOST_EDITED for differed, agreed in self.pages.values())
        return noisy > max(still, 1)

    def has_shown(self, page: str) -> bool:
        """Whether two fetches of this page differed here."""
        return self.pages.get(page, (0, 0))[0] > 0

    def keep(self, tokens: Sequence[str]) -> None:
        """These tokens stood still while others differed."""
        counts = Counter(tokens) if self.kept is None else Counter(tokens) & Counter(self.kept)
        self.kept = [*counts.elements()]

    def knows(self, digest: int) -> bool:
        """Return whether a text was shown before, and note that it was."""
        if digest in self.states:
            return True
        self.states = [*self.states, digest][-REMEMBERED:]
        return False

    @property
    def has_few_states(self) -> bool:
        """Whether a page has shown the same few texts again and again: two by turns are noise, a third is content."""
        most = min(max((differed for differed, _ in self.pages.values()), default=0), REMEMBERED - 1)
        return len(self.states) <= most

    def leave_out(self, page: str, text: str) -> bool:
        """Leave a text of a page out; return whether it was the same the last time."""
        before, digest = self.said_of.get(page), digest_of(text)
        self.said, self.said_of[page] = text[:LONGEST_NAME], digest
        if len(self.said_of) > REMEMBERED:
            del self.said_of[next(iter(self.said_of))]
        return before == digest

    def to_list(self) -> list[Any]:
        """Return the arguments that make this object, as plain data."""
        values = (getattr(self, name) for name in self.__slots__)
        return [value.copy() if isinstance(value, dict) else value for value in values]

    def say(self) -> str:
        """Return the evidence in a few words."""
        return f"differed in {self.differed} of {self.differed + self.agreed} second fetches at once"


class TemplateNoise:
    """What is known of the places of one template's pages.

    Notes
    -----
    Each piece of evidence is about the tokens between two others at a place. A place is the path that leads to a block.
    Where several blocks of a page have the same path, each is a place by its number, from the beginning and from the
    end. If most of them differ at once, all of them are one place.
    """

    def __init__(self) -> None:
        self._evidence: dict[_Where, Evidence] = {}
        #: How often visits found a place changed, for suggestions: it hides nothing.
        self._visits: dict[int, Evidence] = {}
        self._suggested: set[int] = set()
        #: Whether several pages have differed at one place since this was read.
        self.is_shared = False
        self.n_probes = 0
        self.n_quiet = 0
        #: How often in a row a page that showed former content showed it in both fetches.
        self.n_returns = 0
        self.n_learned = self.n_written = 0

    def hidden(self, page: str, found: Sequence[Difference]) -> dict[int, Evidence]:
        """Return which of some differences are noise, by their number, and the evidence."""
        proved = {}
        for number, one in enumerate(found):
            for evidence, *texts in self._speaking_for(one):
                if _covers(evidence, one, texts) and evidence.is_noise_of(page):
                    proved[number] = evidence
                    break
        return proved

    def _speaking_for(self, one: Difference) -> list[tuple[Evidence, str, str]]:
        """Return the evidence about the tokens of a difference and about whole blocks, each with old and new text."""
        slots = [(one.left, one.right, one.old, one.new), ("", "", one.was, one.says)][one.is_whole :]
        return [
            (evidence, was, says)
            for place, which in _keys(one)
            for left, right, was, says in slots
            if (evidence := self._evidence.get((place, which, left, right)))
        ]

    def is_suspect(self, one: Difference) -> bool:
        """Whether a place differed between two fetches at once, or differs at most visits."""
        known, visits = self._speaking_for(one), self._visits.get(one.place)
        if known:
            return any(evidence.score > 0.0 for evidence, _, _ in known)
        return visits is not None and _is_restless(visits)

    def learn_at_once(
        self, page: str, found: Sequence[Difference], trace: Trace, now: float, apart: float = 0.0,
        *, may_be_old: bool = False,
    ) -> bool:  # fmt: skip
        """Learn from two fetches made at once; return whether they differed where that was not known.

        `apart` is the time between the two as a share of the time since the visit before. With `may_be_old` the second
        may be an old copy; then only differences count that other fetches have shown.
        """
        is_surprised = len(self.hidden(page, found)) < len(found)
        differing: dict[_Key, set[tuple[str, str]]] = {}
        all_known = True
        for one, key in _keys_at_once(found)[:MOST_PLACES]:
            name = trace.names.get(one.place, "a block that is gone")
            evidence = _tracked(self._evidence, (*key, one.left, one.right), name)
            is_there = one.kind in ("added", "removed")
            evidence.only_digits = evidence.only_digits and one.is_digits
            evidence.toggles = evidence.toggles or is_there
            if one.is_whole and not is_there:
                evidence.keep(one.kept)
            # For something that comes and goes it is enough that it was there before, with whatever text.
            was_there = is_there and any(evidence.states) and bool(one.old)
            known = [evidence.knows(digest_of(text)) for text in (one.old, one.new)]
            slots = differing.setdefault(key, set())
            if (one.left, one.right) in slots:
                continue
            slots.add((one.left, one.right))
            if may_be_old and not (known[0] or was_there):
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
        differing = {one.place for one in found if one.place}
        for place in differing:
            visits = _tracked(self._visits, place, trace.names.get(place) or before.names.get(place, "?"))
            visits.differed += 1
            if len(visits.pages) < REMEMBERED:
                visits.pages.setdefault(page, [])
            self.is_shared = self.is_shared or len(visits.pages) > 1
        for place in self._visits.keys() & trace.names.keys() - differing:
            self._visits[place].agreed += 1
        self.n_learned += bool(differing)

    def suggestions(self, *, new: bool = False) -> list[str]:
        """Return suggestions for places that differ at most visits without proof of noise; if `new`, only new ones."""
        proved = {where[0] for where, evidence in self._evidence.items() if evidence.is_noise}
        said = proved | self._suggested if new else proved
        found = {place: one for place, one in self._visits.items() if place not in said and _is_restless(one)}
        self._suggested |= found.keys()
        return [_suggestion(one) for one in found.values()]

    def known(self) -> Iterator[dict[str, Any]]:
        """Yield what is left out: the name of the place, since when, on what evidence, and its last text."""
        found = {}
        for (_, _, left, right), one in self._evidence.items():
            slot = f" between {left or 'the beginning'!r} and {right or 'the end'!r}" if left or right else ""
            place = one.name + slot
            # The same element of a page, counted from the first and from the last one, has one name.
            if one.is_noise and (place not in found or one.said):
                found[place] = {"place": place, "since": one.since, "evidence": one.say(), "said": one.said}
        yield from found.values()

    def _standing(self, trace: Trace, but: Mapping[_Key, set[tuple[str, str]]]) -> Iterator[Evidence]:
        """Yield the evidence about places that a page has, and in which nothing differed."""
        counts = Counter(trace.places) if self._evidence else Counter()
        for (place, which, *slot), evidence in self._evidence.items():
            n, differing = counts[place], but.get((place, which), set())
            is_there = n > 0 and (not which[-1].isdigit() or -n <= int(which) < n)
            # If a whole block differed, its tokens differed, and the other way round.
            is_whole = not any(slot)
            if is_there and not (differing if is_whole else {(*slot,), ("", "")} & differing):
                yield evidence

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        return {
            "version": 5,
            "places": [(*where, evidence.to_list()) for where, evidence in self._evidence.items()],
            "visits": [(place, visits.to_list()) for place, visits in self._visits.items()],
            "n_probes": self.n_probes, "n_quiet": self.n_quiet,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TemplateNoise:
        """Return what `to_dict` gave; data of earlier versions cannot be used."""
        made = cls()
        if data.get("version") == 5:
            made._evidence = {(*where,): Evidence(*one) for *where, one in data["places"]}
            made._visits = {place: Evidence(*one) for place, one in data["visits"]}
            made.n_probes, made.n_quiet = data["n_probes"], data["n_quiet"]
            made.suggestions()  # the log named them when they were new
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
        f"{len(visits.pages)} pages{' or more' * (len(visits.pages) >= REMEMBERED)} and is delivered each time{leaves}"
    )


def _tracked(known: dict[Any, Evidence], where: Any, name: str) -> Evidence:
    """Return the evidence about something; if there is no room for more, the one that has differed least goes."""
    if where not in known and len(known) >= 2 * MOST_PLACES:
        for least in sorted(known, key=lambda one: -known[one].differed)[MOST_PLACES:]:
            del known[least]
    return known.setdefault(where, Evidence(name))


def _covers(evidence: Evidence, one: Difference, texts: Iterable[str]) -> bool:
    """Whether a difference is of the kind that was proved."""
    is_text = one.kind not in ("order", "moved")
    if is_text and evidence.has_few_states and not {*map(digest_of, texts)}.issubset(evidence.states):
        return False
    if one.kind in ("added", "removed"):
        return evidence.toggles
    if evidence.only_digits and not one.is_digits:
        return False
    # Where a text is noise as a whole, its tokens that stood still are not noise.
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
