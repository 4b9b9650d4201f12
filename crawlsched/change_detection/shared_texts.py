"""Shared texts: a new text on several different pages belongs to the site, and is delivered only once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import islice
from math import inf
from typing import Any

from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.limits import DEEPEST, FEW, LONGEST_NAME, MOST_COMPARED, MOST_PLACES, REMEMBERED
from crawlsched.change_detection.trace import Difference, digest_of, first_token, shape

__all__ = ["SharedTexts"]

#: A place, the kind of its difference, the new text there (the old text if there is no new text), and for a part of a
#: text the token after it.
_Edit = tuple[int, str, str, str | None]


@dataclass(slots=True)
class _Shown:
    """An edit, digests of the pages that have shown it, and the number of pages without it."""

    since: float
    pages: dict[str, int] = field(default_factory=dict)
    n_without: int = 0


class SharedTexts:
    """Decides which edits belong to the frame around the pages of one site.

    Notes
    -----
    A new text of a page belongs to the site if other pages have the text at the same place, and if all pages that were
    requested later have the text. If a page lacks the text, pages are in different states, and the text belongs to each
    page. If a page has undone an edit, the edit is forgotten, so it counts as new if it returns. Pages with exactly the
    same content count as one.
    """

    def __init__(self) -> None:
        self._edits: dict[_Edit, _Shown] = {}
        #: Places at which earlier edits belonged to the site.
        self._alike: dict[int, bool] = {}
        self.n_learned = self.n_written = 0

    def seen_again(
        self, seen: PageBlocks, found: Sequence[Difference], asked_at: float, *, is_evidence: bool = True
    ) -> None:
        """Learn which edits of the site, first seen before `asked_at`, a page does not show.

        If the page has undone an edit, the edit is forgotten, so it counts as new if it returns. If the page never had
        an edit, it refutes the edit. An answer to an earlier request refutes nothing, even if the answer arrives later.
        Neither does a truncated page, or a second fetch: pass False for `is_evidence`.
        """
        shows = {_edit_of(one) for one in found}
        others = [(edit, shown) for edit, shown in self._edits.items() if not shown.n_without and edit not in shows]
        said = seen.trace.texts_at({edit[0] for edit, _ in others})
        texts = {place: {*there} for place, there in said.items()}
        undone = {(one.place, kind, text) for one in found for kind, text in (("+", one.was), ("-", one.says))}
        moved = {one.was for one in found if one.kind == "moved"}
        reordered = {one.place for one in found if one.kind == "order"}
        was = {one.place: one.was for one in found if one.n <= 1 and len(one.was) <= MOST_COMPARED}
        # A menu may mark the page that it is on: that page shows an edit of its own entry in another way.
        marked = {(kind, text) for one in found for kind, text in (("+", one.says), ("-", one.was))}
        marked |= {(kind, text.replace("[aria-current page] ", "")) for kind, text in marked}
        for edit, shown in others:
            place, kind, text, after = edit
            has_shown = seen.page in shown.pages
            if kind == "order":
                is_without, is_undone = place in seen.trace.names, place in reordered
            elif after is None:
                is_without = (text in texts[place]) == (kind == "-")
                is_undone = has_shown or edit[:3] in undone or (kind == "+" and text in moved)
            else:
                is_long = any(len(there) > MOST_COMPARED for there in texts[place])
                is_without = is_long or any(_holds(there, text, after) for there in texts[place]) == (kind == "-")
                is_undone = has_shown or (place in was and _holds(was[place], text, after) == (kind == "+"))
            if is_without and is_undone:
                del self._edits[edit]
            elif is_without and is_evidence and not has_shown and asked_at >= shown.since and edit[1:3] not in marked:
                shown.n_without += 1
                self.n_learned += 1
                self._alike.pop(place, None)

    def of_site(self, seen: PageBlocks, found: Sequence[Difference], now: float) -> list[bool | None]:
        """Return for each difference whether it belongs to the site; None if this page may be the first to show it."""
        whole = digest_of(repr(seen.trace.digests))
        texts = seen.trace.texts_at({one.place for one in found})
        said = {place: Counter(there) for place, there in texts.items()}
        n_new = Counter((one.place, one.says) for one in found if one.says)
        return [
            number < MOST_PLACES
            and one.kind != "rest"
            and (one.is_whole or one.n > 1 or len(one.says) <= MOST_COMPARED)
            and (one.n <= 1 or said[one.place][one.says or one.was] <= n_new[one.place, one.says])
            and self._is_of_site(seen, one, whole, now)
            for number, one in enumerate(found)
        ]

    def _is_of_site(self, seen: PageBlocks, one: Difference, whole: int, now: float) -> bool | None:
        page, edit = seen.page, _edit_of(one)
        is_alike = self._alike.get(one.place, False)
        shown = self._edits[edit] = self._edits.pop(edit, _Shown(now))  # shown last, it stays longest
        if len(self._edits) > MOST_PLACES:
            del self._edits[next(iter(self._edits))]
        others = sum(other != page and said != whole for other, said in shown.pages.items())
        if page in shown.pages or len(shown.pages) < REMEMBERED:
            self.n_learned += shown.pages.get(page) != whole
            shown.pages[page] = whole
        if shown.n_without:
            return False
        if not others:
            # If a place has several blocks, some of them may belong to single pages.
            return None if is_alike and one.n <= 1 else False
        # A text of one or two words, such as "sold out", needs two other pages, unless an earlier edit at its place
        # belonged to the site. A new fact for programs needs only one other page.
        is_fact = one.kind == "added" and one.place in seen.data
        if others < (1 if is_alike or is_fact or len(edit[2].split()) >= FEW else 2):
            return False
        self._alike[one.place] = True
        if len(self._alike) > MOST_PLACES:
            del self._alike[next(iter(self._alike))]
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the object as plain data, for JSON."""
        edits = [(*edit, *astuple(shown)[1:]) for edit, shown in self._edits.items()]
        return {"version": 6, "edits": edits, "alike": list(self._alike.items())}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SharedTexts:
        """Return the object that `to_dict` wrote; an empty one for data of an earlier version."""
        made = cls()
        if data.get("version") == 6:
            for place, kind, text, after, *shown in data["edits"]:
                made._edits[place, kind, text, after] = _Shown(-inf, *shown)
            made._alike = {place: True for place, is_alike in data["alike"] if is_alike}
        return made


def _edit_of(one: Difference) -> _Edit:
    """Return a key for an edit: its place, with the new text or, if there is none, the old text.

    If a place has several blocks, any of them may contain the same few tokens. So the whole text of the block counts.
    """
    if one.kind == "order":
        return one.place, "order", one.new, None
    is_part = one.n <= 1 and not one.is_whole
    old, new, after = (one.old, one.new, one.right) if is_part else (one.was, one.says, None)
    return (one.place, "+", new, after) if new else (one.place, "-", old, after)


def _holds(text: str, part: str, after: str) -> bool:
    """Whether a text contains `part` before this token; only the first 64 occurrences are checked."""
    found = islice(re.finditer(rf"\b{re.escape(part)}" if part[:1].isalnum() else re.escape(part), text), DEEPEST)
    return any(shape(first_token(text, match.end()))[-LONGEST_NAME:] == after for match in found)
