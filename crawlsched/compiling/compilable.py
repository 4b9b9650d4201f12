"""Compilable: functions as they stand in a module, or compiled by numba; one switch for all of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

__all__ = ["Compilable", "is_prepared", "is_wanted", "load_compiled", "prepare_compiled", "use_compiled"]

_choice: bool | None = None
_loaded: Any = None


class Compilable:
    """The functions of a module, by name: as they stand there, or compiled while compiled code is in use.

    Parameters
    ----------
    module : module
        Functions of plain floats and arrays, in the order in which they call each other, and `EXAMPLES`: by name the
        arguments of a call of each function that is called from outside, whose types it is compiled for.
    uses : sequence of Compilable or module, optional
        Whose functions it calls; each may call those of the ones before it.
    keeps_lock : bool, default False
        Whether the compiled functions keep the interpreter lock. For short calls that come with every slot: to release
        the lock would let any other thread stop the crawl, and to get it back takes longer than such a call.
    """

    def __init__(
        self, module: ModuleType, uses: tuple[Compilable | ModuleType, ...] = (), keeps_lock: bool = False
    ) -> None:
        self._module = module
        self._uses = uses
        self._keeps_lock = keeps_lock
        self._made: dict[str, Any] = {}
        self._twins: dict[str, Any] = {}
        #: Whether the functions are compiled ones.
        self.compiled = False
        _COMPILABLE.append(self)
        self._switch()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        # Only for the type checker and for misspelt names: functions are attributes of their own.
        raise AttributeError(f"{self._module.__name__} has no function {name!r}")

    def compiled_function(self, name: str) -> Callable[..., Any] | None:
        """Return one function compiled, whatever is in use; None where numba cannot be imported."""
        compiled = _compiled()
        function: Callable[..., Any] | None = None if compiled is None else self._make(compiled)[name]
        return function

    def _make(self, compiled: Any) -> dict[str, Any]:
        """Return the functions that numba will load or compile when they are first called."""
        if not self._made:
            known: dict[str, Any] = {}
            for used in self._uses:
                is_ours = isinstance(used, Compilable)
                known |= used._make(compiled) if is_ours else compiled.compiled_functions(used, known)
            self._made = compiled.compiled_functions(self._module, known, self._keeps_lock)
        return self._made

    def _is_kept(self, compiled: Any) -> bool:
        made = self._make(compiled)
        return all(compiled.is_kept(made[name]) for name in self._module.EXAMPLES)

    def _load(self, compiled: Any) -> None:
        if self._twins:
            return
        twins = self._make(compiled)
        for name, example in self._module.EXAMPLES.items():
            twins[name](*example)
        self._twins = twins

    def _switch(self) -> None:
        self.compiled = _loaded is not None and _choice is not False
        if self.compiled:
            self._load(_loaded)
        plain = {name: f for name, f in vars(self._module).items() if isinstance(f, FunctionType)}
        vars(self).update(self._twins if self.compiled else plain)


_COMPILABLE: list[Compilable] = []


def use_compiled(choice: bool | None) -> None:
    """Choose whether crawl values are evaluated by compiled code.

    The compiled code releases the interpreter lock while it runs. For arrays it is about twice as fast as numpy and
    agrees with it to about 1e-14; for single pages it is up to fifty times as fast as plain Python, of which it is the
    compiled form, and agrees with it to the last digit, so that the same pages are picked. Compiling takes some seconds
    the first time; numba keeps the result on disk.

    Parameters
    ----------
    choice : bool or None
        True: always, and compile it now. False: never. None, as at the start: where numba is installed, for arrays of
        at least 65536 values, and compile it when the first such array comes; and for everything after
        `prepare_compiled`.

    Raises
    ------
    ModuleNotFoundError
        If `choice` is True and numba cannot be imported.

    Examples
    --------
    >>> use_compiled(False)
    >>> use_compiled(None)
    """
    global _choice, _loaded
    if choice and _compiled() is None:
        raise ModuleNotFoundError(
            "use_compiled(True) needs numba, which cannot be imported; install crawlsched[compiled]."
        )
    _choice = choice
    if choice:
        prepare_compiled()
    else:
        _loaded = None
        _switch_all()


def prepare_compiled() -> bool:
    """Load the compiled code now if numba is installed and `use_compiled(False)` does not stand against it.

    Half a second, and some seconds the very first time, when another process compiles it: worth it before some ten
    thousand picks.

    Returns
    -------
    bool
        Whether it is in use.
    """
    global _loaded
    if _choice is not False and _loaded is None:
        compiled = _compiled()
        if compiled is not None:
            _load_all(compiled)
            _loaded = compiled
    _switch_all()
    return _loaded is not None and _choice is not False


def is_prepared() -> bool:
    """Whether `prepare_compiled` has done its work already, for whoever asked for it."""
    return _loaded is not None


def load_compiled() -> None:
    """Load the compiled code, if numba is installed, for `prepare_compiled` to use at once; nothing else changes.

    While a crawl goes on, another thread may do this.
    """
    if (compiled := _compiled()) is not None:
        _load_all(compiled)


def compile_here() -> None:
    """Compile in this process what is not kept on disk: what the process does that others start to compile."""
    if (compiled := _compiled()) is not None:
        for functions in _COMPILABLE:
            functions._load(compiled)


def _load_all(compiled: Any) -> None:
    every = list(_COMPILABLE)
    new = [functions._module.__name__ for functions in every if not functions._is_kept(compiled)]
    if new:
        compiled.compile_apart(new)
    for functions in every:
        functions._load(compiled)
    compiled.let_go_of_compiler()


def _switch_all() -> None:
    for functions in _COMPILABLE:
        functions._switch()


def is_wanted(size: int, from_size: int) -> bool:
    """Whether an array of a size is worth compiled code, which has then to be loaded: by choice, or from a size on."""
    return _choice is True or (_choice is None and size >= from_size)


def _compiled() -> Any:
    # numba takes half a second to import, and may be missing: not before it is wanted.
    try:
        return importlib.import_module("crawlsched.compiling.numba_functions")
    except ImportError:
        return None
