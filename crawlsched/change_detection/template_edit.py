"""A template edit: words that a site replaces by others, on all of its pages, at the same place of their markup."""

from collections.abc import Sequence

from crawlsched.change_detection.block_groups import Words

__all__ = ["END", "START", "TemplateEdit"]

START, END = "\1", "\2"
"""What stands before the first word of a group of blocks, and behind its last."""

_MOVED, _KEPT, _UNCLEAR = range(3)
# So many pages have to show the same edit.
_LEAST_MOVED = 2
# Of those seen since, this many times as many as have kept what was there before.
_MOVED_PER_KEPT = 4
# Where one page moved, and so many show the new words that had changed otherwise, too, while so many others are known
# to have said the old ones before: were both words a difference between pages, of which a share p says the new one,
# this had a probability of p³ (1 - p)³, 1/64 at most.
_LEAST_UNCLEAR = 3
_LEAST_BEFORE = 3
# Pages whose part in an edit is remembered; with so many that moved it is settled.
_MOST_PAGES = 24
_SETTLED = 8


class TemplateEdit:
    """Words that were replaced by others, and the pages on which they were.

    Parameters
    ----------
    path : int
        Path of the blocks, see `PageBlocks.path_of`.
    old, new : tuple of str
        The words before and after, see `words_of`; one of them may be empty.
    left, right : str
        The words on both sides, or `START` and `END`.
    template : int, default 0
        Of pages with this template alone it is said that they have kept a block, or lost it: pages of others never
        had it. 0: of all pages that have blocks with this path.
    moved_from : int, default 0
        Path at which blocks with these words stood before, where the site has marked them up otherwise; 0: nowhere.
    round : int, default 0
        Edits that were found at the same visit have the same number.
    n_before : int, default 0
        How many other pages were known to have the old words when it was found, if none was known to have the new.

    Notes
    -----
    It is *established* as the template's when at least two pages moved (they are, but for such edits, as they were),
    and at least four times as many as were seen to keep the old words since, or had the new ones before. A page's own
    edit that happens to be the same as another page's (*In stock*, *Sold out*) leaves most pages as they were.
    Pages that have changed otherwise, too, are seen to have the new words, but not whether they are new to them; where
    there are three of those, none has kept the old words, and three others had them before, one that moved is enough.

    Examples
    --------
    >>> edit = TemplateEdit(1, ("1.3",), ("1.4",), "Tea", "guide")
    >>> edit.undone(("Tea", "1.4", "guide", "Cups")), edit.undone(("Tea", "1.5", "guide", "Cups"))
    (('Tea', '1.3', 'guide', 'Cups'), None)
    """

    __slots__ = ("left", "moved_from", "n_before", "new", "old", "pages", "path", "right", "round", "template")

    def __init__(
        self,
        path: int,
        old: Words,
        new: Words,
        left: str,
        right: str,
        template: int = 0,
        moved_from: int = 0,
        round: int = 0,
        n_before: int = 0,
    ) -> None:
        self.path = path
        self.old = old
        self.new = new
        self.left = left
        self.right = right
        self.template = template
        self.moved_from = moved_from
        self.round = round
        self.n_before = n_before
        self.pages: dict[int, int] = {}

    @property
    def identity(self) -> tuple[int, Words, Words, int, int]:
        """What tells it from other edits."""
        return self.path, self.old, self.new, self.template, self.moved_from

    @property
    def n_moved(self) -> int:
        """Pages on which the old words became the new ones, and nothing else changed."""
        return sum(part == _MOVED for part in self.pages.values())

    @property
    def n_kept(self) -> int:
        """Pages that showed the old words since, or the new ones before."""
        return sum(part == _KEPT for part in self.pages.values())

    @property
    def is_established(self) -> bool:
        """Whether it is an edit of the template rather than of some of its pages."""
        moved, kept = self.n_moved, self.n_kept
        if moved == 1 and not kept and self.n_before >= _LEAST_BEFORE:
            return len(self.pages) - 1 >= _LEAST_UNCLEAR
        return moved >= _LEAST_MOVED and moved >= _MOVED_PER_KEPT * kept

    @property
    def is_undecided(self) -> bool:
        """Whether one page alone has shown it, and few were seen since that could: the next one may tell."""
        return self.n_moved == 1 and not self.n_kept and len(self.pages) - 1 < _LEAST_UNCLEAR

    @property
    def is_settled(self) -> bool:
        """Whether no page counts any more."""
        return len(self.pages) >= _MOST_PAGES or (self.n_moved >= _SETTLED and self.is_established)

    def concerns(self, template: int) -> bool:
        """Whether pages of a template can show it."""
        return self.template in (0, template)

    def undone(self, words: Words) -> Words | None:
        """Return the words of a page's blocks with this path as they were before; None where the new are not there."""
        padded = (START, *words, END)
        places = _places(padded, self.new, self.left, self.right)
        if not places:
            return None
        length = len(self.new)
        made: list[str] = []
        behind = 0
        for place in places:
            made += (*padded[behind:place], *self.old)
            behind = place + length
        made += padded[behind:]
        return tuple(made[1:-1])

    def at(self, path: int, words: Words) -> "TemplateEdit | None":
        """Return this edit at another path, where the new words stand there between the same ones; None if not."""
        padded, length = (START, *words, END), len(self.new)
        sides = self.left.lstrip("\0"), self.right.lstrip("\0")  # whether a block begins there does not matter
        for place in range(1, len(padded) - length):
            if padded[place : place + length] == self.new:
                left, right = padded[place - 1], padded[place + length]
                if (left.lstrip("\0"), right.lstrip("\0")) == sides:
                    return TemplateEdit(path, self.old, self.new, left, right)
        return None

    def moved(self, page: int) -> bool:
        """A page differs from what it was by this and other edits alone; return whether that tells something new."""
        before = not self.pages, self.is_established, self.is_settled
        if page in self.pages or len(self.pages) < _MOST_PAGES:
            self.pages[page] = _MOVED
        return (not self.pages, self.is_established, self.is_settled) != before

    def changed_otherwise(self, page: int) -> None:
        """A page has changed, and shows the new words; whether it did before is not known."""
        self._count(page, _UNCLEAR)

    def unchanged(self, page: int, words: Words, *, elsewhere: Words = (), has_just_changed: bool = False) -> None:
        """A page is as it was: it has kept the old words, or had the new ones before; if it had changed, since then.

        Parameters
        ----------
        page : int
        words : tuple of str
            Of its blocks with this path.
        elsewhere : tuple of str, optional
            Of its blocks where those of this edit stood before, if they did elsewhere.
        has_just_changed : bool, default False
        """
        padded = (START, *words, END)
        if page in self.pages:
            return
        # Where blocks have moved, a page that has them neither here nor there is of another kind, and tells nothing.
        has_kept = elsewhere == self.new if self.moved_from else bool(_places(padded, self.old, self.left, self.right))
        if has_kept:
            self._count(page, _KEPT)
        elif _places(padded, self.new, self.left, self.right):
            self._count(page, _UNCLEAR if has_just_changed else _KEPT)

    def _count(self, page: int, part: int) -> None:
        if page not in self.pages and not self.is_settled:
            self.pages[page] = part

    def to_list(self) -> list[object]:
        """Return it as plain data, for JSON."""
        texts = [" ".join(self.old), " ".join(self.new), self.left, self.right]
        return [
            self.path,
            *texts,
            self.template,
            self.moved_from,
            self.round,
            self.n_before,
            [list(item) for item in self.pages.items()],
        ]

    @classmethod
    def from_list(cls, data: Sequence[object]) -> "TemplateEdit":
        """Return the edit that `to_list` gave."""
        path, old, new, left, right, *numbers, pages = data
        old_words, new_words = (tuple(str(text).split(" ")) if text else () for text in (old, new))
        sides = str(left), str(right)
        edit = cls(int(str(path)), old_words, new_words, *sides, *(int(str(number)) for number in numbers))
        edit.pages.update({int(page): int(part) for page, part in pages})  # type: ignore[attr-defined]
        return edit


def _places(padded: Words, words: Words, left: str, right: str) -> list[int]:
    """Where words stand between these two; if that is nowhere, where they stand beside one of them."""
    length = len(words)
    if words and words[0] not in padded:
        return []
    found = [place for place in range(1, len(padded) - length) if padded[place : place + length] == words]
    between = [place for place in found if padded[place - 1] == left and padded[place + length] == right]
    if between or not words:
        return _apart(between, length)
    return _apart([place for place in found if padded[place - 1] == left or padded[place + length] == right], length)


def _apart(places: Sequence[int], length: int) -> list[int]:
    chosen: list[int] = []
    for place in places:
        if not chosen or place >= chosen[-1] + max(length, 1):
            chosen.append(place)
    return chosen
