"""``crawlsched detect``: recorded bodies judged as a crawl would, with a row for each visit."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
from pathlib import Path

import pytest

from crawlsched.cli.warc import read_warc
from crawlsched.exceptions import CrawlschedError
from tests.commands import run_here

HEAD = "time,url,body,second"


def detect(folder: Path, rows: list[str], *options: str, head: str = HEAD) -> subprocess.CompletedProcess[str]:
    (folder / "visits.csv").write_text("\n".join([head, *rows]) + "\n")
    return run_here(folder, "detect", "--visits", "visits.csv", *options)


def test_a_row_for_each_visit_says_what_was_delivered_and_why_not(tmp_path: Path) -> None:
    """A clock is noise once two pages have shown it; a word is a change; nothing else is needed than files."""
    rows = []
    for visit in range(6):
        for page in range(3):
            text = "milk" if (visit, page) == (5, 1) else "tea"
            for second in (0, 1):
                name = f"{page}-{visit}-{second}.html"
                now = 100 * visit + 37 * second + page
                body = (
                    f"<title>Cup</title><main><h1>Cup {page}</h1><p>Of {text} {page}</p></main><i class=now>{now} s</i>"
                )
                (tmp_path / name).write_text(body)
            rows.append(
                f"{1e9 + 3600 * visit + page},http://a.example/cup/{page},{page}-{visit}-0.html,{page}-{visit}-1.html"
            )
    done = detect(tmp_path, rows, "--out", "out.csv", "--json")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out.csv").open() as file:
        out = list(csv.DictReader(file))
    assert list(out[0]) == ["time", "url", "outcome", "delivered", "kind", "ignored", "probes"]
    assert len(out) == 18
    assert [row["kind"] for row in out[:3]] == ["first"] * 3
    told = [(row["url"], row["kind"]) for row in out[3:] if row["delivered"] == "1"]
    assert told == [("http://a.example/cup/1", "page")]
    assert "i.now differed" in out[-1]["ignored"]
    report = json.loads(done.stdout)
    assert (report["visits"], report["delivered"]) == (18, 4)
    assert report["templates"]["a.example/http/cup/*"]["visits"] == 18
    assert [("tea" in row["said"], "milk" in row["says"]) for row in report["changes"]] == [(True, True)]
    assert "18 visits, 4 delivered (3 first, 1 page)" in detect(tmp_path, rows).stdout


def test_settings_count_and_wrong_tables_are_named(tmp_path: Path) -> None:
    """NAME with or without CRAWLSCHED_; what is wrong is one sentence."""
    for number in (1, 2):
        (tmp_path / f"{number}.html").write_text(f"<p>Tea</p><small>{number}</small>")
    rows = ["1,http://a/x,1.html,", "2,http://a/x,2.html,"]
    assert "2 delivered" in detect(tmp_path, rows).stdout
    for name in ("FINGERPRINT_DROP", "CRAWLSCHED_FINGERPRINT_DROP"):
        assert "1 delivered" in detect(tmp_path, rows, "--set", f"{name}=small").stdout
    missing = detect(tmp_path, ["1,http://a/x,3.html,"])
    assert missing.returncode == 1
    assert missing.stderr.count("\n") == 1
    assert "3.html, which is not there" in missing.stderr
    assert "no column body" in detect(tmp_path, ["1,http://a/x"], head="time,url").stderr
    assert "no number" in detect(tmp_path, ["x,http://a/x,1.html,"]).stderr
    assert "NAME=VALUE" in detect(tmp_path, rows, "--set", "PROBES").stderr
    assert "is not a setting" in detect(tmp_path, rows, "--set", "PROBE=1").stderr


def _record(kind: str, url: str, second: int, payload: bytes) -> bytes:
    head = (
        f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2026-01-01T00:00:{second:02d}Z\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-0000000000{second:02d}>\r\n"
        f"Content-Type: application/http;msgtype=response\r\nContent-Length: {len(payload)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + payload + b"\r\n\r\n")


def _response(body: bytes, *headers: str, status: int = 200) -> bytes:
    lines = [f"HTTP/1.1 {status} OK", "Content-Type: text/html", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_a_web_archive_is_judged_as_a_table_is(tmp_path: Path) -> None:
    """Bodies are unpacked, requests and DNS are left out, a revisit is a visit that found the same."""
    one, two = b"<h1>Cup</h1><p>Of tea", b"<h1>Cup</h1><p>Of milk"
    url = "http://a.example/cup"
    records = [
        _record("request", url, 0, b"GET /cup HTTP/1.1\r\n\r\n"),
        _record("response", url, 1, _response(one)),
        _record("response", "dns:a.example", 2, b"20260101 a.example. 1 IN A 127.0.0.1"),
        _record("response", url, 3, _response(gzip.compress(one), "Content-Encoding: gzip")),
        _record("response", url, 4, _response(two)),
        _record("revisit", url, 5, _response(b"")),
        _record("response", url, 6, _response(b"<h1>Gone", status=404)),
    ]
    (tmp_path / "site.warc.gz").write_bytes(b"".join(records))
    done = detect(tmp_path, [], "--visits", "site.warc.gz", "--out", "out.csv")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out.csv").open() as file:
        out = list(csv.DictReader(file))
    assert [(row["url"], row["outcome"], row["kind"]) for row in out] == [
        (url, "changed", "first"),
        (url, "unchanged", ""),
        (url, "changed", "page"),
        (url, "unchanged", ""),
        (url, "gone", ""),
    ]
    for name, content in (("no.warc", b"no archive"), ("cut.warc.gz", records[1][:60]), ("dns.warc.gz", records[2])):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CrawlschedError, match=name):
            read_warc(tmp_path / name, tmp_path)
    with pytest.raises(CrawlschedError, match="cannot be read"):
        read_warc(tmp_path / "none.warc", tmp_path)
