"""Own ids: where the element around everything has another id on each page of a site, ids tell no places."""

from collections import Counter
from typing import Any

from crawlsched.change_detection.blocks import PageBlocks, path_below

__all__ = ["OwnIds"]

# An element is around everything if so many blocks at most are beside it: the title, a footer. Beside an article stands
# the navigation, and that is not shorter on pages with long articles.
_MOST_BESIDE = 8
_LEAST_DIFFERENT = 2
_MOST_PLACES = 16
_MOST_IDS = 64
_SEVERAL = -1


class OwnIds:
    """Which ids of elements around everything are those of single pages, so that texts within can be shared.

    Notes
    -----
    Blocks are known by the path that leads to them, so pages with another id each around everything have no place in
    common. An id counts as the page's own where two different ones at least have been seen at its place, and no other
    page was seen to have this one. At most 64 ids at 16 places are remembered.

    Examples
    --------
    >>> from crawlsched.change_detection.blocks import page_blocks
    >>> own_ids = OwnIds()
    >>> def paths(number, name):
    ...     page = page_blocks(f"<div id={name}><p>Tea</div>")
    ...     return [own_ids.shared_paths(number, page).get(path, path) for path in page.path_of.values()]
    >>> green, black, white = (paths(number, name) for number, name in enumerate(["green", "black", "white"]))
    >>> black == white, black == green, black == paths(0, "green"), black == paths(3, "white")
    (True, False, True, False)
    """

    def __init__(self) -> None:
        # Of each place the ids seen there, as the paths that end in them, and on which page.
        self._places: dict[int, dict[int, int]] = {}

    def shared_paths(self, page: int, blocks: PageBlocks) -> dict[int, int]:
        """Return by which other paths texts of a page are shared, where ids of its own lead to them; learn of its ids.

        Parameters
        ----------
        page : int
            Any number that tells pages apart.
        blocks : PageBlocks

        Returns
        -------
        dict of int to int
            No two paths of the page lead to the same one.
        """
        shared: dict[int, int] = {}
        for path in _around_everything(blocks):
            above, step, without_id = blocks.steps[path]
            above = shared.get(above, above)
            place = path_below(above, without_id)
            if self._is_own(page, place, path_below(above, step)):
                shared[path] = place
            elif above in shared.values():
                shared[path] = path_below(above, step)
        if not shared:
            return {}
        for path, (above, step, _) in blocks.steps.items():
            if path not in shared and above in shared:
                shared[path] = path_below(shared[above], step)
        paths = set(blocks.path_of.values())
        n_leading = Counter(shared.get(path, path) for path in paths)
        return {path: other for path, other in shared.items() if path in paths and n_leading[other] == 1}

    def _is_own(self, page: int, place: int, path: int) -> bool:
        seen = self._places.setdefault(place, {})
        before = seen.setdefault(path, page)
        if before != page:
            seen[path] = _SEVERAL
        if len(seen) > _MOST_IDS:
            del seen[next((one for one, of_page in seen.items() if of_page != _SEVERAL), next(iter(seen)))]
        while len(self._places) > _MOST_PLACES:
            del self._places[next(iter(self._places))]
        return before == page and len(seen) >= _LEAST_DIFFERENT

    def to_list(self) -> list[Any]:
        """Return all of it as plain data, for JSON."""
        return [[place, [list(item) for item in seen.items()]] for place, seen in self._places.items()]

    @classmethod
    def from_list(cls, data: list[Any]) -> "OwnIds":
        """Return what `to_list` gave."""
        made = cls()
        made._places = {place: dict(seen) for place, seen in data}
        return made


def _around_everything(blocks: PageBlocks) -> list[int]:
    """Paths of elements with an id around all blocks but a few, the outermost first."""
    steps = blocks.steps
    if all(step == without_id for _, step, without_id in steps.values()):
        return []
    n_within = Counter(blocks.path_of[key] for key in blocks.texts)
    least = max(len(blocks.texts) - _MOST_BESIDE, len(blocks.texts) / 2)
    for path in reversed(steps):  # an element comes before what is within it
        n_within[steps[path][0]] += n_within[path]
    return [path for path, (_, step, without_id) in steps.items() if step != without_id and n_within[path] >= least]
