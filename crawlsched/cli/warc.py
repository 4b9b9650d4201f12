"""WARC: the responses of a web archive as recorded visits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawlsched.cli.recorded import RecordedVisit
from crawlsched.exceptions import CrawlschedError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_warc", "read_warc"]

_ENDINGS = (".warc", ".warc.gz", ".warc.zst", ".warc.lz4")


def is_warc(path: Path) -> bool:
    """Whether a file is a web archive, by its name.

    Examples
    --------
    >>> is_warc(Path("site.warc.gz")), is_warc(Path("visits.csv"))
    (True, False)
    """
    return path.name.lower().endswith(_ENDINGS)


def read_warc(path: Path, folder: Path) -> list[RecordedVisit]:
    """Read the responses of an archive, in order of time.

    Parameters
    ----------
    path : Path
        Whatever fastwarc reads: plain, or compressed by gzip, zstd or lz4.
    folder : Path
        Where the bodies are put, without their transfer and content encoding: an archive may be larger than memory.

    Returns
    -------
    list of RecordedVisit
        Responses to what is no http or https URL are left out. A record of kind *revisit* is a visit that found what
        the last one of its URL had found.

    Raises
    ------
    CrawlschedError
        If fastwarc is not installed, or the archive cannot be read, or holds no response.
    """
    try:
        from fastwarc.warc import ArchiveIterator, WarcRecordType
    except ImportError as error:
        raise CrawlschedError(
            "Reading a WARC needs fastwarc; pip install 'crawlsched[warc]', or write the visits as CSV."
        ) from error
    kinds = WarcRecordType.response | WarcRecordType.revisit
    try:
        with path.open("rb") as file:
            records = ArchiveIterator(file, record_types=kinds, parse_http=True, auto_decode="all")
            visits = list(_visits(records, WarcRecordType.revisit, folder))
    except (OSError, ValueError) as error:
        raise CrawlschedError(f"The archive {path} cannot be read: {error}.") from error
    if not visits:
        raise CrawlschedError(f"The archive {path} holds no response to an http or https request.")
    return sorted(visits, key=lambda visit: visit.time)


def _visits(records: Any, revisit: Any, folder: Path) -> Iterator[RecordedVisit]:
    last: dict[str, RecordedVisit] = {}
    for number, record in enumerate(records):
        url = record.headers.get("WARC-Target-URI", "").strip("<>")
        http = record.http_headers
        if not url.startswith(("http://", "https://")) or record.record_date is None:
            continue
        time = record.record_date.timestamp()
        if record.record_type == revisit:
            before = last.get(url)
            if before is not None:
                yield RecordedVisit(
                    time, url, before.body, None, before.status, before.content_type, before.etag, before.last_modified
                )
            continue
        if http is None or http.status_code is None:
            continue
        body = folder / str(number)
        body.write_bytes(record.reader.read())
        told = [http.get(name) or None for name in ("Content-Type", "ETag", "Last-Modified")]
        visit = last[url] = RecordedVisit(time, url, body, None, http.status_code, *told)
        yield visit
