"""Template noise: the tokens that change by themselves on a template's pages, and the evidence for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

from crawlsched.change_detection.limits import DEEPEST, FEW, LONGEST_NAME, MOST_PLACES, REMEMBERED
from crawlsched.change_detection.trace import Difference, Trace, digest_of

__all__ = ["Evidence", "TemplateNoise"]

# Two fetches in immediate succession differ in at least half of the cases at a place of noise. At a place that people
# edit, they differ in at most a tenth. These shares decide how much a difference proves (Wald 1945, "Sequential tests
# of statistical hypotheses").
_EDITED, _LEAST_NOISE = 0.1, 0.5
# For noise, the share of pairs that differ counts as at most this number. So a single pair that agrees proves little.
_MOST_NOISE = 1.0 - 0.5 * _EDITED
# The probability that an edit falls between two fetches is the time between them as a share of the time between visits.
# It counts as at most `_MOST_EDITED`, since with larger values nothing could be proved. The constant has another use.
# At a place of noise, many pairs of fetches seldom all agree. If the probability of that is below the constant, the
# page contradicts the noise.
_MOST_EDITED = 2.0 * _EDITED
# A place becomes noise above the first of these odds, and stays noise until an edit is as likely as noise. Odds for or
# against noise above the second number count as this number. So a place that no longer changes is recognised after
# three to twelve fetches.
_ODDS, _HIGHEST = log(100.0), log(1_000.0)

#: A place, and one of these words for its blocks: "only", "all", "order", or the number of a block. The number counts
#: from the beginning, or from the end if it is negative.
_Key = tuple[int, str]
#: A key, and the tokens before and after the tokens that differ.
_Where = tuple[int, str, str, str]


@dataclass(slots=True)
class Evidence:
    """The evidence about tokens at one place of a template, or about the whole place if it counts visits."""

    name: str = ""  # the name of the place
    differed: int = 0  # how many pairs of fetches, or visits, differed here; `agreed`: how many did not
    agreed: int = 0
    score: float = 0.0  # the evidence for noise: the logarithm of the odds
    only_digits: bool = True  # whether only digits differed; `toggles`: whether one fetch of a pair had no such block
    toggles: bool = False
    is_noise: bool = False  # whether chance and edits are ruled out
    # By page: in how many pairs the two fetches differed here, and in how many they did not.
    pages: dict[str, list[int]] = field(default_factory=dict)
    # The digests of the last texts that pairs of fetches have shown here, at most `REMEMBERED`.
    states: list[int] = field(default_factory=list)
    # If most blocks of a place differ: the numbers of these blocks, see `_numbers`.
    numbers: list[int] = field(default_factory=list)
    # If a whole text differs: the tokens that were the same in all pairs of fetches, with "#" for digits.
    kept: list[str] | None = None
    said: str = ""  # the text that was left out last
    said_of: dict[str, int] = field(default_factory=dict)  # by page, the digest of the text that was left out last
    since: float = 0.0  # when the place became noise, POSIX seconds

    def probed(self, page: str, *, differed: bool, now: float = 0.0, apart: float = 0.0) -> None:
        """Count a pair of fetches, made in immediate succession.

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
        """Whether the tokens are noise on a page.

        They are noise if fetches of this page differed. They are also noise if fetches of two other pages differed,
        unless fetches of this page agree too often.
        """
        if not self.is_noise or self.has_shown(page):
            return self.is_noise
        _, still_here = self.pages.get(page, (0, 0))
        # This is the share of pairs that agree on other pages: a half if two texts take turns.
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
        """Note which tokens were the same in both fetches."""
        counts = Counter(tokens) if self.kept is None else Counter(tokens) & Counter(self.kept)
        self.kept = [*counts.elements()]

    def knows(self, digest: int) -> bool:
        """Return whether a text was shown before, and note that it was shown."""
        if digest in self.states:
            return True
        self.states = [*self.states, digest][-REMEMBERED:]
        return False

    @property
    def has_few_states(self) -> bool:
        """Whether the same few texts take turns here. These texts are noise, and a new text is content."""
        most = min(max((differed for differed, _ in self.pages.values()), default=0), REMEMBERED - 1)
        return len(self.states) <= most

    def leave_out(self, page: str, text: str) -> bool:
        """Note that a text of a page was left out; return whether the same text was left out the last time."""
        before, digest = self.said_of.get(page), digest_of(text)
        self.said, self.said_of[page] = text[:LONGEST_NAME], digest
        if len(self.said_of) > REMEMBERED:
            del self.said_of[next(iter(self.said_of))]
        return before == digest

    def to_list(self) -> list[Any]:
        """Return the arguments that would make this object again, as plain data."""
        values = (getattr(self, name) for name in self.__slots__)
        return [value.copy() if isinstance(value, dict) else value for value in values]

    def say(self) -> str:
        """Return the evidence in a few words."""
        return f"differed in {self.differed} of {self.differed + self.agreed} second fetches at once"


