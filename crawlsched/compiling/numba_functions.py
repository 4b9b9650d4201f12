"""Functions compiled by numba, and kept on disk.

Importing this module imports numba: `crawlsched.compiling.compilable` does so only when compiled code is wanted.
"""

import ctypes
import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
from numba.core.options import DefaultOptions

Function = TypeVar("Function", bound=Callable[..., Any])


# What a process that only compiles does: the modules it is given, and those that come with them.
_COMPILE = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
importlib.import_module("crawlsched.compiling.compilable").compile_here()
"""
# Functions that name one of these make arrays, and have to count who refers to them.
_MAKES_ARRAYS = {"arange", "array", "copy", "empty", "full", "sort", "zeros"}


def compile_function(function: Function, keeps_lock: bool = False) -> Function:
    """Return the function compiled; the compiled code is kept on disk if there is a folder for it.

    It releases the interpreter lock while it runs, unless it `keeps_lock`.
    """
    options: dict[str, Any] = {"nogil": not keeps_lock, "error_model": "numpy"}
    if hasattr(DefaultOptions, "_nrt") and _MAKES_ARRAYS.isdisjoint(function.__code__.co_names):
        # Whoever calls it holds the arrays. To count references to them at each call of a small function takes twenty
        # times as long as what such a function does.
        options["_nrt"] = False
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is no folder in which to keep what was compiled
        compiled = numba.njit(**options)(function)
    return cast(Function, compiled)


def is_kept(function: Any) -> bool:
    """Whether a compiled function can be read from disk, or is not kept there at all."""
    folder = function.stats.cache_path
    return folder is None or any(Path(folder).glob(f"*.{function.py_func.__qualname__}-*.nbi"))


def compile_apart(modules: Iterable[str]) -> None:
    """Let another process compile the functions of some modules and keep them on disk, and wait for it.

    A compiler takes some 150 MB, which a process does not get rid of again, and holds the interpreter lock while it
    works. Where no such process can be started nothing is done: whoever wants the functions compiles them itself.
    """
    search = os.pathsep.join(path for path in sys.path if path)
    with suppress(OSError, ValueError):
        subprocess.run(
            [sys.executable, "-c", _COMPILE, *modules],
            check=False,
            env={**os.environ, "PYTHONPATH": search},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def let_go_of_compiler() -> None:
    """Give back to the machine what this process has in memory of the compiler's file, some 70 MB of LLVM.

    Reading compiled code from disk goes through LLVM; to run it takes none of that. Nothing of it was written to, and
    what is wanted once more comes back from the file, which the machine has in its cache as long as it has room.
    """
    with suppress(OSError, AttributeError, ValueError):  # not on every machine
        madvise = ctypes.CDLL(None, use_errno=True).madvise
        madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        for begin, end in _unchanged_parts("llvmlite"):
            madvise(begin, end - begin, mmap.MADV_DONTNEED)


def _unchanged_parts(name: str) -> Iterator[tuple[int, int]]:
    """Give the addresses of what is mapped of files of this name, cannot be written, and was not changed before."""
    part = None
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head, *rest = line.split(maxsplit=5)
        if not head.endswith(":"):
            is_wanted = len(rest) == 5 and name in Path(rest[4]).name and "w" not in rest[0]
            part = tuple(int(address, 16) for address in head.split("-")) if is_wanted else None
        elif head == "Anonymous:" and part is not None and rest[0] == "0":
            yield part[0], part[1]


def compiled_functions(
    module: ModuleType, known: dict[str, Any] | None = None, keeps_lock: bool = False
) -> dict[str, Any]:
    """Return compiled twins of a module's own functions, which call each other and those in `known`, by name.

    With `keeps_lock` they keep the interpreter lock while they run.
    """
    names = {**vars(module), **(known or {})}
    twins = {}
    version = _version(module, known or {}, keeps_lock)
    for name, function in vars(module).items():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            twin = FunctionType(function.__code__, names, name)
            # numba keeps what it compiled under this name.
            twin.__module__, twin.__qualname__ = function.__module__, f"{function.__qualname__}-{version}"
            names[name] = twins[name] = compile_function(twin, keeps_lock)
    return twins


def _version(module: ModuleType, known: dict[str, Any], keeps_lock: bool) -> str:
    """Return a digest of all that goes into a module's compiled functions: code, constants, `known`, and the lock.

    numba compiles anew what was kept if the file of the function itself has changed, but not if only a constant or a
    function of another one has, which it compiled into it.
    """
    parts = [(name, twin.py_func.__qualname__) for name, twin in known.items()]
    parts.append(("keeps_lock", repr(keeps_lock)))
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            parts.append((name, repr(_content(value.__code__))))
        elif isinstance(value, (int, float)) or (
            isinstance(value, tuple) and all(isinstance(item, (int, float)) for item in value)
        ):
            parts.append((name, repr(value)))
    return blake2b(repr(sorted(parts)).encode(), digest_size=6).hexdigest()


def _content(code: CodeType) -> list[Any]:
    """Return what code does, as `repr` writes it in the same way in every process."""
    constants = [_content(value) if isinstance(value, CodeType) else value for value in code.co_consts]
    return [code.co_code, code.co_names, constants]
