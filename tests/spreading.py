"""Which tests run in which of several processes: crawls wait for the clock beside tests that compute.

There are more processes than cores. One half takes the crawls, a file at a time: they wait most of the time. The other
half takes what computes, and gives way whenever a crawl wants a core, so that no crawl is late. Where one kind has run
out, its half helps with the other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

#: Folders whose tests start crawls, commands or sites and wait for them. A new test there counts without a word.
CRAWLS = ("tests/acceptance/", "tests/integration/")
#: Folders of integration whose tests need databases and no crawl: they compute, and wait for no clock.
DATABASES = ("tests/migrations/", "tests/integration/store/", "tests/integration/collection/")
#: Files whose tests measure over many seeded runs, or try many inputs.
STATISTICS = ("tests/papers/test_figures", "tests/fuzz/")
#: Files whose tests start the demos and the wheel in environments of their own, as a newcomer does.
PROGRAMS = ("tests/acceptance/test_demo", "tests/acceptance/test_wheel")

# What computes longest, so that it is not begun last.
_LONG = (
    "tests/papers/",
    "tests/fuzz/",
    "tests/unit/simulation/",
    *DATABASES,
    "tests/unit/planner/",
    "tests/unit/frontier/",
    "tests/unit/change_detection/test_kinds_of_change.py",
)

# How much less than the crawls the other half gets of a core that both want; Unix's scale goes to 19.
_NICENESS = 5


def kind_of(path: str) -> str:
    """Name the kind of a test by its file: "databases", "crawls", "statistics" or ""."""
    for kind, places in (("databases", DATABASES), ("crawls", CRAWLS), ("statistics", STATISTICS)):
        if path.startswith(places):
            return kind
    return ""


def mark(item: pytest.Item) -> None:
    """Give a test the mark of its place, which `make test` and `make test-quick` look at."""
    kind = kind_of(item.nodeid)
    if kind in ("crawls", "statistics"):
        item.add_marker(kind)
    if item.nodeid.startswith(PROGRAMS):
        item.add_marker("programs")


def takes_crawls(worker: str) -> bool:
    """Tell whether a process, "gw0" and so on, is of the half that takes crawls."""
    return int(worker.removeprefix("gw")) % 2 == 0


def give_way() -> None:
    """Let a process of the other half, and what it starts, give way to crawls."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None and not takes_crawls(worker):
        os.nice(_NICENESS)


class SideBySide(LoadScopeScheduling):
    """Crawls in one half of the processes, a file at a time; in the other what computes, longest first."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        wanted = takes_crawls(node.gateway.id)
        self.workqueue.move_to_end(min(self.workqueue, key=lambda scope: self._rank(scope, wanted)), last=False)
        super()._assign_work_unit(node)

    @staticmethod
    def _rank(path: str, crawls_wanted: bool) -> tuple[bool, bool]:
        """Rank what waits: first what is wanted; of what computes, what takes long. Equals keep their order."""
        is_crawl = kind_of(path) == "crawls"
        return is_crawl is not crawls_wanted, not path.startswith(_LONG)
