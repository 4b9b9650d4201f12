"""Which tests run in which of several processes: crawls wait for the clock beside tests that compute.

There are more processes than cores. Two of three take the crawls, a file at a time: they wait most of the time. The
others take what computes, and give way whenever a crawl wants a core, so that no crawl is late. Where one kind has run
out, its processes help with the other.
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
#: Files whose tests start the demos, the tutorial or environments of their own, as a newcomer does.
PROGRAMS = tuple(f"tests/acceptance/test_{name}" for name in ("demo", "tutorial", "wheel"))

# What takes longest, so that it is not begun last.
_LONG = (
    "tests/integration/addon/",
    "tests/integration/content/test_what_counts_as_a_change.py",
    "tests/integration/receiver/test_receiver.py",
    "tests/integration/refresh/test_failing_hosts.py",
    "tests/integration/sources/test_sitemaps.py",
    "tests/papers/",
    "tests/fuzz/",
    "tests/unit/simulation/",
    *DATABASES,
    "tests/unit/planner/",
    "tests/unit/frontier/",
    "tests/unit/change_detection/test_kinds_of_change.py",
)

# How much less than the crawls the others get of a core that both want; Unix's scale goes to 19.
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
    if "postgresql" in item.name or "postgresql_server" in getattr(item, "fixturenames", ()):
        item.add_marker("postgresql")


def takes_crawls(worker: str) -> bool:
    """Tell whether a process, "gw0" and so on, is of those that take crawls."""
    return int(worker.removeprefix("gw")) % 3 != 1


def give_way() -> None:
    """Let a process that computes, and what it starts, give way to crawls."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None and not takes_crawls(worker):
        os.nice(_NICENESS)


class SideBySide(LoadScopeScheduling):
    """Crawls in two of three processes, a file at a time; in the others what computes; what takes long goes first."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        wanted = takes_crawls(node.gateway.id)
        self.workqueue.move_to_end(min(self.workqueue, key=lambda scope: self._rank(scope, wanted)), last=False)
        super()._assign_work_unit(node)

    @staticmethod
    def _rank(path: str, crawls_wanted: bool) -> tuple[bool, bool]:
        """Rank what waits: first what is wanted, and of that what takes long. Equals keep their order."""
        is_crawl = kind_of(path) == "crawls"
        return is_crawl is not crawls_wanted, not path.startswith(_LONG)
