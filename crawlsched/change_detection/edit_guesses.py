"""Edit guesses: which edits may have led to what a page says, by what other pages of its site say."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from crawlsched.change_detection.block_groups import Words, blocks_with, words_with
from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.shared_texts import SharedTexts
from crawlsched.change_detection.template_edit import END, START, TemplateEdit

__all__ = ["EditGuesses"]

_DIGITS = re.compile(r"\d+")
# Of edits of templates so many are put back one after the other.
_MOST_ROUNDS = 12
_MOST_COMPARISONS = 64
_MOST_SINGLES = 4
_MOST_NEW_PATHS = 4
# Words that were replaced by others, at however many places; what a page has of its own may differ in hundreds.
_MOST_GROUPS = 32
# Blocks with one path that are looked for at another one.
_MOST_MOVED = 4
# Edits that are looked for at places where no other page has text, and places at which each is.
_MOST_SPREAD = 16


class EditGuesses:
    """Guesses at the edits by which a page differs from what it was.

    Parameters
    ----------
    texts : SharedTexts
        What the other pages of its site say.
    page, template : int
        Any numbers that tell pages, and templates, apart.
    blocks : PageBlocks
        What the page says.
    keys : mapping of int to list of int
        The keys of its blocks by path, as `keys_by_path` gives them.

    Notes
    -----
    A guess is a list of edits that are undone together. Only the first ones are likely to be tried, so they come by how
    likely they are: what is known of the site; what no other page has, where all others say the same; what several
    others have otherwise, and numbers first; and what has come or gone.

    Examples
    --------
    >>> from crawlsched.change_detection.block_groups import keys_by_path
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> texts = SharedTexts()
    >>> for number, tea in enumerate(["oolong", "green", "black", "white"]):
    ...     page = page_blocks(f"<h1>Tea 1.3 guide: {tea}</h1>")
    ...     keys = keys_by_path(page)
    ...     texts.add(number, 1, keys, lambda path: words_with(page, keys, path), replacing=False)
    >>> page = page_blocks("<h1>Tea 1.4 guide: white</h1>")
    >>> guesses = EditGuesses(texts, 3, 1, page, keys_by_path(page))
    >>> [(edit.old, edit.new) for edit in next(guesses.tries([], lambda texts: [False] * len(texts)))]
    [(('1.3',), ('1.4',))]
    """

    def __init__(
        self, texts: SharedTexts, page: int, template: int, blocks: PageBlocks, keys: Mapping[int, list[int]]
    ) -> None:
        self.page = page
        self.template = template
        self.keys = keys
        self._texts = texts
        self._blocks = blocks
        # Words of blocks by path; first of those paths at which texts of other pages are kept.
        self._words = {path: words_with(blocks, keys, path) for path in keys if texts.is_shared(path)}
        self._further_words: dict[int, Words] = {}

    def words_at(self, path: int) -> Words:
        """Words of the page's blocks with a path."""
        words = self._words.get(path)
        if words is None:
            words = self._further_words.get(path)
        if words is None:
            words = self._further_words[path] = words_with(self._blocks, self.keys, path)
        return words

    def undone(self, edits: Sequence[TemplateEdit]) -> tuple[list[TemplateEdit], dict[int, Words]]:
        """Put back what edits replaced; give those whose words were there, and the words of the blocks as they were."""
        used: list[TemplateEdit] = []
        replaced: dict[int, Words] = {}
        for edit in edits:
            now = replaced.get(edit.path)
            if now is None:
                now = self.words_at(edit.path)
            before = edit.undone(now)
            if before is not None:
                replaced[edit.path] = before
                if edit.moved_from:
                    replaced[edit.moved_from] = edit.new
                used.append(edit)
        return used, replaced

    def came_and_gone(self, replaced: Mapping[int, Words]) -> tuple[list[str], list[str]]:
        """Texts of blocks that the page has, and would not have with other words at some paths; and the reverse."""
        now = {self._blocks.texts[key] for path in replaced for key in self.keys.get(path, ())}
        then = set(blocks_with(self._blocks, self.keys, replaced).texts.values())
        return sorted(now - then), sorted(then - now)

    def tries(
        self, rounds: Sequence[Sequence[TemplateEdit]], were_there: Callable[[Sequence[str]], Sequence[bool]]
    ) -> Iterator[list[TemplateEdit]]:
        """Yield edits that may have led to what the page says, the most likely first.

        Parameters
        ----------
        rounds : sequence of sequence of TemplateEdit
            What was found before, those together that were; the newest first.
        were_there : callable
            ``were_there(texts)`` says of some blocks whether the page had them before, as far as that is known.
        """
        known: list[TemplateEdit] = []
        for edits in rounds[:_MOST_ROUNDS]:  # a page that was not seen for long may have missed several
            established = [edit for edit in edits if edit.is_established]
            if established:
                known = known + established
                yield known
        if spread := self._spread(known):
            yield known + spread
        pending = [edit for edits in rounds for edit in edits if not edit.is_established and not edit.n_kept]
        if pending:
            yield pending + known
        fresh = self._fresh(were_there)
        # What is replaced or stands elsewhere is more likely of the template than what some pages have and others not,
        # and most of all numbers are.
        sure = [group for group in fresh if (group[0].old and group[0].new) or any(edit.moved_from for edit in group)]
        # Blocks that stand elsewhere now are least sure: where a sign stands at many places some seem to have moved.
        sure.sort(
            key=lambda group: (_differ_in_numbers(group[0]), bool(group[0].old and group[0].new), len(group)),
            reverse=True,
        )
        alone = [self._are_alone(group) for group in fresh]
        optional = [group for is_alone in (True, False) for group, a in zip(fresh, alone, strict=True) if a == is_alone]
        optional = [group for group in optional if group not in sure]
        replaced = [group for group in sure if group[0].old and group[0].new]
        unanimous = [group for group in replaced if self._are_alone(group)]
        # What is known already of other parts of the site comes with what is new in this one.
        yield _joined(unanimous) + known
        elsewhere = self._elsewhere(unanimous)
        yield _joined(unanimous) + elsewhere + known
        yield _joined(unanimous) + elsewhere + self._spread(_joined(unanimous)) + known
        yield _joined(replaced) + known
        # Words that no other page has, where all others say the same, have come or gone there: entries of a list.
        yield _joined([group for group, is_alone in zip(fresh, alone, strict=True) if is_alone]) + known
        yield _joined(sure)
        yield _joined(sure) + self._elsewhere(sure)
        yield _joined(sure) + known
        for n in range(1, min(len(sure), _MOST_SINGLES)):
            yield _joined(sure[:n])
        yield _joined(fresh)
        for group in optional[:_MOST_SINGLES]:
            yield _joined([*sure, group])
        for group in optional[:_MOST_SINGLES] if unanimous else ():
            yield _joined([*unanimous, group]) + known
        yield from optional[:_MOST_SINGLES]
        # Where all others say the same, what comes or goes is the template's, too: a new entry of the navigation.
        alike = [group for group in fresh if all(edit.path in self._words for edit in group)]
        alike = [group for group in alike if all(self._texts.is_alike(self.page, edit.path) for edit in group)]
        yield _joined(alike) + known
        # Some pages have kept what was there before, and so many show the other that it is not seen as one any more.
        contested = [edit for edits in rounds for edit in edits if not edit.is_established and edit.n_kept]
        if contested:
            yield contested + known

    def _are_alone(self, group: Sequence[TemplateEdit]) -> bool:
        """Whether all other pages have what these edits replaced, and none has what they put there."""
        return all(self._texts.is_unanimous(self.page, edit) for edit in group)

    def _fresh(self, were_there: Callable[[Sequence[str]], Sequence[bool]]) -> list[list[TemplateEdit]]:
        """Edits that would explain how the page differs from others, the same words at several places together."""
        found = [*self._replaced(), *self._come_and_gone()]
        groups: dict[tuple[Words, Words], list[TemplateEdit]] = {}
        for edit in found:
            groups.setdefault((edit.old, edit.new), []).append(edit)
        fresh = sorted(groups.values(), key=len, reverse=True)[:_MOST_GROUPS]
        # What the page is known to have said before was not put there by an edit.
        came = [self.came_and_gone(self.undone(group)[1])[0] for group in fresh]
        known = were_there([text for texts in came for text in texts])
        said_before = {text for text, was in zip((text for texts in came for text in texts), known, strict=True) if was}
        return [group for group, texts in zip(fresh, came, strict=True) if said_before.isdisjoint(texts)]

    def _replaced(self) -> Iterator[TemplateEdit]:
        left = _MOST_COMPARISONS
        words = self._words
        for path in sorted(words, key=lambda path: len(words[path])):  # what belongs to the site is short, as a rule
            others = self._texts.others(self.page, path, words[path])
            left -= len(others)
            if left < 0:
                break
            yield from self._texts.replaced(path, words[path], others)

    def _come_and_gone(self) -> Iterator[TemplateEdit]:
        lost = {edit.path: edit for edit in self._texts.lost(self.page, self.template, self.keys)}
        gone = self._texts.alike(without=self.keys)
        new_paths = [path for path in self.keys if not self._texts.is_known(path)]
        for path in self.keys if gone else ():
            group = self.words_at(path) if len(self.keys[path]) <= _MOST_MOVED else ()
            if group in gone:
                yield TemplateEdit(path, (), group, START, END, 0, gone[group])
                lost.pop(gone[group], None)
        for path in new_paths if len(new_paths) <= _MOST_NEW_PATHS else ():
            yield TemplateEdit(path, (), self.words_at(path), START, END, self.template)
        for path, group in self._words.items():
            if self._texts.is_young(path, group):
                yield TemplateEdit(path, (), group, START, END, self.template)
        yield from lost.values()

    def _elsewhere(self, groups: Sequence[Sequence[TemplateEdit]]) -> list[TemplateEdit]:
        """The same numbers at other places of what the page shares with others, where too few of them tell of it."""
        found = []
        for group in groups:
            first, paths = group[0], {edit.path for edit in group}
            if _differ_in_numbers(first) and len(first.new) == 1:
                for path, said in self._words.items():
                    if path not in paths and first.new[0] in said:
                        place = said.index(first.new[0])
                        sides = (START, *said, END)[place], (START, *said, END)[place + 2]
                        found.append(TemplateEdit(path, first.old, first.new, *sides))
        return found

    def _spread(self, edits: Sequence[TemplateEdit]) -> list[TemplateEdit]:
        """The same edits, between the same words, at places where no texts of other pages are kept."""
        found: list[TemplateEdit] = []
        seen = set()
        for edit in edits:
            what = edit.old, edit.new, edit.left, edit.right
            if not edit.new or edit.moved_from or START in what or END in what or what in seen:
                continue
            seen.add(what)
            word = edit.new[0].lstrip("\0")
            paths = {self._blocks.path_of[key] for key, text in self._blocks.texts.items() if word in text}
            for path in sorted(paths - self._words.keys())[:_MOST_SPREAD]:
                other = edit.at(path, self.words_at(path))
                if other is not None:
                    found.append(other)
            if len(seen) >= _MOST_SPREAD:
                break
        return found


def _differ_in_numbers(edit: TemplateEdit) -> bool:
    """Whether nothing but digits differs: in release numbers, years, counts."""
    one, two = (_DIGITS.sub("#", " ".join(words)) for words in (edit.old, edit.new))
    return one == two


def _joined(groups: Sequence[Sequence[TemplateEdit]]) -> list[TemplateEdit]:
    return [edit for group in groups for edit in group]
