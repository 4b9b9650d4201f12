"""Noise: which blocks of a template's pages differ between fetches that are only seconds apart."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.fingerprint import Fingerprint
from crawlsched.change_detection.noise_rule import DIGITS, DROPPED, LIVING, UNORDERED, NoiseRule

__all__ = ["NoiseMask"]

_DIGIT_RUN = re.compile(r"\d+")
_CLOCK = re.compile(r"\d:\d\d")
_SHORT = 40
_MAX_RULES = 1_024
_MANY = 3
_FORGETTING = 0.9
# After so many equal probes `NoiseRule` forgets what differed in one.
_FORGETS_ONE = 13
# Two fetches with less than this share of their places in common are not of one page.
_LEAST_SHARED = 0.3
_PARTS = ("blocks", "paths", "names")


class NoiseMask:
    """What is noise on the pages of one template, learned from fetches seconds apart.

    Parameters
    ----------
    max_rules : int, default 1024
        Blocks, paths and names that can be noise at once; what would come on top is not learned, and counted.

    Attributes
    ----------
    n_probes : int
        How often it has learned.
    n_quiet : int
        How often in a row, the last times, there was nothing that was not known.
    n_refused : int
        How often there was no room for a rule.
    n_mixed : int
        How often noise stood among living blocks with the same path, at changing places: it cannot be told from them,
        so such pages go on looking changed rather than hide their content.

    Notes
    -----
    Seconds apart, a real change is implausible: a block that differs then is noise, at first with a doubt, see
    `is_confirmed`. From the least to the most that is
    ignored: only the digits of a longer text (a counter); only the order of all blocks with one path (a shuffled
    list); a block; all blocks with one path, where many of them are noise; all blocks below elements of one class or
    id, wherever they stand (a box that comes, goes, and moves).

    Noise returns to the living when it stays equal for long enough, see `NoiseRule`. Its text counts again then.

    `rules_id` changes when the rules do, and is part of the recipe's id: pages are re-baselined then, because what is
    left of them is another text. Masks with the same rules have the same id.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> page = "<p>Tea {}</p><p class=now>It is {}</p>"
    >>> mask = NoiseMask()
    >>> mask.learn([page_blocks(page.format(1, "12:01")), page_blocks(page.format(1, "12:02"))])
    True
    >>> mask.living(page_blocks(page.format(1, "12:03"))) == mask.living(page_blocks(page.format(1, "12:04")))
    True
    >>> mask.living(page_blocks(page.format(1, "12:03"))) == mask.living(page_blocks(page.format(2, "12:03")))
    False
    """

    def __init__(self, max_rules: int = _MAX_RULES) -> None:
        if max_rules < 1:
            raise ValueError(f"max_rules is {max_rules!r}; a mask needs room for at least 1.")
        self.n_probes = 0
        self.n_quiet = 0
        self.n_refused = 0
        self.n_mixed = 0
        self._max_rules = max_rules
        self._blocks: dict[int, NoiseRule] = {}
        self._paths: dict[int, NoiseRule] = {}
        self._names: dict[int, NoiseRule] = {}
        self._surprises = 0.0
        self._probes = 0.0
        self._rules_id: str | None = None

    @property
    def n_rules(self) -> int:
        """Blocks, paths and names that are noise."""
        return len(self._blocks) + len(self._paths) + len(self._names)

    @property
    def is_confirmed(self) -> bool:
        """Whether all that is ignored differed in two probes at least, or in none of the last dozen.

        What differed in one only may have been edited between its two fetches, and is living on all other pages. If it
        has not been seen in as many probes as forget such a rule, it is rare.
        """
        parts = (self._blocks, self._paths, self._names)
        return self.n_quiet >= _FORGETS_ONE or all(rule.n_differed > 1 for part in parts for rule in part.values())

    @property
    def rules_id(self) -> str:
        """Id of what is ignored; empty if nothing is."""
        if self._rules_id is None:
            parts = (self._blocks, self._paths, self._names)
            rules = [sorted((key, rule.level) for key, rule in part.items()) for part in parts]
            self._rules_id = blake2b(repr(rules).encode(), digest_size=8).hexdigest() if self.n_rules else ""
        return self._rules_id

    @property
    def doubt(self) -> float:
        """Probability that one more probe would find noise that is not known; 0.5 before the first one.

        It is the share of visits that found a change which are worth a probe: a second fetch at once.
        """
        return (self._surprises + 1.0) / (self._probes + 2.0)

    def living(self, page: PageBlocks) -> str:
        """Text of a page that counts: every living block with its place."""
        return "\n".join([line for _, _, line in self.living_lines(page)])

    def fingerprint(self, recipe: str, page: PageBlocks) -> Fingerprint:
        """Return the fingerprint of what counts of a page: living blocks with their places, and all of them as read."""
        return Fingerprint.of(recipe, self.living(page), " ".join(self.living_texts(page)))

    def living_lines(self, page: PageBlocks) -> list[tuple[int, int, str]]:
        """Lines of the text of a page that counts, each after what they are sorted by and the path it is from."""
        if not self.n_rules:
            text_of, path_of = page.texts, page.path_of
            return [(key, path_of[key], f"{key:x} {text_of[key]}") for key in sorted(text_of)]
        kept: list[tuple[int, int, str]] = []
        unordered: dict[int, list[str]] = {}
        for key, text in page.texts.items():
            if page.name_of[key] in self._names:
                continue
            path = page.path_of[key]
            if path in self._paths:
                if self._paths[path].level == UNORDERED:
                    unordered.setdefault(path, []).append(text)
                continue
            rule = self._blocks.get(key)
            if rule is None:
                kept.append((key, path, f"{key:x} {text}"))
            elif rule.level == DIGITS:
                kept.append((key, path, f"{key:x} {_DIGIT_RUN.sub('#', text)}"))
        for path, texts in unordered.items():
            joined = "\0".join(sorted(texts))
            kept.append((path, path, f"{path:x} {joined}"))
        kept.sort()
        return kept

    def is_whole(self, page: PageBlocks, key: int) -> bool:
        """Whether nothing of a block is ignored, but perhaps its place among others."""
        path = page.path_of[key]
        if page.name_of[key] in self._names or key in self._blocks:
            return False
        return path not in self._paths or self._paths[path].level == UNORDERED

    def living_texts(self, page: PageBlocks) -> list[str]:
        """Texts of a page that count, in its order and without their places."""
        return list(self.living_text_of(page).values())

    def living_text_of(self, page: PageBlocks) -> dict[int, str]:
        """What counts of the text of each block, in the order of the page."""
        if not self.n_rules:
            return page.texts
        texts: dict[int, str] = {}
        for key, text in page.texts.items():
            rule = self._blocks.get(key)
            if self.is_whole(page, key):
                texts[key] = text
            elif rule is not None and rule.level == DIGITS and page.name_of[key] not in self._names:
                texts[key] = _DIGIT_RUN.sub("#", text)
        return texts

    def learn(self, fetches: Sequence[PageBlocks]) -> bool:
        """Learn from fetches of one page, seconds apart.

        Parameters
        ----------
        fetches : sequence of PageBlocks
            Two at least.

        Returns
        -------
        bool
            Whether there was noise that was not known. False, and nothing is learned, where the fetches have hardly a
            place in common: in between a log-in wall or an error page came or went, and all of the page would be noise.
        """
        if len(fetches) < 2:
            raise ValueError(f"fetches has {len(fetches)} of a page; noise is learned from two at least.")
        before = [self.living(page) for page in fetches]
        is_surprised = len(set(before)) > 1 and _are_of_one_page(fetches)
        if is_surprised or len(set(before)) == 1:
            self._learn_rules(fetches)
        self.n_probes += 1
        self.n_quiet = 0 if is_surprised else self.n_quiet + 1
        self._surprises = _FORGETTING * self._surprises + is_surprised
        self._probes = _FORGETTING * self._probes + 1.0
        return is_surprised

    def _learn_rules(self, fetches: Sequence[PageBlocks]) -> None:
        levels = {key: _level([page.texts.get(key) for page in fetches]) for page in fetches for key in page.texts}
        self._learn_names(levels, fetches)
        for path, keys in _grouped(fetches, "path_of").items():
            # What is known of a name goes before what is known of a path, and that before what is known of a block.
            if not any(page.name_of.get(key) in self._names for key in keys for page in fetches):
                self._learn_path(path, {key: levels[key] for key in keys}, fetches)
        self._rules_id = None

    def _learn_names(self, levels: Mapping[int, int], fetches: Sequence[PageBlocks]) -> None:
        """Learn of boxes that come, go or move: all blocks below elements of a name differ, and some are missing."""
        for name, keys in _grouped(fetches, "name_of").items():
            differs = any(levels[key] for key in keys)
            if name in self._names:
                self._count(self._names, name, differs)
            elif differs and all(levels[key] == DROPPED for key in keys) and _some_are_missing(keys, fetches):
                self._add(self._names, name, DROPPED)

    def _learn_path(self, path: int, levels: Mapping[int, int], fetches: Sequence[PageBlocks]) -> None:
        """Learn of all blocks with one path."""
        differing = [key for key, level in levels.items() if level]
        if path in self._paths:
            if differing and not _same_but_for_order(levels, fetches):
                self._paths[path].level = DROPPED
            self._count(self._paths, path, bool(differing))
            return
        if len(differing) > 1 and _same_but_for_order(levels, fetches):
            self._add(self._paths, path, UNORDERED)
        elif len(differing) > 1 and _is_shifted(levels, len(differing), fetches):
            # Which of them are noise at their places now says nothing about the next fetch.
            self.n_mixed += 1
            self._forget_blocks(levels)
            return
        elif len(differing) >= _MANY and 2 * len(differing) >= len(levels):
            self._add(self._paths, path, DROPPED)
        if path in self._paths:
            self._forget_blocks(levels)
            return
        for key, level in levels.items():
            if key in self._blocks:
                self._blocks[key].level = max(self._blocks[key].level, level)
                self._count(self._blocks, key, bool(level))
            elif level:
                self._add(self._blocks, key, level)

    def _forget_blocks(self, keys: Collection[int]) -> None:
        for key in keys:
            self._blocks.pop(key, None)

    def _add(self, rules: dict[int, NoiseRule], key: int, level: int) -> None:
        if self.n_rules >= self._max_rules:
            self.n_refused += 1
            return
        rules[key] = NoiseRule(level)
        rules[key].count(True)

    def _count(self, rules: dict[int, NoiseRule], key: int, differed: bool) -> None:
        if rules[key].count(differed):
            del rules[key]

    def to_dict(self) -> dict[str, Any]:
        """Return the mask as plain data, for JSON."""
        rules = {
            part: {f"{key:x}": rule.to_list() for key, rule in getattr(self, f"_{part}").items()} for part in _PARTS
        }
        return rules | {
            "max_rules": self._max_rules,
            "n_probes": self.n_probes,
            "n_quiet": self.n_quiet,
            "n_refused": self.n_refused,
            "n_mixed": self.n_mixed,
            "surprises": [self._surprises, self._probes],
        }

    def copy(self) -> "NoiseMask":
        """Return another mask that has learned the same."""
        return NoiseMask.from_dict(self.to_dict())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "NoiseMask":
        """Return the mask that `to_dict` gave."""
        mask = cls(data["max_rules"])
        mask.n_probes, mask.n_refused, mask.n_mixed = data["n_probes"], data["n_refused"], data["n_mixed"]
        mask.n_quiet = data.get("n_quiet", 0)  # earlier versions did not count
        mask._surprises, mask._probes = data["surprises"]
        for part in _PARTS:
            getattr(mask, f"_{part}").update({int(key, 16): NoiseRule(*rule) for key, rule in data[part].items()})
        return mask


def _are_of_one_page(fetches: Sequence[PageBlocks]) -> bool:
    """Whether fetches have enough blocks at the same places, whatever these say."""
    places = [page.texts.keys() for page in fetches]
    shared, all_of_them = set(places[0]).intersection(*places[1:]), set().union(*places)
    return len(shared) >= _LEAST_SHARED * len(all_of_them)


def _grouped(fetches: Sequence[PageBlocks], attribute: str) -> dict[int, list[int]]:
    """Keys of all blocks that have a text, by their path or name."""
    groups: dict[int, dict[int, None]] = {}
    for page in fetches:
        group_of = getattr(page, attribute)
        for key in page.texts:
            if group_of[key] or attribute == "path_of":
                groups.setdefault(group_of[key], {})[key] = None
    return {group: list(keys) for group, keys in groups.items()}


def _level(texts: Sequence[str | None]) -> int:
    """How much of a block is noise, by its texts in several fetches."""
    if len(set(texts)) == 1:
        return LIVING
    present = [text for text in texts if text is not None]
    if len(present) < len(texts) or len({_DIGIT_RUN.sub("#", text) for text in present}) > 1:
        return DROPPED
    # Around a clock, words change too, only more slowly ("a minute ago", the day); and of a short text that counts
    # nothing else is worth keeping.
    is_plain_counter = all(len(text) > _SHORT and not _CLOCK.search(text) for text in present)
    return DIGITS if is_plain_counter else DROPPED


def _some_are_missing(keys: Collection[int], fetches: Sequence[PageBlocks]) -> bool:
    return any(key not in page.texts for key in keys for page in fetches)


def _texts(keys: Collection[int], page: PageBlocks) -> Counter[str]:
    return Counter(page.texts[key] for key in keys if key in page.texts)


def _same_but_for_order(keys: Collection[int], fetches: Sequence[PageBlocks]) -> bool:
    first = _texts(keys, fetches[0])
    return all(_texts(keys, page) == first for page in fetches[1:])


def _is_shifted(keys: Collection[int], n_differing: int, fetches: Sequence[PageBlocks]) -> bool:
    """Whether blocks differ only because another one stands before them: most of their texts are in all fetches."""
    common = _texts(keys, fetches[0])
    for page in fetches[1:]:
        common &= _texts(keys, page)
    n_foreign = max(_texts(keys, page).total() for page in fetches) - common.total()
    return 2 * common.total() >= len(keys) and n_differing > n_foreign
