"""`crawlsched db shards`: who crawls which shard."""

import json
import os
import socket

from crawlsched.store import Store
from tests.commands import run_here
from tests.integration.refresh.processes import HOSTS, N_SHARDS, look_until, process, row
from tests.parts import ask


def test_each_shard_has_a_row(shared, tmp_path) -> None:
    """Of a process that lives; what waits for a shard is counted, and an owner that is gone is none."""
    command = "db", "shards", "--database", shared.database.text, "--collection", shared.name
    with process(shared) as refresher:
        for n, host in enumerate(HOSTS[:3], 1):
            for page in range(10 * n):
                ask(refresher, f"http://{host}/{page}")
        look_until(refresher, lambda: sum(row.n_pages for row in shared.look().shards.values()) == 60)
        report = json.loads(run_here(tmp_path, *command, "--json").stdout)
        said = run_here(tmp_path, *command).stdout
    me = f"{socket.gethostname()}:{os.getpid()}"
    assert [(r["shard"], r["owner"], r["pages"]) for r in report["shards"]] == [
        *((shard, me, 10 * (shard + 1)) for shard in range(3)),
        (3, me, 0),
    ]
    assert f"{N_SHARDS} shards on 1 process; 1000/s for all" in said

    shared.hand_over([row(f"http://{HOSTS[3]}/", 1)])
    ended = json.loads(run_here(tmp_path, *command, "--json").stdout)
    assert {r["owner"] for r in ended["shards"]} == {None}
    assert [r["waiting"] for r in ended["shards"]] == [0, 0, 0, 1]


def test_a_collection_of_one_process_has_no_shards(database, shared, tmp_path) -> None:
    """It says so, and how to make one that has; of a single shard there is no table."""
    Store.open(database.text, "alone", upgrade=False).close()
    said = run_here(tmp_path, "db", "shards", "--database", database.text, "--collection", "alone").stdout
    assert said == "alone: no shards; one process crawls it (CRAWLSCHED_SHARDS makes one that several share)\n"
    named = "--collection", shared.name, "--shard", "1"
    refused = run_here(tmp_path, "db", "shards", "--database", database.text, *named)
    assert refused.returncode == 1
    assert "`crawlsched db shards` is about all shards" in refused.stderr
