"""What people write where a recipe is chosen: a name, a function, or a table of options."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from crawlsched.change_detection.recipe_kind import Recipe
from crawlsched.change_detection.recipes import RECIPE_NAMES, recipe

__all__ = ["recipe_from"]

_OPTIONS = ("method", "keep", "drop", "links", "images", "ignore_keys", "template_edits")


def recipe_from(written: object) -> Recipe:
    """Return the recipe that somebody wrote down.

    Parameters
    ----------
    written : str, callable or mapping
        The name of a recipe; a function or its import path; or a mapping with any of the keys ``method`` (one of the
        former, "blocks" by default), ``keep``, ``drop``, ``links``, ``images``, ``ignore_keys``,
        ``template_edits``: see `recipe`.

    Raises
    ------
    ValueError
        If it says no recipe.

    Examples
    --------
    >>> recipe_from("json").id, recipe_from({"method": "visible_text", "links": True}).id
    ('json/2', 'visible_text/4+links')
    """
    if not isinstance(written, Mapping):
        return recipe(_method(written))
    unknown = sorted(set(written) - set(_OPTIONS))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no option of a recipe; options are {', '.join(_OPTIONS)}.")
    options = {str(name): value for name, value in written.items() if name != "method"}
    return recipe(_method(written.get("method", "blocks")), **options)


def _method(written: object) -> str | Callable[..., Any]:
    if callable(written) or written in RECIPE_NAMES:
        return written
    if isinstance(written, str) and "." in written:
        module, _, name = written.rpartition(".")
        try:
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(f"{written!r} cannot be imported ({error}).") from None
        if callable(found):
            return found  # type: ignore[no-any-return]
    raise ValueError(
        f"a recipe is one of {', '.join(RECIPE_NAMES)}, a callable or the import path of one; got {written!r}."
    )
