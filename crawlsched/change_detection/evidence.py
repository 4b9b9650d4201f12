"""Evidence: how often a place differed between two fetches made at once, and on which pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

from crawlsched.change_detection.limits import LONGEST_SHOWN
from crawlsched.change_detection.trace import digest_of

__all__ = ["Evidence"]

# Two fetches at once differ in half of the cases or more where it is noise, in a tenth at most where it is edited: what
# one of them says for noise if they differ (Wald 1945, "Sequential tests of statistical hypotheses").
_EDITED, _LEAST_NOISE, _MOST_NOISE = 0.1, 0.5, 0.95
# An edit a visit falls between two fetches as often as the time between them is a share of that between visits. Where
# this is much more, a page is visited as fast as it can be edited, and nothing could be proved.
_MOST_EDITED = 0.18
# It is noise beyond these odds, and no longer when it is as likely edited. Evidence beyond the highest, on either side,
# is not kept: what stands still from now on is known for that after four to twelve fetches.
_ODDS, _HIGHEST = log(100.0), 7.0
# A page says otherwise whose fetches agree as they do by chance in fewer cases than these.
_LIKELY = 0.2
# The evidence of this number of pages is kept page by page; the others are judged by what these have in common.
_MOST_PAGES = 64
_MOST_STATES = 8


@dataclass(slots=True)
class Evidence:
    """What is known of tokens at one place of a template, or, where visits are counted, of the place."""

    name: str = ""  # how to call the place
    differed: int = 0  # fetches made at once, or visits, that differed here, and that did not
    agreed: int = 0
    score: float = 0.0  # their evidence for noise
    only_digits: bool = True  # whether all that differed was digits; whether the block was there and was not
    toggles: bool = False
    is_noise: bool = False  # whether chance and edits are ruled out
    # How often two fetches of some pages differed here, and how often they did not.
    pages: dict[str, list[int]] = field(default_factory=dict)
    # Some of the texts, by their digests, that fetches at once have shown.
    states: list[int] = field(default_factory=list)
    # Where a whole text differs, the tokens that stood still in all pairs of fetches, digits as "#".
    kept: list[str] | None = None
    said: str = ""  # the text that was left out last
    said_of: dict[str, int] = field(default_factory=dict)  # the same by page, as digests
    since: float = 0.0  # when it came to be noise, POSIX seconds

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
        if len(self.pages) > _MOST_PAGES:
            del self.pages[next(iter(self.pages))]
        if self.score >= _ODDS and not self.is_noise:
            self.is_noise, self.since = True, now
        elif self.score <= 0.0:
            self.is_noise = False

    def is_noise_of(self, page: str, *, least_others: int = 2) -> bool:
        """Whether it is noise on a page: that has shown it itself, or has not said otherwise, as enough others have."""
        if not self.is_noise:
            return False
        own = self.pages.get(page, [0, 0])
        if own[0]:
            return True
        # How often fetches of others agree: of two states by turns they do in half of the cases.
        agreeing = (self.agreed - own[1] + 0.5) / (self.differed + self.agreed - own[1] + 1.0)
        if agreeing ** own[1] < _LIKELY:
            return False
        noisy = sum(differed > 0 for differed, _ in self.pages.values())
        still = sum(not differed and agreeing**agreed < _LIKELY for differed, agreed in self.pages.values())
        return noisy >= least_others and noisy > still

    def has_shown(self, page: str) -> bool:
        """Whether two fetches of this page differed here."""
        return self.pages.get(page, (0, 0))[0] > 0

    def keep(self, tokens: Sequence[str]) -> None:
        """These tokens stood still while others differed."""
        counts = Counter(tokens) if self.kept is None else Counter(tokens) & Counter(self.kept)
        self.kept = [*counts.elements()]

    def knows(self, digest: int) -> bool:
        """Whether a text was shown before; from now on it was."""
        if digest in self.states:
            return True
        self.states = [*self.states, digest][-_MOST_STATES:]
        return False

    def leave_out(self, page: str, text: str) -> bool:
        """Leave a text of a page out; return whether it was the same the last time."""
        before, digest = self.said_of.get(page), digest_of(text)
        self.said, self.said_of[page] = text[:LONGEST_SHOWN], digest
        if len(self.said_of) > _MOST_PAGES:
            del self.said_of[next(iter(self.said_of))]
        return before == digest

    def to_list(self) -> list[Any]:
        """Return it as plain data, the arguments that make it."""
        values = (getattr(self, name) for name in self.__slots__)
        return [value.copy() if isinstance(value, dict) else value for value in values]

    def say(self) -> str:
        """Say what it rests on, in a few words."""
        return f"differed in {self.differed} of {self.differed + self.agreed} second fetches at once"
