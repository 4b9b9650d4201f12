"""Compiling: loops over plain numbers as they stand, or compiled by numba where it is installed.

Imports nothing of the package. Begin reading with `compilable`.
"""

from crawlsched.compiling.compilable import (
    Compilable,
    is_prepared,
    is_wanted,
    load_compiled,
    prepare_compiled,
    use_compiled,
)

__all__ = ["Compilable", "is_prepared", "is_wanted", "load_compiled", "prepare_compiled", "use_compiled"]
