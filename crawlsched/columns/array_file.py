"""One file of named arrays and facts: written whole or not at all, and read only if every byte of it is as it was."""

from __future__ import annotations

import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.columns.growing import zeros

__all__ = ["Parts", "read_arrays", "read_facts", "write_arrays"]

_FACTS = "facts.json"
_AT_ONCE = 2**20
_SUM = struct.Struct("<8sQ")
_MARK = b"crawlsum"
_ZEROS = memoryview(bytes(_AT_ONCE))
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
Arrays = dict[str, npt.NDArray[Any]]


class Parts(NamedTuple):
    """An array that is nowhere in one piece: it is put together in the file, and takes no memory before.

    Attributes
    ----------
    n : int
        How many numbers there are.
    dtype : dtype
    parts : iterable of ndarray
        One after the other; made when they are written.

    Examples
    --------
    >>> Parts(3, np.dtype(np.int32), (np.arange(n, dtype=np.int32) for n in (1, 2))).whole()
    array([0, 0, 1], dtype=int32)
    """

    n: int
    dtype: np.dtype[Any]
    parts: Iterable[npt.NDArray[Any]]

    def whole(self) -> npt.NDArray[Any]:
        """Put the array together in memory."""
        return np.concatenate([np.empty(0, self.dtype), *self.parts])


def write_arrays(path: Path, facts: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any] | Parts]) -> None:
    """Write a file under a name that nobody looks for, and give it its own when it has reached the disk.

    Parameters
    ----------
    path : Path
        In a folder that is there.
    facts : mapping
        What JSON can hold.
    arrays : mapping of str to ndarray or Parts
        Of numbers; they are not copied.

    Raises
    ------
    OSError
        If it cannot be written; what stood there before is left as it was.
    """
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with open(os.open(unfinished, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
            summed = _Summed(file)
            with zipfile.ZipFile(summed, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
                archive.writestr(_FACTS, json.dumps(facts))
                for name, array in arrays.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        _write(member, array)
            file.write(_SUM.pack(_MARK, summed.sum))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


class _Summed:
    """A file that is written from its begin to its end, and the checksum of all that was written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sum = 0

    def write(self, data: Any) -> int:
        self.sum = zlib.crc32(data, self.sum)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def _check_sum(path: Path) -> None:
    """Compare the checksum behind the archive with all that stands before it: names and lengths have no other."""
    with path.open("rb") as file:
        left, found = file.seek(0, os.SEEK_END) - _SUM.size, 0
        if left < 0:
            raise ValueError("the file is too short")
        file.seek(0)
        while left:
            part = file.read(min(left, _AT_ONCE))
            if not part:
                raise ValueError("the file became shorter")
            found = zlib.crc32(part, found)
            left -= len(part)
        mark, stated = _SUM.unpack(file.read(_SUM.size))
        if (mark, stated) != (_MARK, found):
            raise ValueError("its checksum is another one")


def _write(member: IO[bytes], array: npt.NDArray[Any] | Parts) -> None:
    shape, parts = ((array.n,), array.parts) if isinstance(array, Parts) else (array.shape, [array])
    header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, header)
    for part in parts:
        # From where the array stands: numpy's own function copies 16 MB at a time.
        bits = np.ascontiguousarray(part, array.dtype).reshape(-1).view(np.uint8)
        for begin in range(0, bits.size, _AT_ONCE):
            member.write(bits[begin : begin + _AT_ONCE].data)


def read_facts(path: Path) -> dict[str, Any]:
    """Return the facts alone.

    Raises
    ------
    OSError
        If there is no such file, or it cannot be read.
    ValueError
        If it is damaged.
    """
    with _opened(path) as archive:
        return _read(lambda: json.loads(archive.read(_FACTS)))  # type: ignore[no-any-return]


def read_arrays(path: Path) -> Arrays:
    """Return the arrays; raises as `read_facts` does."""
    _read(lambda: _check_sum(path))
    with _opened(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        return {name.removesuffix(".npy"): _read(lambda: _array(archive, name)) for name in names}  # noqa: B023


def _opened(path: Path) -> zipfile.ZipFile:
    return _read(lambda: zipfile.ZipFile(path))  # type: ignore[no-any-return]


def _array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    with archive.open(name) as member:
        array = _filled(member, archive.getinfo(name).file_size)
        if member.read(1):  # at the end the checksum is compared, too
            raise ValueError("there is more in it than its header says")
        return array


def _filled(member: IO[bytes], size: int) -> npt.NDArray[Any]:
    """Read an array into memory in which it can grow: the first page that comes after a start is to move nothing."""
    version = np.lib.format.read_magic(member)
    if version not in _HEADERS:
        raise ValueError(f"an array in it is of the unknown version {version}")
    shape, by_column, dtype = _HEADERS[version](member)
    if dtype.hasobject or by_column:
        raise ValueError("an array in it is not of numbers row by row")
    if dtype.itemsize * math.prod(shape) > size:  # nothing is allocated by a number that is none
        raise ValueError("an array in it is larger than the file")
    array = zeros(shape, dtype)
    rest = array.reshape(-1).view(np.uint8).data
    while rest:
        part = member.read(min(len(rest), _AT_ONCE))
        if not part:
            raise ValueError("an array in it ends too early")
        # What is 0 throughout is so already, and takes no memory as long as it is not written.
        if part != _ZEROS[: len(part)]:
            rest[: len(part)] = part
        rest = rest[len(part) :]
    return array


def _read(read: Any) -> Any:
    try:
        return read()
    except OSError:
        raise
    except Exception as error:  # whatever zipfile, zlib, json and numpy's reader of headers raise about other bytes
        raise ValueError(f"the file is damaged ({error})") from error