class TemplateNoise:
    """The evidence about the places of one template's pages.

    Notes
    -----
    Each piece of evidence is about the tokens between two other tokens at a place. A place is the path that leads to a
    block. If several blocks of a page have the same path, each block is a place of its own. Its number is counted from
    the beginning and from the end. If most of these blocks differ at the same time, they are one place.
    """

    def __init__(self) -> None:
        self._evidence: dict[_Where, Evidence] = {}
        #: By place, how many visits found it changed. This is only for suggestions, and hides nothing.
        self._visits: dict[int, Evidence] = {}
        self._suggested: set[int] = set()
        #: Whether several pages have differed at one place since this object was read.
        self.is_shared = False
        self.n_probes = 0
        self.n_quiet = 0
        #: How many times in a row a second fetch has confirmed a return to former content.
        self.n_returns = 0
        self.n_learned = self.n_written = 0

    def hidden(self, page: str, found: Sequence[Difference]) -> dict[int, Evidence]:
        """Return the differences that are noise: their numbers in `found`, each with its evidence."""
        proved = {}
        for number, one in enumerate(found):
            for evidence, *texts in self._speaking_for(one):
                if _covers(evidence, one, texts) and evidence.is_noise_of(page):
                    proved[number] = evidence
                    break
        return proved

    def _speaking_for(self, one: Difference) -> list[tuple[Evidence, str, str]]:
        """Return the evidence about the tokens of a difference and about its block, with their old and new texts."""
        slots = [(one.left, one.right, one.old, one.new), ("", "", one.was, one.says)][one.is_whole :]
        return [
            (evidence, was, says)
            for place, which in _keys(one)
            for left, right, was, says in slots
            if (evidence := self._evidence.get((place, which, left, right)))
        ]

    def is_suspect(self, one: Difference) -> bool:
        """Whether a pair of fetches ever differed at the place of a difference, or visits usually differ there."""
        known, visits = self._speaking_for(one), self._visits.get(one.place)
        if known:
            return any(evidence.score > 0.0 for evidence, _, _ in known)
        return visits is not None and _is_restless(visits)

    def learn_at_once(
        self, page: str, found: Sequence[Difference], trace: Trace, now: float, apart: float = 0.0,
        *, may_be_old: bool = False,
    ) -> bool:  # fmt: skip
        """Learn from a pair of fetches; return whether they differed in something that was not known to be noise.

        `apart` is the time between the fetches as a share of the time since the last visit. `may_be_old` means that the
        second fetch may be an old copy. Then a difference counts only if other fetches have shown it.
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
            if key[1] == "all":
                evidence.numbers = sorted({*evidence.numbers, *_numbers(one)})
            if one.is_whole and not is_there:
                evidence.keep(one.kept)
            # If a block appears and disappears, earlier fetches must have shown the block, but its text may have
            # changed.
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
        """Count a repeated visit of a page, for suggestions."""
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
        """Return suggestions for places that usually differ without proof of noise, or only new suggestions."""
        proved = {where[0] for where, evidence in self._evidence.items() if evidence.is_noise}
        said = proved | self._suggested if new else proved
        found = {place: one for place, one in self._visits.items() if place not in said and _is_restless(one)}
        self._suggested |= found.keys()
        return [_suggestion(one) for one in found.values()]

    def known(self) -> Iterator[dict[str, Any]]:
        """Yield each place that is left out: its name, when it became noise, the evidence, and its last text."""
        found = {}
        for (_, _, left, right), one in self._evidence.items():
            slot = f" between {left or 'the beginning'!r} and {right or 'the end'!r}" if left or right else ""
            place = one.name + slot
            # An element may have evidence under two numbers: from the beginning and from the end. Both have the same
            # name.
            if one.is_noise and (place not in found or one.said):
                found[place] = {"place": place, "since": one.since, "evidence": one.say(), "said": one.said}
        yield from found.values()

    def _standing(self, trace: Trace, but: Mapping[_Key, set[tuple[str, str]]]) -> Iterator[Evidence]:
        """Yield the evidence about those places of a page at which nothing differed."""
        counts = Counter(trace.places) if self._evidence else Counter()
        for (place, which, *slot), evidence in self._evidence.items():
            n, differing = counts[place], but.get((place, which), set())
            is_there = n > 0 and (not which[-1].isdigit() or -n <= int(which) < n)
            # A block and its tokens only differ together.
            is_whole = not any(slot)
            if is_there and not (differing if is_whole else {(*slot,), ("", "")} & differing):
                yield evidence

    def to_dict(self) -> dict[str, Any]:
        """Return the object as plain data, for JSON."""
        return {
            "version": 6,
            "places": [(*where, evidence.to_list()) for where, evidence in self._evidence.items()],
            "visits": [(place, visits.to_list()) for place, visits in self._visits.items()],
            "n_probes": self.n_probes, "n_quiet": self.n_quiet,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TemplateNoise:
        """Return the object that `to_dict` wrote; an empty one for data of an earlier version."""
        made = cls()
        if data.get("version") == 6:
            made._evidence = {(*where,): Evidence(*one) for *where, one in data["places"]}
            made._visits = {place: Evidence(*one) for place, one in data["visits"]}
            made.n_probes, made.n_quiet = data["n_probes"], data["n_quiet"]
            made.suggestions()  # the log named these suggestions when they were new
        return made


def _is_restless(visits: Evidence) -> bool:
    """Whether a place differs at more than half of the visits, on several pages."""
    return visits.differed >= 2 * FEW and len(visits.pages) >= FEW and visits.differed > visits.agreed


def _suggestion(visits: Evidence) -> str:
    """Return a sentence that says how often a place differed, and which setting leaves the place out."""
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
    """Return the evidence for a key; if there is no room, the evidence of the place that differed least is deleted."""
    if where not in known and len(known) >= 2 * MOST_PLACES:
        for least in sorted(known, key=lambda one: -known[one].differed)[MOST_PLACES:]:
            del known[least]
    return known.setdefault(where, Evidence(name))


def _covers(evidence: Evidence, one: Difference, texts: Iterable[str]) -> bool:
    """Whether the evidence is about differences of this kind."""
    is_text = one.kind not in ("order", "moved")
    if is_text and evidence.numbers and not _numbers(one) & {*evidence.numbers}:
        return False
    if is_text and evidence.has_few_states and not {*map(digest_of, texts)}.issubset(evidence.states):
        return False
    if one.kind in ("added", "removed"):
        return evidence.toggles
    if evidence.only_digits and not one.is_digits:
        return False
    # In a text that is noise as a whole, a token still counts if it stayed the same in all fetches.
    return not evidence.kept or not Counter(evidence.kept) - Counter(one.kept)


def _numbers(one: Difference) -> set[int]:
    """Return the number of a block among those of its place, from the beginning and from the end."""
    return {min(one.number, DEEPEST), max(one.number - one.n, -DEEPEST)}


def _keys(one: Difference) -> list[_Key]:
    """Return the keys of all evidence that a difference belongs to."""
    if one.kind == "rest":  # a remainder is never noise
        return []
    if one.kind in ("order", "moved"):
        return [(one.place, "order"), (one.place, "all")]
    if one.n <= 1:
        return [(one.place, "only")]
    return [(one.place, "all"), (one.place, f"{one.number}"), (one.place, f"{one.number - one.n}")]


def _keys_at_once(found: Sequence[Difference]) -> list[tuple[Difference, _Key]]:
    """Return differences with their keys: the place alone if most of its blocks differ, otherwise place and number."""
    blocks = {(one.place, one.number, one.kind == "removed") for one in found if one.kind != "order"}
    counts = Counter(place for place, _, _ in blocks)
    keys = []
    for one in found:
        is_most = counts[one.place] >= min(FEW, one.n) and 2 * counts[one.place] >= one.n
        keys += [(one, key) for key in _keys(one) if one.n <= 1 or key[1] == "order" or (key[1] == "all") == is_most]
    return keys
