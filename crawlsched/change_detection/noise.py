"""Noise: which blocks of a template's pages differ between fetches that are only seconds apart."""

import math
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from crawlsched.change_detection.blocks import PageBlocks

__all__ = ["NoiseMask"]

# How much of a block, or of all blocks with one path, is noise.
_LIVING, _DIGITS, _UNORDERED, _DROPPED = range(4)
_DIGIT_RUN = re.compile(r"\d+")
_CLOCK = re.compile(r"\d:\d\d")
_SHORT = 40
_MAX_RULES = 1_024
_MANY = 3
_MIN_EQUAL, _MAX_EQUAL = 5, 50
_DOUBT = 0.05


class NoiseMask:
    """What is noise on the pages of one template, learned from fetches seconds apart.

    Parameters
    ----------
    max_rules : int, default 1024
        Blocks and paths that can be noise at once; what would come on top is not learned, and counted in `n_refused`.

    Attributes
    ----------
    n_probes : int
        How often it has learned.
    n_refused : int
        How often a block was noise and could not be remembered.

    Notes
    -----
    Seconds apart, a real change is implausible: a block that differs then is noise. Four kinds are told apart, from the
    least to the most that is ignored: only the digits of a longer text (a counter); only the order of the blocks with
    one path (a shuffled list); a block; all blocks with one path, where many of them are noise.

    Noise returns to the living when it was equal in so many probes in a row that, at the rate at which it flickered
    before, this had a probability below 5 %; in 5 probes at least, and in 50 at most. Its text counts again then.

    `rules_id` changes when the rules do, and is part of the recipe's id: pages are re-baselined then, because what is
    left of them is another text. Masks with the same rules have the same id.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> page = "<p>Tea {}</p><p class=now>It is {}</p>"
    >>> mask = NoiseMask()
    >>> mask.learn([page_blocks(page.format(1, "12:01")), page_blocks(page.format(1, "12:02"))])
    >>> mask.living(page_blocks(page.format(1, "12:03"))) == mask.living(page_blocks(page.format(1, "12:04")))
    True
    >>> mask.living(page_blocks(page.format(1, "12:03"))) == mask.living(page_blocks(page.format(2, "12:03")))
    False
    """

    def __init__(self, max_rules: int = _MAX_RULES) -> None:
        if max_rules < 1:
            raise ValueError(f"max_rules is {max_rules!r}; a mask needs at least 1.")
        self.n_probes = 0
        self.n_refused = 0
        self._max_rules = max_rules
        self._blocks: dict[int, _Rule] = {}
        self._paths: dict[int, _Rule] = {}
        self._rules_id: str | None = None

    @property
    def n_rules(self) -> int:
        """Blocks and paths that are noise."""
        return len(self._blocks) + len(self._paths)

    @property
    def rules_id(self) -> str:
        """Id of what is ignored; empty if nothing is."""
        if self._rules_id is None:
            rules = [sorted((key, rule.level) for key, rule in part.items()) for part in (self._blocks, self._paths)]
            data = repr(rules).encode()
            self._rules_id = blake2b(data, digest_size=8).hexdigest() if self.n_rules else ""
        return self._rules_id

    def living(self, page: PageBlocks) -> str:
        """Text of a page that counts: every living block with its place."""
        kept: list[tuple[int, str]] = []
        unordered: dict[int, list[str]] = {}
        for key, text in page.texts.items():
            path = page.path_of[key]
            path_rule = self._paths.get(path)
            if path_rule is not None:
                if path_rule.level == _UNORDERED:
                    unordered.setdefault(path, []).append(text)
                continue
            rule = self._blocks.get(key)
            if rule is None:
                kept.append((key, text))
            elif rule.level == _DIGITS:
                kept.append((key, _DIGIT_RUN.sub("#", text)))
        kept += [(path, "\0".join(sorted(texts))) for path, texts in unordered.items()]
        return "\n".join(f"{key:x} {text}" for key, text in sorted(kept))

    def learn(self, fetches: Sequence[PageBlocks]) -> None:
        """Learn from fetches of one page, seconds apart.

        Parameters
        ----------
        fetches : sequence of PageBlocks
            Two at least.
        """
        if len(fetches) < 2:
            raise ValueError(f"fetches has {len(fetches)} of a page; noise is learned from two at least.")
        self.n_probes += 1
        self._rules_id = None
        by_path: dict[int, list[int]] = {}
        for key, path in {key: path for page in fetches for key, path in page.path_of.items()}.items():
            by_path.setdefault(path, []).append(key)
        for path, keys in by_path.items():
            levels = {key: _level([page.texts.get(key) for page in fetches]) for key in keys}
            self._learn_path(path, levels, fetches)

    def _learn_path(self, path: int, levels: Mapping[int, int], fetches: Sequence[PageBlocks]) -> None:
        """Learn of all blocks with one path."""
        differing = [key for key, level in levels.items() if level]
        rule = self._paths.get(path)
        if rule is None and len(differing) > 1:
            level = _path_level(levels, differing, fetches)
            if level:
                rule = self._paths[path] = _Rule(level)
                for key in levels:  # what is known of the path goes before what is known of a block
                    self._blocks.pop(key, None)
        if rule is not None:
            if rule.level == _UNORDERED and differing and _sorted_texts(levels, fetches) is None:
                rule.level = _DROPPED
            self._count(self._paths, path, bool(differing))
            return
        for key, level in levels.items():
            known = self._blocks.get(key)
            if known is None and level:
                if self.n_rules >= self._max_rules:
                    self.n_refused += 1
                    continue
                known = self._blocks[key] = _Rule(level)
            if known is not None:
                known.level = max(known.level, level)
                self._count(self._blocks, key, bool(level))

    def _count(self, rules: dict[int, "_Rule"], key: int, differed: bool) -> None:
        if rules[key].count(differed):
            del rules[key]

    def to_dict(self) -> dict[str, Any]:
        """Return the mask as plain data, for JSON."""
        return {
            "n_probes": self.n_probes,
            "n_refused": self.n_refused,
            "max_rules": self._max_rules,
            "blocks": {f"{key:x}": rule.to_list() for key, rule in self._blocks.items()},
            "paths": {f"{key:x}": rule.to_list() for key, rule in self._paths.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "NoiseMask":
        """Return the mask that `to_dict` gave."""
        mask = cls(data["max_rules"])
        mask.n_probes = data["n_probes"]
        mask.n_refused = data["n_refused"]
        mask._blocks = {int(key, 16): _Rule(*rule) for key, rule in data["blocks"].items()}
        mask._paths = {int(key, 16): _Rule(*rule) for key, rule in data["paths"].items()}
        return mask


class _Rule:
    """What is known of one noisy block or path."""

    __slots__ = ("level", "n_compared", "n_differed", "n_equal")

    def __init__(self, level: int, n_compared: int = 0, n_differed: int = 0, n_equal: int = 0) -> None:
        self.level = level
        self.n_compared = n_compared  # probes up to the last one that differed
        self.n_differed = n_differed
        self.n_equal = n_equal  # probes since

    def count(self, differed: bool) -> bool:
        """Count a probe; True if the block is to return to the living."""
        if differed:
            self.n_compared += self.n_equal + 1
            self.n_differed += 1
            self.n_equal = 0
            return False
        self.n_equal += 1
        rate = (self.n_differed + 1) / (self.n_compared + 2)
        enough = math.log(_DOUBT) / math.log1p(-rate)
        return self.n_equal >= min(max(enough, _MIN_EQUAL), _MAX_EQUAL)

    def to_list(self) -> list[int]:
        return [self.level, self.n_compared, self.n_differed, self.n_equal]


def _level(texts: Sequence[str | None]) -> int:
    """How much of a block is noise, by its texts in several fetches."""
    if len(set(texts)) == 1:
        return _LIVING
    present = [text for text in texts if text is not None]
    if len(present) < len(texts) or len({_DIGIT_RUN.sub("#", text) for text in present}) > 1:
        return _DROPPED
    # Around a clock, words change too, only more slowly ("a minute ago", the day); and of a short text that counts
    # nothing else is worth keeping.
    is_plain_counter = all(len(text) > _SHORT and not _CLOCK.search(text) for text in present)
    return _DIGITS if is_plain_counter else _DROPPED


def _path_level(levels: Mapping[int, int], differing: Sequence[int], fetches: Sequence[PageBlocks]) -> int:
    """How much of all blocks with one path is noise, where several of them differ."""
    if _sorted_texts(levels, fetches) is not None:
        return _UNORDERED
    dropped = sum(levels[key] == _DROPPED for key in differing)
    return _DROPPED if dropped >= _MANY and 2 * dropped >= len(levels) else _LIVING


def _sorted_texts(keys: Mapping[int, int], fetches: Sequence[PageBlocks]) -> list[str] | None:
    """The texts of some blocks, if they are the same in all fetches but for their order."""
    orders = [sorted(page.texts[key] for key in keys if key in page.texts) for page in fetches]
    return orders[0] if all(order == orders[0] for order in orders) else None
