"""Block groups: the words of all blocks with one path, as one sequence in which words can be replaced."""

from collections.abc import Iterable, Mapping, Sequence

from crawlsched.change_detection.blocks import BLOCK_STRIDE, KEY_MASK, PageBlocks

__all__ = ["Words", "blocks_with", "keys_by_path", "words_of", "words_with"]

Words = tuple[str, ...]

_BEGINS_BLOCK = "\0"


def keys_by_path(page: PageBlocks) -> dict[int, list[int]]:
    """Return the keys of a page's blocks by their paths, in the order of the page."""
    keys: dict[int, list[int]] = {}
    path_of = page.path_of
    for key in page.texts:
        keys.setdefault(path_of[key], []).append(key)
    return keys


def words_of(texts: Iterable[str]) -> Words:
    r"""Return the words of several blocks; the first word of each is marked.

    Examples
    --------
    >>> words_of(["Tea", "Two cups"])
    ('\x00Tea', '\x00Two', 'cups')
    """
    marked = f" {_BEGINS_BLOCK}".join(texts)
    return tuple(f"{_BEGINS_BLOCK}{marked}".split(" ")) if marked else ()


def words_with(page: PageBlocks, keys: Mapping[int, Sequence[int]], path: int) -> Words:
    """Return the words of a page's blocks with a path; none where there are no such blocks."""
    texts = page.texts
    return words_of([texts[key] for key in keys.get(path, ())])


def blocks_with(
    page: PageBlocks,
    keys: Mapping[int, Sequence[int]],
    replaced: Mapping[int, Words],
    real: Mapping[int, int] | None = None,
) -> PageBlocks:
    """Return blocks of a page as they would be with other words.

    Parameters
    ----------
    page : PageBlocks
    keys : mapping of int to sequence of int
        The page's keys by path, as `keys_by_path` gives them.
    replaced : mapping of int to tuple of str
        What blocks with these paths would say; none where it is empty.
    real : mapping of int to int, optional
        The paths that lead to blocks in the page, where these are others.

    Returns
    -------
    PageBlocks
        The blocks with these paths, and no others.
    """
    made = PageBlocks()
    for path, words in replaced.items():
        texts = " ".join(words).split(_BEGINS_BLOCK)[1:] if words else []
        old = keys.get(path, ())
        path = (real or {}).get(path, path)
        name = page.name_of[old[0]] if old else 0
        for number, text in enumerate(texts):
            # Where as many blocks are left they keep their keys: some that hold nothing may have been counted, too.
            key = old[number] if len(texts) == len(old) else (path + number * BLOCK_STRIDE) & KEY_MASK
            made.texts[key] = text.rstrip(" ")
            made.path_of[key] = path
            made.name_of[key] = name
    return made
