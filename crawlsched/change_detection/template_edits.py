"""Template edits: what a site changes on all of its pages alike, which is no change of any one of them."""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from crawlsched.change_detection.block_groups import Words, blocks_with, keys_by_path, words_of
from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.own_ids import OwnIds
from crawlsched.change_detection.shared_texts import SharedTexts
from crawlsched.change_detection.template_edit import END, START, TemplateEdit

__all__ = ["TemplateEdits"]

_DIGITS = re.compile(r"\d+")
_MOST_EDITS = 64
# So many contents that a page may have had before are compared to its fingerprint.
_MOST_TRIES = 13
# Of edits of templates so many are put back one after the other.
_MOST_ROUNDS = 12
_MOST_COMPARISONS = 64
_MOST_SINGLES = 4
_MOST_NEW_PATHS = 4
# Blocks with one path that are looked for at another one.
_MOST_MOVED = 4
_MOST_WORDS = 600
# Of pages that are as they were so many are looked at first, and then each eighth.
_FIRST_LOOKS = 16
_LOOKS = 8
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
        self.n_visits = 0
        self.n_rounds = 0
        #: Grows when something was learned that is worth writing down.
        self.n_learned = 0

    def saw(self, page: int, template: int, blocks: PageBlocks, *, is_first: bool) -> None:
        """A page is as it was, or is seen for the first time."""
        self.n_visits += 1
        pending = [edit for edit in self.edits if not edit.is_settled and edit.concerns(template)]
        looks = is_first or self.n_visits <= _FIRST_LOOKS or self.n_visits % _LOOKS == 0
        if not pending and not looks:
            return
        blocks, _ = self._shared(page, blocks)
        keys = keys_by_path(blocks)
        if not is_first:
            for edit in pending:
                words = _words(blocks, keys, edit.path)
                edit.unchanged(page, words, has_just_changed=page in self._changed)
        if looks:
            self._look(page, template, blocks, keys, replacing=not is_first)

    def explain(
        self,
        page: int,
        template: int,
        blocks: PageBlocks,
        is_same: Callable[[Mapping[int, Words], PageBlocks], bool],
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
        words = {path: _words(blocks, keys, path) for path in keys if self.texts.is_shared(path)}
        rounds = self._rounds(template)
        tried: list[dict[int, Words]] = []
        for edits in self._tries(page, template, blocks, keys, words, rounds, were_there):
            used, replaced = _undone(edits, blocks, keys, words)
            if not used or replaced in tried:
                continue
            if len(tried) >= _MOST_TRIES:
                break
            tried.append(replaced)
            in_page = {real.get(path, path): before for path, before in replaced.items()}
            if is_same(in_page, blocks_with(blocks, keys, replaced, real)):
                return self._moved(page, template, blocks, keys, used)
        for edit in self.edits:
            if not edit.is_settled and edit.undone(_words(blocks, keys, edit.path)) is not None:
                edit.changed_otherwise(page)
        self._changed.append(page)
        self._look(page, template, blocks, keys, replacing=False)
        return False

    def _shared(self, page: int, blocks: PageBlocks) -> tuple[PageBlocks, Mapping[int, int]]:
        """Return blocks with the paths by which texts are shared, and the paths in the page for these."""
        shared = self._own_ids.shared_paths(page, blocks)
        if not shared:
            return blocks, {}
        path_of = {key: shared.get(path, path) for key, path in blocks.path_of.items()}
        return replace(blocks, path_of=path_of), {other: path for path, other in shared.items()}

    def _moved(
        self, page: int, template: int, blocks: PageBlocks, keys: Mapping[int, list[int]], used: Sequence[TemplateEdit]
    ) -> bool | None:
        self.n_rounds += 1
        registered = {edit.identity: edit for edit in self.edits}
        used = [registered.get(edit.identity, edit) for edit in used]
        for edit in used:
            if edit.round == 0:
                edit.round = self.n_rounds
                self.edits.append(edit)
            if not edit.is_settled:
                self.n_learned += 1
            edit.moved(page)
        while len(self.edits) > _MOST_EDITS:
            del self.edits[0]
        self._look(page, template, blocks, keys, replacing=True)
        if all(edit.is_established for edit in used):
            return True
        return None if all(edit.is_established or edit.is_undecided for edit in used) else False

    def _look(
        self, page: int, template: int, blocks: PageBlocks, keys: Mapping[int, list[int]], *, replacing: bool
    ) -> None:
        self.texts.add(page, template, keys, lambda path: _words(blocks, keys, path), replacing=replacing)
        self.n_learned += self.n_visits <= _FIRST_LOOKS

    def _rounds(self, template: int) -> list[list[TemplateEdit]]:
        """Edits that were found together, the newest first."""
        edits = sorted(
            (edit for edit in self.edits if edit.concerns(template)), key=lambda edit: edit.round, reverse=True
        )
        return [list(group) for _, group in groupby(edits, key=lambda edit: edit.round)]

    def _tries(
        self,
        page: int,
        template: int,
        blocks: PageBlocks,
        keys: Mapping[int, list[int]],
        words: Mapping[int, Words],
        rounds: list[list[TemplateEdit]],
        were_there: Callable[[Sequence[str]], Sequence[bool]],
    ) -> Iterator[list[TemplateEdit]]:
        """Yield edits that may have led to what a page says, the most likely first."""
        known: list[TemplateEdit] = []
        for edits in rounds[:_MOST_ROUNDS]:  # a page that was not seen for long may have missed several
            established = [edit for edit in edits if edit.is_established]
            if established:
                known = known + established
                yield known
        pending = [edit for edits in rounds for edit in edits if not edit.is_established and not edit.n_kept]
        if pending:
            yield pending + known
        fresh = self._fresh(page, template, blocks, keys, words)
        # What the page is known to have said before was not put there by an edit.
        fresh = [group for group in fresh if not any(were_there(_came(group, blocks, keys, words)))]
        # What is replaced or stands elsewhere is more likely of the template than what some pages have and others not,
        # and most of all numbers are.
        sure = [group for group in fresh if (group[0].old and group[0].new) or any(edit.moved_from for edit in group)]
        # Blocks that stand elsewhere now are least sure: where a sign stands at many places some seem to have moved.
        sure.sort(
            key=lambda group: (_differ_in_numbers(group[0]), bool(group[0].old and group[0].new), len(group)),
            reverse=True,
        )
        optional = [group for group in fresh if group not in sure]
        replaced = [group for group in sure if group[0].old and group[0].new]
        # What is known already of other parts of the site comes with what is new in this one.
        unanimous = [group for group in replaced if all(self.texts.is_unanimous(page, edit) for edit in group)]
        yield _joined(unanimous) + known
        yield _joined(replaced) + known
        yield _joined(sure)
        yield _joined(sure) + _elsewhere(sure, words)
        yield _joined(sure) + known
        for n in range(1, min(len(sure), _MOST_SINGLES)):
            yield _joined(sure[:n])
        yield _joined(fresh)
        for group in optional[:_MOST_SINGLES]:
            yield _joined([*sure, group])
        yield from optional[:_MOST_SINGLES]
        # Where all others say the same, what comes or goes is the template's, too: a new entry of the navigation.
        alike = [group for group in fresh if all(edit.path in words for edit in group)]
        alike = [group for group in alike if all(self.texts.is_alike(page, edit.path) for edit in group)]
        yield _joined(alike) + known
        # Some pages have kept what was there before, and so many show the other that it is not seen as one any more.
        contested = [edit for edits in rounds for edit in edits if not edit.is_established and edit.n_kept]
        if contested:
            yield contested + known

    def _fresh(
        self,
        page: int,
        template: int,
        blocks: PageBlocks,
        keys: Mapping[int, list[int]],
        words: Mapping[int, Words],
    ) -> list[list[TemplateEdit]]:
        """Edits that would explain how a page differs from others, the same words at several places together."""
        found: list[TemplateEdit] = []
        left = _MOST_COMPARISONS
        for path in sorted(words, key=lambda path: len(words[path])):  # what belongs to the site is short, as a rule
            others = self.texts.others(page, path, words[path])
            left -= len(others)
            if left < 0:
                break
            found += self.texts.replaced(path, words[path], others)
        lost = {edit.path: edit for edit in self.texts.lost(page, template, keys)}
        gone = self.texts.alike(without=keys)
        new_paths = [path for path in keys if not self.texts.is_known(path)]
        for path in keys if gone else ():
            group = _words(blocks, keys, path) if len(keys[path]) <= _MOST_MOVED else ()
            if group in gone:
                found.append(TemplateEdit(path, (), group, START, END, 0, gone[group]))
                lost.pop(gone[group], None)
        for path in new_paths if len(new_paths) <= _MOST_NEW_PATHS else ():
            found.append(TemplateEdit(path, (), _words(blocks, keys, path), START, END, template))
        found += (
            TemplateEdit(path, (), group, START, END, template)
            for path, group in words.items()
            if self.texts.is_young(path, group)
        )
        found += lost.values()
        groups: dict[tuple[Words, Words], list[TemplateEdit]] = {}
        for edit in found:
            groups.setdefault((edit.old, edit.new), []).append(edit)
        return sorted(groups.values(), key=len, reverse=True)

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


def _came(
    edits: Sequence[TemplateEdit], blocks: PageBlocks, keys: Mapping[int, list[int]], words: Mapping[int, Words]
) -> list[str]:
    """Texts of the blocks that a page has by some edits, and would not have without them."""
    replaced = _undone(edits, blocks, keys, words)[1]
    others = set(blocks_with(blocks, keys, replaced).texts.values())
    return [blocks.texts[key] for path in replaced for key in keys.get(path, ()) if blocks.texts[key] not in others]


def _elsewhere(groups: Sequence[Sequence[TemplateEdit]], words: Mapping[int, Words]) -> list[TemplateEdit]:
    """The same numbers at other places of what a page shares with others, where too few of them tell of it."""
    found = []
    for group in groups:
        first, paths = group[0], {edit.path for edit in group}
        if _differ_in_numbers(first) and len(first.new) == 1:
            for path, said in words.items():
                if path not in paths and first.new[0] in said:
                    place = said.index(first.new[0])
                    sides = (START, *said, END)[place], (START, *said, END)[place + 2]
                    found.append(TemplateEdit(path, first.old, first.new, *sides))
    return found


def _differ_in_numbers(edit: TemplateEdit) -> bool:
    """Whether nothing but digits differs: in release numbers, years, counts."""
    one, two = (_DIGITS.sub("#", " ".join(words)) for words in (edit.old, edit.new))
    return one == two


def _joined(groups: Sequence[Sequence[TemplateEdit]]) -> list[TemplateEdit]:
    return [edit for group in groups for edit in group]


def _words(blocks: PageBlocks, keys: Mapping[int, list[int]], path: int) -> Words:
    return words_of(blocks.texts[key] for key in keys.get(path, ()))


def _undone(
    edits: Sequence[TemplateEdit], blocks: PageBlocks, keys: Mapping[int, list[int]], words: Mapping[int, Words]
) -> tuple[list[TemplateEdit], dict[int, Words]]:
    """Put back what edits replaced; give those whose words were there, and the words of the blocks as they were."""
    used: list[TemplateEdit] = []
    replaced: dict[int, Words] = {}
    for edit in edits:
        now = replaced.get(edit.path)
        if now is None:
            now = words.get(edit.path) or _words(blocks, keys, edit.path)
        before = edit.undone(now)
        if before is not None:
            replaced[edit.path] = before
            if edit.moved_from:
                replaced[edit.moved_from] = edit.new
            used.append(edit)
    return used, replaced
