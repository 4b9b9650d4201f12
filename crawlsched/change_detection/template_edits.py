"""Template edits: what a site changes on all of its pages alike, which is no change of any one of them."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from crawlsched.change_detection.block_groups import Words, blocks_with, keys_by_path, words_with
from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.edit_guesses import EditGuesses
from crawlsched.change_detection.own_ids import OwnIds
from crawlsched.change_detection.shared_texts import SharedTexts
from crawlsched.change_detection.template_edit import TemplateEdit

__all__ = ["TemplateEdits"]

_MOST_EDITS = 64
# So many contents that a page may have had before are compared to its fingerprint.
_MOST_TRIES = 20
# Of pages that are as they were so many are looked at first, and then each eighth.
_FIRST_LOOKS = 16
_LOOKS = 8
# After so many visits what was seen is written down: less is at stake each time, and it takes milliseconds.
_WRITTEN = frozenset({1, 2, 3, 4, 6, 8, 12, 16})
# So many in a row that have changed otherwise are no coincidence.
_FEW_UNEXPLAINED = 2
# So many pages that have changed otherwise are remembered: an edit that is found later may have come with that.
_MOST_CHANGED = 32


class TemplateEdits:
    """What is known of the edits of one site's templates.

    Notes
    -----
    Of a page the fingerprint of its last content is kept, and not its text. But what the other pages of its site say
    at the same places is known (`SharedTexts`), and so is, where it differs from what this page says, how a text that
    belongs to the site may have read on this page before. These words are put back, and the fingerprint is made anew:
    where it is the one that was kept, it is certain that nothing else on the page has changed. What that leaves open is
    whether the site changed those words on all pages, or the page its own; other pages show it (`TemplateEdit`). So of
    the first page seen after an edit of the template it is open, until another one has been seen; of the others it is
    not. No edit of a page hides behind one of its template: then nothing that is put back leads to the fingerprint that
    was kept.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> known, site = {}, TemplateEdits()
    >>> def visit(number, release):
    ...     page = page_blocks(f"<h1>Tea {release} guide</h1><p>Cup {number}</p>")
    ...     before, known[number] = known.get(number), sorted(page.texts.items())
    ...     if before in (None, known[number]):
    ...         site.saw(number, 1, page, is_first=before is None)
    ...         return False
    ...     def is_same(keys, part):
    ...         kept = {key: text for key, text in page.texts.items() if page.path_of[key] not in keys}
    ...         return sorted((kept | part.texts).items()) == before
    ...     is_edit = site.explain(number, 1, page, is_same)
    ...     return "open" if is_edit is None else not is_edit
    >>> [visit(number, "1.3") for number in range(4)], [visit(number, "1.4") for number in range(4)]
    ([False, False, False, False], ['open', False, False, False])
    """

    def __init__(self) -> None:
        self.texts = SharedTexts()
        self._own_ids = OwnIds()
        self.edits: list[TemplateEdit] = []
        self._changed: deque[int] = deque(maxlen=_MOST_CHANGED)
        self._n_unexplained = 0
        self.n_visits = 0
        self.n_rounds = 0
        #: Grows when something was learned that is worth writing down.
        self.n_learned = 0

    def saw(self, page: int, template: int, blocks: PageBlocks, *, is_first: bool) -> None:
        """A page is as it was, or is seen for the first time."""
        self.n_visits += 1
        pending = [edit for edit in self.edits if not edit.is_settled and edit.concerns(template)]
        self._n_unexplained = 0
        looks = is_first or self._looks
        if not pending and not looks:
            return
        blocks, _ = self._shared(page, blocks)
        keys = keys_by_path(blocks)
        if not is_first:
            for edit in pending:
                words = words_with(blocks, keys, edit.path)
                elsewhere = words_with(blocks, keys, edit.moved_from) if edit.moved_from else ()
                edit.unchanged(page, words, elsewhere=elsewhere, has_just_changed=page in self._changed)
        if looks:
            self._look(page, template, keys, lambda path: words_with(blocks, keys, path), replacing=not is_first)

    def explain(
        self,
        page: int,
        template: int,
        blocks: PageBlocks,
        is_same: Callable[[Collection[int], PageBlocks], bool],
        were_there: Callable[[Sequence[str]], Sequence[bool]] = lambda texts: [False] * len(texts),
    ) -> bool | None:
        """Say whether a page that has another fingerprint differs by edits of its template alone.

        Parameters
        ----------
        page, template : int
            Any numbers that tell pages, and templates, apart.
        blocks : PageBlocks
            What it says now.
        is_same : callable
            ``is_same(paths, others)`` says whether the page would have the fingerprint that was kept, had it these
            other blocks in the place of those with these paths.
        were_there : callable, optional
            ``were_there(texts)`` says of some blocks whether the page had them before, as far as that is known.

        Returns
        -------
        bool or None
            None where it does by edits that may be the template's: no other page has been seen since.
        """
        self.n_visits += 1
        blocks, real = self._shared(page, blocks)
        keys = keys_by_path(blocks)
        guesses = EditGuesses(self.texts, page, template, blocks, keys)
        tried: list[dict[int, Words]] = []
        for edits in guesses.tries(self._rounds(template), were_there):
            used, replaced = guesses.undone(edits)
            if not used or replaced in tried:
                continue
            if len(tried) >= _MOST_TRIES:
                break
            tried.append(replaced)
            in_page = {real.get(path, path) for path in replaced}
            if is_same(in_page, blocks_with(blocks, keys, replaced, real)):
                return self._moved(guesses, used)
        self._count_changed(guesses, were_there)
        self._changed.append(page)
        self._n_unexplained += 1
        # Where one page after the other has changed, the site may have other paths now.
        if self._looks or _FEW_UNEXPLAINED <= self._n_unexplained <= _FEW_UNEXPLAINED + _FIRST_LOOKS:
            self._look(page, template, keys, guesses.words_at, replacing=False)
        return False

    @property
    def _looks(self) -> bool:
        """Whether this visit is one of those whose texts are kept, whatever they show."""
        return self.n_visits <= _FIRST_LOOKS or self.n_visits % _LOOKS == 0

    def _shared(self, page: int, blocks: PageBlocks) -> tuple[PageBlocks, Mapping[int, int]]:
        """Return blocks with the paths by which texts are shared, and the paths in the page for these."""
        shared = self._own_ids.shared_paths(page, blocks)
        if not shared:
            return blocks, {}
        path_of = {key: shared.get(path, path) for key, path in blocks.path_of.items()}
        return replace(blocks, path_of=path_of), {other: path for path, other in shared.items()}

    def _moved(self, guesses: EditGuesses, used: Sequence[TemplateEdit]) -> bool | None:
        page = guesses.page
        self.n_rounds += 1
        registered = {edit.identity: edit for edit in self.edits}
        used = [registered.get(edit.identity, edit) for edit in used]
        for edit in used:
            if edit.round == 0:
                edit.round = self.n_rounds
                edit.n_before = self.texts.n_unanimous(page, edit)
                self.edits.append(edit)
            self.n_learned += edit.moved(page)
        while len(self.edits) > _MOST_EDITS:
            del self.edits[0]
        self._n_unexplained = 0
        if self._looks or not all(edit.is_settled for edit in used):
            self._look(page, guesses.template, guesses.keys, guesses.words_at, replacing=True)
        # The same words at another place of the page: what shows one to be the template's does show the other. And what
        # all say, and stands elsewhere in the markup now, reads as it did.
        known = [edit for edit in self.edits if edit.is_established and edit.new]
        shown = {_words_of(edit)[0] for edit in known if edit.old} | {_words_of(edit)[1] for edit in known}
        unsure = [edit for edit in used if not edit.is_established and not edit.moved_from]
        unsure = [edit for edit in unsure if edit.n_kept or shown.isdisjoint(_words_of(edit))]
        if not unsure:
            return True
        return None if all(edit.is_undecided for edit in unsure) else False

    def _count_changed(self, guesses: EditGuesses, were_there: Callable[[Sequence[str]], Sequence[bool]]) -> None:
        """A page has changed otherwise; where its last content is known to have had the old words, it moved as well."""
        for edit in self.edits:
            if edit.is_settled or not edit.concerns(guesses.template):
                continue
            before = edit.undone(guesses.words_at(edit.path))
            if before is None:
                continue
            came, gone = guesses.came_and_gone({edit.path: before})
            if gone and all(were_there(gone)) and not any(were_there(came)):
                self.n_learned += edit.moved(guesses.page)
            else:
                edit.changed_otherwise(guesses.page)

    def _look(
        self,
        page: int,
        template: int,
        paths: Iterable[int],
        words: Callable[[int], Words],
        *,
        replacing: bool,
    ) -> None:
        self.texts.add(page, template, paths, words, replacing=replacing)
        self.n_learned += self.n_visits in _WRITTEN

    def _rounds(self, template: int) -> list[list[TemplateEdit]]:
        """Edits that were found together, the newest first."""
        edits = sorted(
            (edit for edit in self.edits if edit.concerns(template)), key=lambda edit: edit.round, reverse=True
        )
        return [list(group) for _, group in groupby(edits, key=lambda edit: edit.round)]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, for JSON."""
        return {
            "texts": self.texts.to_dict(),
            "edits": [edit.to_list() for edit in self.edits],
            "n_visits": self.n_visits,
            "n_rounds": self.n_rounds,
            "changed": list(self._changed),
            "own_ids": self._own_ids.to_list(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "TemplateEdits":
        """Return what `to_dict` gave."""
        made = cls()
        made.texts = SharedTexts.from_dict(data["texts"])
        made.edits = [TemplateEdit.from_list(edit) for edit in data["edits"]]
        made.n_visits, made.n_rounds = data["n_visits"], data["n_rounds"]
        made._changed.extend(data.get("changed", ()))  # earlier versions did not keep them
        made._own_ids = OwnIds.from_list(data.get("own_ids", []))
        return made


def _words_of(edit: TemplateEdit) -> tuple[object, object]:
    words = edit.old, edit.new
    return words, (*words, edit.left.lstrip("\0"), edit.right.lstrip("\0"))
