"""Evaluation of the noisy terms: by numpy, or for large arrays by code that numba compiled."""

import importlib
import math
from typing import Any

from crawlsched.crawl_value.integrals import Array
from crawlsched.crawl_value.terms import noisy_terms

# Below this many values the compiled code would save less than it takes to load it once, and a crawling thread, which
# evaluates a page at a time, should never wait for a compiler.
COMPILED_FROM = 65_536

_choice: bool | None = None


def use_compiled(choice: bool | None) -> None:
    """Choose whether crawl values with announcements are evaluated by compiled code.

    The compiled code is about twice as fast, releases the interpreter lock while it runs, and agrees with numpy to
    about 1e-14. Compiling takes some seconds the first time; numba keeps the result on disk.

    Parameters
    ----------
    choice : bool or None
        True: always, and compile it now. False: never. None, as at the start: where numba is installed, for arrays of
        at least 65536 values, and compile it when the first such array comes.

    Raises
    ------
    ModuleNotFoundError
        If `choice` is True and numba cannot be imported.

    Examples
    --------
    >>> use_compiled(False)
    >>> use_compiled(None)
    """
    global _choice
    if choice:
        compiled = _compiled()
        if compiled is None:
            raise ModuleNotFoundError(
                "use_compiled(True) needs numba, which cannot be imported; install crawlsched[compiled]."
            )
        compiled.warm_up()
    _choice = choice


def evaluate(y: Array, alpha: Array, gamma: Array, kappa: Array, max_terms: float = math.inf) -> tuple[Array, Array]:
    """Crawl value per unit of importance, and its derivative with respect to y, of flat arrays of equal length."""
    if _choice or (_choice is None and y.size >= COMPILED_FROM):
        compiled = _compiled()
        if compiled is not None:
            value, slope = compiled.noisy_terms(y, alpha, gamma, kappa, max_terms)
            return value, slope
    return noisy_terms(y, alpha, gamma, kappa, max_terms)


def _compiled() -> Any:
    # numba takes half a second to import, and may be missing: not before it is wanted.
    try:
        return importlib.import_module("crawlsched.crawl_value.compiled")
    except ImportError:
        return None
