"""`make demo` does what it says, fails in a sentence, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import children
from tests.waiting import wait_until


def start_demo(output, seconds, program="demo.py"):
    command = [sys.executable, children.ROOT / "example_project" / program, "--output", output]
    pipe, environment = subprocess.PIPE, {"DEMO_SECONDS": str(seconds)}
    return children.start(*command, environment=environment, cwd=output.parent, stdout=pipe, stderr=pipe)


def run_demo(output, seconds, program="demo.py"):
    """Run it to its end, and return what it printed."""
    process = start_demo(output, seconds, program)
    printed, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors + printed
    return printed


def refused(output, seconds, program="demo.py"):
    """Return what it says when it does not begin."""
    process = start_demo(output, seconds, program)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    return errors


def crawling(output):
    """Start it; when both sites have been asked for something, return it and the processes that it has started."""
    process = start_demo(output, 100)

    def are_asked():
        assert process.poll() is None, process.communicate()
        logs = list(output.glob("*.truth.jsonl"))
        return len(logs) == 2 and all('"kind":"request"' in log.read_text() for log in logs)

    wait_until(are_asked, 60.0)
    listing = children.run("ps", "-o", "pid=,args=", "--ppid", process.pid)
    return process, {int(line.split()[0]): line.split(maxsplit=1)[1] for line in listing.stdout.splitlines()}


def are_gone(pids):
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A run of 12 seconds, 20 with other releases (`make versions`): what it printed, and its folder."""
    output = tmp_path_factory.mktemp("demo") / "demo-output"
    return run_demo(output, os.environ.get("TEST_DEMO_SECONDS", 12)), output


@pytest.fixture(scope="module")
def last_line(demo):
    return json.loads(demo[0].splitlines()[-1])


def test_the_last_line_has_what_programs_rely_on(last_line):
    """The names of the contract are there, and nothing is missing or not a number."""
    shares = {"freshness", "freshness_in_turn"}
    rates = {"achieved_rate", "bandwidth"}
    counts = {"crawls", "changes_found", "changes_found_in_turn", "not_modified", "signals", "resolved", "dispatched"}
    assert shares | rates | counts | {"picture"} <= last_line.keys()
    assert all(isinstance(last_line[name], float) for name in shares | rates)
    assert all(isinstance(last_line[name], int) for name in counts)
    assert isinstance(last_line["picture"], str)


def test_both_crawls_keep_the_rate(last_line):
    """Over the measured half each sends what it may, unless the demo says that the machine was late."""
    assert last_line["bandwidth"] == 25.0
    rates = last_line["achieved_rate"], last_line["achieved_rate_in_turn"]
    assert max(rates) <= 1.06 * 25.0
    if last_line["void"]:
        pytest.skip(f"this machine was too busy for a crawl at 25/s: {rates}")
    assert min(rates) >= 23.0


def test_the_numbers_are_those_of_the_truth_log(demo, last_line):
    """Counted here once more, from the raw lines, crawls, 304s and changes are what the last line says."""
    log = (demo[1] / "crawlsched.truth.jsonl").read_text().splitlines()
    requests = [line for line in map(json.loads, log) if line["kind"] == "request" and "page" in line]
    assert last_line["crawls"] == len(requests)
    assert last_line["not_modified"] == sum(line["status"] == 304 for line in requests)
    changes = [line for line in requests if line["status"] == 200 and line["before"] not in (None, line["version"])]
    assert last_line["changes_found"] == len(changes)


def test_the_spider_gets_what_changed_and_nothing_twice(demo):
    """No page comes to the spider twice with the same text, and all that come are the site's own."""
    items = [json.loads(line) for line in (demo[1] / "crawlsched.changed_pages.jsonl").read_text().splitlines()]
    assert len(items) > 100
    assert len({(item["url"], item["text"]) for item in items}) == len(items)
    assert all("/private/" not in item["url"] for item in items)


def test_a_person_sees_progress_and_a_table(demo):
    """Lines with seconds come while it runs; then both sides stand side by side, and the sitemaps below."""
    lines = demo[0].splitlines()
    assert sum(line.strip().split(" ")[0].isdigit() and " s " in line for line in lines) >= 4
    for words in ("freshness, mean of the last 6 s", "changes found per 100", "304 Not Modified", "news (honest)"):
        assert any(words in line for line in lines)


@pytest.mark.parametrize("seconds", ["9.9", "soon", "nan", "1e9"])
def test_a_wrong_time_is_refused_in_a_sentence(tmp_path, seconds):
    """Nothing is started, and the message names the value and what is allowed."""
    said = f"demo: DEMO_SECONDS must be a number of seconds from 10 to 3000, got {seconds!r}.\n"
    assert refused(tmp_path / "demo-output", seconds) == said
    assert not (tmp_path / "demo-output").exists()


def test_an_unusable_output_folder_is_refused_in_a_sentence(tmp_path):
    """A file stands where the folder should be."""
    (tmp_path / "demo-output").write_text("mine")
    said = refused(tmp_path / "demo-output", 12)
    assert said.startswith(f"demo: the output folder {tmp_path / 'demo-output'} cannot be used: ")
    assert (tmp_path / "demo-output").read_text() == "mine"


@pytest.mark.parametrize(
    ("whom", "number", "code", "said"),
    [
        ("itself", signal.SIGINT, 130, "demo: interrupted; everything it started has ended.\n"),
        ("itself", signal.SIGTERM, 130, "demo: interrupted; everything it started has ended.\n"),
        ("crawl in_turn", signal.SIGKILL, 1, "ended by itself with exit code -9; "),
        ("living_site", signal.SIGKILL, 1, "ended by itself with exit code -9; "),
    ],
)
def test_whatever_ends_it_ends_everything_and_it_says_why(tmp_path, whom, number, code, said):
    """It is interrupted, or a process of its own dies: no trace back, and where one has died the end of its log."""
    process, running = crawling(tmp_path / "demo-output")
    assert len(running) == 4
    everything = {process.pid: "itself", **running}
    os.kill(next(pid for pid, arguments in everything.items() if whom in arguments), number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert errors.startswith("demo: ")
    assert said in errors
    assert are_gone(running)


def test_the_sites_do_not_outlive_a_killed_demo(tmp_path):
    """Even when it is killed outright, the sites see their standard input end and go."""
    process, running = crawling(tmp_path / "demo-output")
    sites = [pid for pid, arguments in running.items() if "living_site" in arguments]
    try:
        process.kill()
        process.communicate(timeout=60)
        assert len(sites) == 2
        wait_until(lambda: are_gone(sites))
    finally:
        for pid in running.keys() - set(sites):
            os.kill(pid, signal.SIGKILL)
