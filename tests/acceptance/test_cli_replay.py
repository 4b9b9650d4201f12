"""`crawlsched replay` as a user runs them: files in, files out, one sentence on failure."""

import csv
import gzip
import json
from itertools import product

import pytest

from tests.commands import run_here

# Numbers of pages have gaps and stand in no order; page 30 changes at 2.5 and at 6, page 4 at 1.
PAGES = "end,page,birth,note,importance,change_rate\n10,30,0,a,1,0.2\n10,4,-5,b,3,0.1\n,17,4.5,c,1,0.001\n"
CHANGES = "time,page\n6,30\n1,4\n2.5,30\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command among the files of a small history."""
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "pages.csv").write_text(PAGES)
    (tmp_path / "changes.csv").write_text(CHANGES)

    def run_command(command, *arguments, **files):
        given = {"pages": "pages.csv", "changes": "changes.csv", **files}
        history = [part for name, path in given.items() for part in (f"--{name}", path)]
        return run_here(tmp_path, command, *history, *arguments)

    return run_command


def test_a_replay_writes_its_crawls_and_its_result(run, tmp_path):
    """Round robin, one crawl in two seconds from 0 to 10, worked by hand."""
    answer = run(
        "replay",
        *("--bandwidth", "0.5/s", "--policy", "round_robin", "--start", "0", "--end", "10", "--measure-from", "4"),
        *("--crawls", "out.csv", "--json", "out.json"),
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    # The slot at 10 is used: by page 17, which has no end.
    crawls = "page,time,changed\n4,2.0,1\n30,4.0,1\n4,6.0,0\n17,8.0,0\n17,10.0,0\n"
    assert (tmp_path / "out.csv").read_text() == crawls
    result = json.loads((tmp_path / "out.json").read_text())
    assert result.pop("seconds") > 0
    # From 4 on: page 4 (weight 3) fresh for 6 of 6, page 30 for 2 of 6, page 17 for 5.5 of 5.5 seconds.
    assert result.pop("freshness") == pytest.approx((3 * 6 + 2 + 5.5) / (3 * 6 + 6 + 5.5))
    policy = {"policy": "round_robin", "estimator": None, "bandwidth": 0.5}
    assert result == {"crawls": 5, "changes_found": 2, **policy}
    assert answer.stdout.startswith("round_robin at 0.5/s: freshness 0.8644; 5 crawls found 2 changes (")


def test_the_default_policy_learns_from_compressed_files(run, tmp_path):
    """Files ending with .gz are read and written compressed; policy and estimator are the posterior."""
    for name, text in (("pages", PAGES), ("changes", CHANGES), ("signals", "page,time\n30,2.5\n30,2.75\n4,9\n")):
        with gzip.open(tmp_path / f"{name}.csv.gz", "wt") as file:
            file.write(text)
    files = {name: f"{name}.csv.gz" for name in ("pages", "changes", "signals")}
    answer = run("replay", "--bandwidth", "3600/h", "--crawls", "out.csv.gz", "--json", "out.json", **files)
    assert answer.returncode == 0, answer.stderr
    result = json.loads((tmp_path / "out.json").read_text())
    assert (result["policy"], result["estimator"], result["bandwidth"]) == ("posterior", "posterior", 1.0)
    with gzip.open(tmp_path / "out.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    # From the first birth, -5, to the last time in the history, 10.
    assert [float(row["time"]) for row in rows] == [-5.0 + j for j in range(1, 16)]
    assert {row["page"] for row in rows} == {"4", "17", "30"}


def test_several_policies_and_bandwidths_are_a_table(run, tmp_path):
    """A row for each, the numbers being those of single replays; what the frontier's picks are worth, too."""
    policies = ("--policy", "round_robin", "frontier:known", "--bandwidth", "0.5/s", "1x")
    times = ("--start", "0", "--end", "10")
    answer = run("replay", *policies, *times, "--json", "table.json")
    assert answer.returncode == 0, answer.stderr
    replays = json.loads((tmp_path / "table.json").read_text())["replays"]
    assert [one["policy"] for one in replays] == ["round_robin", "round_robin", "frontier", "frontier"]
    assert [one["bandwidth"] for one in replays] == pytest.approx([0.5, 0.3, 0.5, 0.3])
    head, *lines = [line.split() for line in answer.stdout.splitlines()]
    assert head[:5] == ["policy", "bandwidth", "freshness", "crawls", "found"]
    names = [[name, at] for name in ("round_robin", "frontier:known") for at in ("0.5/s", "0.3/s")]
    assert [line[:2] for line in lines] == names
    assert [line[2] for line in lines] == [f"{one['freshness']:.4f}" for one in replays]
    assert replays[0]["delay_longest"] == 4.0
    assert ["worth" in one for one in replays] == [False, False, True, True]
    assert all(0.95 < one["worth"] <= 1.0 for one in replays[2:])
    single = ("--bandwidth", "0.5/s", "--policy", "round_robin", *times, "--json", "one.json")
    assert run("replay", *single).returncode == 0
    assert json.loads((tmp_path / "one.json").read_text())["freshness"] == replays[0]["freshness"]


def test_a_row_for_each_visit_says_what_was_delivered_and_why_not(tmp_path):
    """A clock is noise once two pages have shown it; a word is a change; nothing else is needed than files."""
    rows = ["time,url,body,second"]
    for visit, page in product(range(6), range(3)):
        text = "milk" if (visit, page) == (5, 1) else "tea"
        bodies = [f"{page}-{visit}-{second}.html" for second in (0, 1)]
        for second, name in enumerate(bodies):
            clock = f"<i class=now>{100 * visit + 37 * second + page} s</i>"
            cup = f"<title>Cup</title><main><h1>Cup {page}</h1><p>Of {text} {page}</p></main>"
            (tmp_path / name).write_text(cup + clock)
        rows.append(f"{1e9 + 3600 * visit + page},http://a.example/cup/{page},{','.join(bodies)}")
    (tmp_path / "visits.csv").write_text("\n".join(rows) + "\n")
    detect = "detect", "--visits", "visits.csv"
    done = run_here(tmp_path, *detect, "--out", "out.csv", "--json")
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
    assert "18 visits, 4 delivered (3 first, 1 page)" in run_here(tmp_path, *detect).stdout
