"""Lines that name URLs: a URL in each line, or CSV with data about URLs. Wrong lines are noted and left out."""

import csv
import gzip
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TextIO, cast

from crawlsched.exceptions import CrawlschedError
from crawlsched.settings.values import read_date

__all__ = ["UrlLine", "UrlLines"]

_COLUMNS = ("url", "importance", "time", "changed", "digest")
_CHANGED = {
    **dict.fromkeys(("1", "true", "yes", "changed"), 1),
    **dict.fromkeys(("0", "false", "no", "unchanged"), 0),
    "": -1,
}


class UrlLine(NamedTuple):
    """The values of a line."""

    url: str
    importance: float | None = None  # 0 or more
    time: float | None = None  # of a visit, POSIX seconds
    changed: int = -1  # 1: the visit found the page changed; 0: unchanged; -1: not known
    digest: int = 0  # of the content at that visit; 0: not known


class UrlLines:
    """A file that names URLs.

    Attributes
    ----------
    n : int
        The number of lines read so far.
    n_wrong : int
        The number of wrong lines, which were left out.
    """

    def __init__(self, path: Path, now: float, most_wrong: int = 1_000) -> None:
        self.path, self._now = path, now
        self.name = "standard input" if str(path) == "-" else str(path)
        self.columns: tuple[str, ...] = ("url",)  # the file's columns that are used
        self.ignored: tuple[str, ...] = ()  # the file's columns that are not used
        self.n = self.n_wrong = 0
        self.wrong: list[tuple[int, str]] = []  # number and fault of the first `most_wrong` wrong lines
        self._most_wrong = most_wrong

    @property
    def has_visits(self) -> bool:
        """Whether the lines have visits."""
        return "time" in self.columns

    def leave_out(self, fault: str) -> None:
        """Note that the line read last is wrong."""
        self.n_wrong += 1
        if len(self.wrong) < self._most_wrong:
            self.wrong.append((self.n, fault))

    def __iter__(self) -> Iterator[UrlLine]:
        """Yield the correct lines."""
        try:
            with self._opened() as file:
                yield from self._lines(file)
        except (OSError, EOFError, zlib.error) as error:
            raise CrawlschedError(f"{self.name} cannot be read: {error}.") from error

    def _opened(self) -> TextIO:
        path = Path("/dev/stdin") if str(self.path) == "-" else self.path
        opened = gzip.open if self.path.suffix == ".gz" else open
        # With surrogateescape, bytes that are not UTF-8 make only their line wrong.
        return cast("TextIO", opened(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline=""))

    def _lines(self, file: TextIO) -> Iterator[UrlLine]:
        for text in file:
            self.n += 1
            names = [name.strip().lower() for name in next(csv.reader([text]), [])] if self.n == 1 else []
            if "url" in names:
                self._take_header(names)
                yield from self._rows(file, names)
            elif (url := text.strip()) and not url.startswith("#"):
                yield from self._read({"url": url})

    def _take_header(self, names: Sequence[str]) -> None:
        self.columns = tuple(name for name in _COLUMNS if name in names)
        self.ignored = tuple(name for name in names if name not in _COLUMNS)
        if "time" not in names and (lonely := [name for name in ("changed", "digest") if name in names]):
            raise CrawlschedError(
                f"{self.name} has the column {lonely[0]} and no column time; a visit needs the columns url, time and "
                "changed (or digest)."
            )

    def _read(self, said: Mapping[str, str]) -> Iterator[UrlLine]:
        """Yield the values of a line, unless the line is wrong."""
        try:
            line = UrlLine(**{name: _READERS[name](text.strip()) for name, text in said.items()})
            if self.has_visits and line.time is None:
                raise ValueError("it has no time")
            if line.time is not None and line.time > self._now:
                raise ValueError(f"its time lies in the future: {line.time:.0f} (POSIX seconds)")
        except ValueError as error:
            self.leave_out(str(error))
        else:
            yield line

    def _rows(self, file: TextIO, names: Sequence[str]) -> Iterator[UrlLine]:
        rows = csv.reader(file)
        places = {name: names.index(name) for name in self.columns}
        while True:
            try:
                row = next(rows, None)
            except csv.Error as error:
                self.n = rows.line_num + 1
                self.leave_out(f"it cannot be read as CSV ({error})")
                continue
            if row is None:
                return
            self.n = rows.line_num + 1
            if len(row) == len(names):
                yield from self._read({name: row[at] for name, at in places.items()})
            elif row:
                self.leave_out(f"it has {len(row)} fields, and the first line has {len(names)}")


def _url(text: str) -> str:
    if not (text.isascii() or text.isprintable()):
        raise ValueError(f"it has bytes that are not UTF-8, or invisible characters: {text!r:.100}")
    return text


def _importance(text: str) -> float | None:
    return _number(text, float, "importance must be 0 or more") if text else None


def _number(text: str, read: Callable[[str], float], rule: str) -> float:
    try:
        number = read(text)
    except (ValueError, OverflowError):
        number = math.nan
    if not 0.0 <= number < math.inf:
        raise ValueError(f"{rule}, got {text!r:.60}")
    return number


def _time(text: str) -> float | None:
    """Read POSIX seconds, a date of ISO 8601 (UTC without a zone), or the YYYYMMDDhhmmss of web archives."""
    return _number(text, _seconds, "time must be POSIX seconds, a date of ISO 8601 or YYYYMMDDhhmmss") if text else None


def _seconds(text: str) -> float:
    if len(text) == 14 and text.isdigit():
        return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    try:
        return float(text)
    except ValueError:
        return read_date(text)


def _changed(text: str) -> int:
    try:
        return _CHANGED[text.lower()]
    except KeyError:
        raise ValueError(f"changed must be 1, 0 or empty, got {text!r:.60}") from None


def _digest(text: str) -> int:
    if text in ("", "-"):
        return 0
    # The column takes 63 bits without a sign; the last bit is 1, since 0 stands for no digest.
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big") >> 1 | 1


_READERS: dict[str, Callable[[str], Any]] = {
    "url": _url,
    "importance": _importance,
    "time": _time,
    "changed": _changed,
    "digest": _digest,
}
