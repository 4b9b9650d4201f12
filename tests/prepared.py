"""Crawls in processes of their own that have loaded Scrapy and the add-on already.

They are forked from one process that has loaded both, which spares each crawl two thirds of its processor time. What is
about the start itself, such as what is loaded and by which command, is tested with `tests.children`.
"""

import atexit
import gc
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import children

_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(["tests.loaded"])


class Prepared:
    """A process as `subprocess.Popen` shows it, without pipes.

    Parameters
    ----------
    arguments : sequence of str
        What follows `python -m scrapy`.
    folder : Path
        Where it runs; modules there can be imported.
    log : Path
        What it prints is added to this file.
    """

    stdin = stdout = stderr = None

    def __init__(self, arguments: Sequence[str], folder: Path, log: Path) -> None:
        self.args = ["scrapy", *arguments]
        self._process = _FORKED.Process(target=_crawl, args=(self.args, folder, log, dict(os.environ)))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        children.watch(self)

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _crawl(arguments: list[str], folder: Path, log: Path, environment: Mapping[str, str]) -> None:
    """Do what `python -W error -m scrapy` does, in a session of its own."""
    assert "tests.loaded" in sys.modules, "tests.loaded cannot be imported: run the tests at the top of the checkout"
    os.setsid()
    with open(log, "a") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    os.chdir(folder)
    path = [str(folder), str(children.ROOT)]
    os.environ.clear()
    os.environ.update(environment, PYTHONPATH=os.pathsep.join(path))
    time.tzset()
    sys.path[:0] = path
    sys.argv = arguments
    sys.warnoptions = ["error"]
    warnings.simplefilter("error")
    gc.set_threshold(10_000)
    try:
        runpy.run_module("scrapy", run_name="__main__", alter_sys=True)
    finally:
        # As an interpreter that ends does, which a forked process does not.
        atexit._run_exitfuncs()
        gc.collect()
