"""What `status` says of the processes that share a collection."""

from __future__ import annotations

import pytest

from crawlsched.cli.members import say_sharing


@pytest.mark.parametrize(("granted", "said"), [(0.0, "0/s"), (39.999_999_99, "40/s"), (1 / 3, "0.333/s")])
def test_what_is_granted_is_said_in_three_digits(granted: float, said: str) -> None:
    """Nothing is granted to a process that joins, and rates of several add up to a number of many digits."""
    member = {"host": "a", "pid": 1, "spider": "news", "granted": granted, "renewed": 0.5}
    shared = {
        "n_shards": 1,
        "rate": 40.0,
        "granted": granted,
        "members": [member],
        "shards": [{"member": "m"}],
        "threshold_spread": None,
        "waiting": {"n": 0, "oldest": None},
    }
    first = say_sharing(shared)[0]
    assert first == f"  1 shards on 1 process, all of them owned; 40/s for all, {said} granted"
