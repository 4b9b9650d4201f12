"""``crawlsched detect``: recorded bodies judged as a crawl would, with a row for each visit."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path

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
