"""Earlier contents: would a page have the fingerprint that was kept, had it other words at some places?"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection

from crawlsched.change_detection.blocks import PageBlocks
from crawlsched.change_detection.fingerprint import Fingerprint, is_same
from crawlsched.change_detection.noise import NoiseMask

__all__ = ["EarlierContents"]


class EarlierContents:
    """Contents that a page may have had, compared to the fingerprint that was kept of it.

    Parameters
    ----------
    mask : NoiseMask
        With which the page was read then.
    page : PageBlocks
        What it says now.
    fingerprint : Fingerprint
        That was kept.

    Notes
    -----
    What a page says is sorted once, and each content that is tried differs from it at a few places, so one
    try takes little more than hashing does.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> then, now, some = (page_blocks(f"<h1>Tea {release}</h1><p>Cups</p>") for release in ("1.3", "1.4", "1.2"))
    >>> earlier = EarlierContents(NoiseMask(), now, NoiseMask().fingerprint("blocks", then))
    >>> heading = next(iter(now.path_of.values()))
    >>> def titled(page):
    ...     keys = [key for key, path in page.path_of.items() if path == heading]
    ...     return PageBlocks(*({key: fact[key] for key in keys} for fact in (page.texts, page.path_of, page.name_of)))
    >>> earlier.has({heading}, titled(some)), earlier.has({heading}, titled(then))
    (False, True)
    """

    def __init__(self, mask: NoiseMask, page: PageBlocks, fingerprint: Fingerprint) -> None:
        self._mask = mask
        self._page = page
        self._fingerprint = fingerprint
        lines = mask.living_lines(page)
        self._sorted_by = [key for key, _, _ in lines]
        self._lines: list[str | None] = [line for _, _, line in lines]
        self._lines_of: dict[int, list[int]] = {}
        for number, (_, path, _) in enumerate(lines):
            self._lines_of.setdefault(path, []).append(number)
        self._as_read: dict[int, str] | None = None
        self._texts_of: dict[int, list[tuple[int, int]]] = {}

    def has(self, paths: Collection[int], others: PageBlocks) -> bool:
        """Say whether the page would have the fingerprint, had it these other blocks instead of those with these paths.

        Parameters
        ----------
        paths : collection of int
        others : PageBlocks

        Returns
        -------
        bool
            True also where all is as it was but for the places in the markup, as far as it is known where the other
            blocks stood.
        """
        recipe, digest = self._fingerprint
        if is_same(digest, Fingerprint.of(recipe, self._by_place(paths, others)).digest, first_half=True):
            return True
        as_read = self._in_order(paths, others)
        return as_read is not None and is_same(digest, Fingerprint.of(recipe, b"", as_read).digest)

    def _by_place(self, paths: Collection[int], others: PageBlocks) -> str:
        lines = self._lines.copy()
        for path in paths:
            for number in self._lines_of.get(path, ()):
                lines[number] = None
        added: list[tuple[int, str]] = []
        for key, _, line in self._mask.living_lines(others):
            number = bisect_left(self._sorted_by, key)
            if number < len(lines) and self._sorted_by[number] == key and lines[number] is None:
                lines[number] = line
            else:
                added.append((number, line))
        for number, line in reversed(added):  # from the end, so that the other numbers stay true
            lines.insert(number, line)
        return "\n".join([line for line in lines if line is not None])

    def _in_order(self, paths: Collection[int], others: PageBlocks) -> str | None:
        """The text from the first to the last block; None where it is not known where other blocks stood."""
        if self._as_read is None:
            self._as_read = self._mask.living_text_of(self._page)
            for number, key in enumerate(self._as_read):
                self._texts_of.setdefault(self._page.path_of[key], []).append((number, key))
        put_back = self._mask.living_text_of(others)
        strays = Counter(text for key, text in put_back.items() if key not in self._as_read)
        texts: list[str | None] = list(self._as_read.values())
        for path in paths:
            for number, key in self._texts_of.get(path, ()):
                text = texts[number]
                if key in put_back:
                    texts[number] = put_back[key]
                elif text is not None and strays[text]:  # it stood elsewhere in the markup
                    strays[text] -= 1
                else:
                    texts[number] = None
        return None if strays.total() else " ".join([text for text in texts if text is not None])
