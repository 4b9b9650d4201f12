"""Shared texts: what a site says alike on pages that do not otherwise agree is the site's, and told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from crawlsched.change_detection.limits import FEW, MOST_PAGES, MOST_PLACES
from crawlsched.change_detection.trace import Difference, Kind, Trace, digest_of

__all__ = ["SharedTexts"]

# Texts of one place in which a part is looked for.
_MOST_SEARCHED = 64
# Of texts of hardly a word, as "sold out", so many others have to show it where no edit was the site's before.
_OTHERS_IF_SHORT = 2


_Edit = tuple[int, str, int]


@dataclass(slots=True)
class _Shown:
    """Who has shown an edit: pages, with a digest of all that they say; what is around it; how many were without it."""

    since: float
    text: str
    around: int
    is_whole: bool = False
    pages: dict[int, int] = field(default_factory=dict)
    n_without: int = 0


class SharedTexts:
    """What is known of the frame around the pages of one site.

    Notes
    -----
    What a page says anew at a place is the site's if other pages say it there, too, and none that was asked for since
    is without it: then pages are in different states, and each tells of itself. Pages that agree in all that they say
    are one page.
    """

    def __init__(self) -> None:
        self._edits: dict[_Edit, _Shown] = {}
        #: Places whose edits were the site's before.
        self._alike: dict[int, bool] = {}
        self.n_learned = 0

    def seen_again(
        self, page: int, trace: Trace, parents: Mapping[int, int], found: Iterable[Difference], asked_at: float
    ) -> None:
        """Learn whether a page that was asked for after edits of its site shows them.

        An answer that was asked for before an edit was first seen may come after it.
        """
        places = trace.names.keys()
        open_edits = [
            (edit, shown)
            for edit, shown in self._edits.items()
            if not shown.n_without and page not in shown.pages and asked_at >= shown.since
        ]
        if not open_edits:
            return
        shows = {_edit_of(one) for one in found}
        texts = trace.texts_at({edit[0] for edit, _ in open_edits if edit[0] in places})
        for edit, shown in open_edits:
            place, kind, _ = edit
            if edit in shows:
                continue
            if kind == "-":
                is_without = any(_holds(text, shown.text) for text in texts.get(place, ()))
            elif kind == Kind.ORDER:
                is_without = place in places
            elif place in places:
                says = texts[place]
                is_without = shown.text not in says if shown.is_whole else not any(_holds(t, shown.text) for t in says)
            else:
                is_without = shown.around in parents or not shown.around
            if is_without:
                shown.n_without += 1
                self.n_learned += 1
                self._alike[place] = False

    def of_site(
        self, page: int, found: Sequence[Difference], trace: Trace, parents: Mapping[int, int], now: float
    ) -> list[bool | None]:
        """Return for each difference whether it is the site's; None if this page may be the first to show it."""
        whole = digest_of(repr(trace.digests))
        texts = trace.texts_at({one.place for one in found})
        said = {place: Counter(there) for place, there in texts.items()}
        n_new = Counter((one.place, one.new) for one in found)
        return [
            number < MOST_PLACES
            and one.kind != Kind.REST
            and not _is_said_elsewhere(one, said[one.place], n_new[one.place, one.new])
            and self._is_of_site(page, one, whole, parents.get(one.place, 0), now)
            for number, one in enumerate(found)
        ]

    def _is_of_site(self, page: int, one: Difference, whole: int, around: int, now: float) -> bool | None:
        edit = _edit_of(one)
        is_alike = self._alike.get(one.place, False)
        shown = self._edits.get(edit)
        if shown is None:
            if one.n <= 1:  # what a page said there is over, and news if it comes back; what was contradicted stays so
                for other, known in list(self._edits.items()):
                    if other[0] == one.place and page in known.pages and not known.n_without:
                        del self._edits[other]
            shown = self._edits[edit] = _Shown(now, one.new or one.old, around, one.is_whole)
            if len(self._edits) > MOST_PLACES:
                del self._edits[next(iter(self._edits))]
        others = sum(other != page and said != whole for other, said in shown.pages.items())
        if page in shown.pages or len(shown.pages) < MOST_PAGES:
            self.n_learned += shown.pages.get(page) != whole
            shown.pages[page] = whole
        if shown.n_without:
            return False
        if not others:
            # Among several blocks of a place those of the pages themselves may be.
            return None if is_alike and one.n <= 1 else False
        if others < (1 if is_alike or len(shown.text.split()) >= FEW else _OTHERS_IF_SHORT):
            return False
        self._alike[one.place] = True
        if len(self._alike) > MOST_PLACES:
            del self._alike[next(iter(self._alike))]
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        edits = [
            (*edit, shown.text, shown.around, shown.is_whole, list(shown.pages.items()), shown.n_without)
            for edit, shown in self._edits.items()
        ]
        return {"version": 3, "edits": edits, "alike": list(self._alike.items())}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SharedTexts:
        """Return what `to_dict` gave; of what earlier versions kept nothing can be used."""
        made = cls()
        if data.get("version") == 3:
            for place, kind, digest, text, around, is_whole, pages, n_without in data["edits"]:
                made._edits[place, kind, digest] = _Shown(-inf, text, around, is_whole, dict(pages), n_without)
            made._alike = dict(data["alike"])
        return made


def _edit_of(one: Difference) -> _Edit:
    """Return what identifies an edit: the place, and what it says now; what it says no longer where nothing came."""
    if one.kind == Kind.ORDER or one.new:
        return one.place, Kind.ORDER if one.kind == Kind.ORDER else "+", digest_of(one.new)
    return one.place, "-", digest_of(one.old)


def _is_said_elsewhere(one: Difference, said: Counter[str], n_new: int) -> bool:
    """Whether a block of the place says the same that is not among those that say it anew: it may be nothing new."""
    if one.n <= 1 or one.kind == Kind.ORDER or not one.new:
        return False
    if len(said) > _MOST_SEARCHED:
        return said[one.says] > n_new
    return sum(n for text, n in said.items() if _holds(text, one.new)) > n_new


def _holds(text: str, part: str) -> bool:
    """Whether a text holds another, and not within a word."""
    at = text.find(part)
    while at >= 0:
        end = at + len(part)
        begins = at == 0 or not (text[at - 1].isalnum() and part[:1].isalnum())
        if begins and (end == len(text) or not (text[end].isalnum() and part[-1:].isalnum())):
            return True
        at = text.find(part, at + 1)
    return False
