"""Evidence: how often a block differed between two fetches made at once, and between visits, and on which pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any

__all__ = ["OF_TIME", "PROTECTED", "RELATIVE", "SELF_MADE", "Evidence", "Ignores"]

SELF_MADE = re.compile(
    r"views?\b|viewers?|visitors?|online|hits?\b|baskets?|watching|related|recommend|also[-_ ]|similar|prev\b|next\b"
    r"|testimonial|random|advert|\bads?\b|sponsor|promo|token|nonce|csrf|session|request.?id|trace|seed|build.?id"
    r"|generated|rendered|served|dtstamp|last.?build|uuid|guid|cursor|captcha",
    re.IGNORECASE,
)
"""Names of places whose text nobody writes, as a rule: little evidence is asked for there."""

OF_TIME = re.compile(
    r"counter|count\b|reads?\b|popular|trending|quote|rotat|ticker|clock|time|stamp|date|updated|now\b|today|\bage\b"
    r"|fetched|expires|ttl|etag|took|elapsed|duration|revision|serial|poll|\d:\d\d\b|\b1[6-9]\d{8}\b",
    re.IGNORECASE,
)
"""Names and texts of places that tell the time, or count: a little less evidence is asked for there."""

RELATIVE = re.compile(r"\bago\b|just now|\byesterday\b|\bvor \d+ |\bil y a\b|\bhace \d+", re.IGNORECASE)
"""Texts that tell how long ago something was: they change although nothing happens."""

PROTECTED = re.compile(
    r"price|preis|prix|cost|stock|avail|amount|offer|^h1|^title|[€$£¥₹]|\bEUR\b|\bUSD\b", re.IGNORECASE
)
"""Names and signs of what people wait for: it is never ignored on the evidence of visits alone."""

_MOST_PAGES = 12
_FORGETTING_ABOVE = 60.0
# Two fetches at once of two pages; of a template of one page, two of that one.
_LEAST_PROBES = 2
# Two fetches at once differ in half of the cases or more where it is noise, in a tenth at most where it is edited: what
# one of them says for noise if they differ, and if not (Wald 1945, "Sequential tests of statistical hypotheses").
_DIFFERS, _SAYS_THE_SAME = log(0.5 / 0.1), log(0.5 / 0.9)
# It is noise beyond these odds: where its name says nothing, and where it does. It is edited beyond those against it.
_ODDS, _ODDS_HINTED, _ODDS_AGAINST = log(100.0), log(20.0), log(400.0)
_SHARE_PROTECTED = 0.8
_PAGES_BY_VISITS = 3
# By how much is known of a place from its name: nothing, that it tells the time, that nobody writes it.
_VISITS, _SHARES, _VISITS_ORDER, _SHARE_ORDER = (6, 4, 4), (0.6, 0.4, 0.05), 4, 0.25
_ALONE = 0.6
_LEAST_TEXTS, _LEAST_REPEATED = 3, 2
_NEVER = 0.1
_STEADY = 4.0
_STILL_PAGES = 0.34


class Ignores:
    """How much of a block is ignored."""

    NOTHING, DIGITS, ALL = 0, 1, 2


@dataclass(slots=True)
class Evidence:
    """What is known of one place of a template.

    Attributes
    ----------
    at_once, same_at_once : float
        Fetches made at once, of pages that had not changed there, that differed, and that did not.
    again, confirmed : float
        Of pages that had changed there: fetches made at once that differed again, and those that said the same.
    differed, still, alone : float
        Visits that found it changed; that found it as it was; that found it changed, and nothing else but noise.
    only_digits : bool
        Whether whatever differed was digits.
    hint : {0, 1, 2, 3}
        What its name tells: nothing, `OF_TIME`, `SELF_MADE`, or its text, `RELATIVE`. A text with words of `SELF_MADE`
        counts as `OF_TIME`.
    is_protected : bool
        By its name; see `PROTECTED`.
    probed_pages, changed_pages, repeated_pages, still_pages : list of int
        Some of the pages where it differed at once, between visits, more than once, and where it stood still.
    new_texts : list of int
        Some of the texts, by their hashes, that visits found.
    since : float
        When it was first seen to differ, POSIX seconds.
    """

    at_once: float = 0.0
    same_at_once: float = 0.0
    again: float = 0.0
    confirmed: float = 0.0
    differed: float = 0.0
    still: float = 0.0
    alone: float = 0.0
    only_digits: bool = True
    hint: int = 0
    is_protected: bool = False
    probed_pages: list[int] = field(default_factory=list)
    changed_pages: list[int] = field(default_factory=list)
    repeated_pages: list[int] = field(default_factory=list)
    new_texts: list[int] = field(default_factory=list)
    still_pages: list[int] = field(default_factory=list)
    since: float = 0.0

    @property
    def is_noise_at_once(self) -> bool:
        """Whether it differs between fetches made at once, where an edit would not."""
        n = self.at_once + self.again
        if len(self.probed_pages) < 2 and (n < 3 * _LEAST_PROBES or self.is_protected) and not self._is_of_one_page:
            return False
        if self._stands_still_elsewhere:
            return False
        if self.is_protected and (
            n < 2 * _LEAST_PROBES or n < _SHARE_PROTECTED * (n + self.same_at_once + self.confirmed)
        ):
            return False
        return self._log_odds >= (_ODDS_HINTED if self.hint else _ODDS)

    @property
    def _log_odds(self) -> float:
        """How far fetches made at once speak for noise: of pages that had changed there, if there were some."""
        if self.again + self.confirmed >= _LEAST_PROBES:
            return self.again * _DIFFERS + self.confirmed * _SAYS_THE_SAME
        return (self.at_once + self.again) * _DIFFERS + (self.same_at_once + self.confirmed) * _SAYS_THE_SAME

    @property
    def _stands_still_elsewhere(self) -> bool:
        """Whether most pages with such a place did not differ there, so that it is no noise.

        Second fetches come some seconds after the first ones, and pages that change every few seconds are edited
        between two of them time and again.
        """
        moving = {*self.changed_pages, *self.probed_pages}
        steady = {*self.still_pages} - moving
        return len(steady) > max(len(moving), 2)

    @property
    def _is_of_one_page(self) -> bool:
        pages = {*self.probed_pages, *self.changed_pages, *self.still_pages}
        return len(pages) <= 1

    def is_noise_by_visits(self, n_pages: int, *, is_order: bool = False) -> bool:
        """Whether it differs at so many visits of so many pages, while little else does, that no edit explains it.

        Parameters
        ----------
        n_pages : int
            How many pages of the template have been visited twice.
        is_order : bool, default False
            Whether it is the order of blocks that differs.
        """
        if self.is_protected:
            return False
        # A page that is written anew between all visits looks as one that changes by itself. Where its name does not
        # say that nobody writes it, more than digits are told.
        if self.hint < 2 and not (self.only_digits or is_order):
            return False
        hint = min(self.hint, 2)
        least, share = (_VISITS_ORDER, _SHARE_ORDER) if is_order else (_VISITS[hint], _SHARES[hint])
        if n_pages < _PAGES_BY_VISITS:  # a page that has no other beside it may well change at each visit
            if not hint:
                return False
            share = _SHARES[0]
        elif len(self.changed_pages) < _PAGES_BY_VISITS:
            return False
        # The same edit of all pages, or one of each, is no noise: pages change by themselves again and again.
        if len(self.new_texts) < _LEAST_TEXTS and not is_order and self.hint < 3:
            return False
        if not hint and len(self.repeated_pages) < _LEAST_REPEATED:
            return False
        n = self.differed + self.still
        never_still = self.still <= _NEVER * n and len(self.changed_pages) > _PAGES_BY_VISITS and self.alone >= least
        if self.differed < least or not (never_still or self.alone >= _ALONE * self.differed):
            return False
        steady = [page for page in self.still_pages if page not in self.changed_pages]
        n_known = len(steady) + len(self.changed_pages)
        return self.differed >= share * n and (hint == 2 or len(steady) <= _STILL_PAGES * n_known)

    def ignores(self, n_pages: int, *, is_order: bool = False) -> int:
        """Return how much of it is ignored."""
        if self.is_noise_at_once or self.is_noise_by_visits(n_pages, is_order=is_order):
            return Ignores.DIGITS if self.only_digits else Ignores.ALL
        return Ignores.NOTHING

    @property
    def is_suspect(self) -> bool:
        """Whether it has differed at once, or at most visits of several pages, and may be no edit nevertheless."""
        is_restless = len(self.changed_pages) >= _PAGES_BY_VISITS and self.differed >= self.still
        return (self.at_once + self.again > 0.0 or is_restless) and self._log_odds > -_ODDS_AGAINST

    @property
    def may_be_noise(self) -> bool:
        """Whether it has not stood still at once far more often than it differed."""
        return self.confirmed + self.same_at_once < _STEADY * (self.at_once + self.again)

    def probed(self, page: int, *, differed: bool, had_changed: bool) -> None:
        """Two fetches were made at once."""
        if differed:
            if had_changed:
                self.again += 1.0
            else:
                self.at_once += 1.0
            _remember(self.probed_pages, page)
        elif had_changed:
            self.confirmed += 1.0
        else:
            self.same_at_once += 1.0
        if self.at_once + self.same_at_once + self.again + self.confirmed > _FORGETTING_ABOVE:
            self.at_once, self.same_at_once = self.at_once / 2.0, self.same_at_once / 2.0
            self.again, self.confirmed = self.again / 2.0, self.confirmed / 2.0

    def visited(self, page: int, *, differed: bool, alone: bool, text: int = 0) -> None:
        """A page was visited again; `text` is the hash of what it says there."""
        if differed:
            if page in self.changed_pages:
                _remember(self.repeated_pages, page)
            _remember(self.new_texts, text)
            self.differed += 1.0
            self.alone += alone
            _remember(self.changed_pages, page)
        else:
            self.still += 1.0
            _remember(self.still_pages, page)
        if self.differed + self.still > 2.0 * _FORGETTING_ABOVE:
            self.differed, self.still, self.alone = self.differed / 2.0, self.still / 2.0, self.alone / 2.0

    def to_list(self) -> list[Any]:
        """Return it as plain data."""
        return [
            *(self.at_once, self.same_at_once, self.again, self.confirmed, self.differed, self.still, self.alone),
            *(self.only_digits, self.hint, self.is_protected),
            *(self.probed_pages, self.changed_pages, self.repeated_pages, self.new_texts, self.still_pages, self.since),
        ]

    @classmethod
    def from_list(cls, data: Sequence[Any]) -> Evidence:
        """Return what `to_list` gave."""
        return cls(*data)

    def say(self) -> str:
        """Say what it rests on, in a few words."""
        if self.is_noise_at_once:
            n = self.at_once + self.again
            return f"differed in {n:.0f} of {n + self.same_at_once + self.confirmed:.0f} second fetches at once"
        n = self.differed + self.still
        return f"differed at {self.differed:.0f} of {n:.0f} visits of {len(self.changed_pages)} pages or more"


def _remember(pages: list[int], page: int) -> None:
    if page not in pages:
        pages.append(page)
        if len(pages) > _MOST_PAGES:
            del pages[0]
