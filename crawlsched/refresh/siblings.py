"""Siblings: another page of a template, which tells whether an edit is the site's or the page's own."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from crawlsched.collection.collection import Collection
from crawlsched.content.reading import Content
from crawlsched.pages import LIVE

__all__ = ["sibling_of"]

# Pages that were found together are mostly of one kind: of so many on both sides so many are looked up.
_NEAR = 512
_LOOKED_UP = 8


def sibling_of(collection: Collection, page: int, content: Content, but: Container[int] = ()) -> int | None:
    """Return a page of the same template if there is one nearby, last seen before the edit as far as that can be told.

    Parameters
    ----------
    collection : Collection
    page : int
    content : Content
        What a visit found at the page.
    but : container of int
        Pages that will not do.

    Returns
    -------
    int or None
        None if none of those nearby would do.

    Notes
    -----
    Whoever was last seen before this page was, was seen before the edit; the youngest of them has had least time for
    edits of its own. Of the others, the one that was seen longest ago.
    """
    planner = collection.planner
    rows = np.arange(max(page - _NEAR, 0), min(page + _NEAR + 1, planner.pages.n))
    rows = rows[(planner.pages.host[rows] == planner.pages.host[page]) & (planner.pages.state[rows] == LIVE)]
    since = planner.pages.crawled_at[rows] - planner.pages.crawled_at[page]
    order = np.lexsort((np.abs(rows - page), np.abs(since), since > 0.0))
    others = [row for row in rows[order].tolist() if row != page and row not in but and not planner.in_flight(row)]
    # Another recipe, or another version of this one, keeps what it knows of the site to itself.
    recipe = "/".join(content.fingerprint.recipe.split("/")[:2])
    seen = [facts for facts in map(collection.facts_of, others[:_LOOKED_UP]) if (facts.recipe or "").startswith(recipe)]
    alike = [facts for facts in seen if collection.masks.of(facts.url)[0] == content.template]
    return (alike or seen)[0].page if seen else None
