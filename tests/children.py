"""Processes that tests start: they feel signals wherever the tests run, and end with the test however that ends."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The tree that these tests belong to, wherever the environment's own installation lies.
ROOT = Path(__file__).parents[1]

#: Seconds; a command that takes longer hangs.
TIMEOUT = 120.0
#: Seconds in which a process that is asked to end may end what it has itself started.
GRACE = 10.0

_started: list[Any] = []


def start(
    *command: object, environment: Mapping[str, str | None] | None = None, **options: Any
) -> subprocess.Popen[str]:
    """Start a process in text mode; it imports this tree.

    Parameters
    ----------
    *command : object
        Program and arguments.
    environment : mapping of str to str or None, optional
        What it has beside, or instead of, the variables of the tests; None: not at all. `PYTHONPATH` is the tree unless
        it stands here.
    **options
        For `subprocess.Popen`; without `stdin` it has none.
    """
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    process: subprocess.Popen[str] = subprocess.Popen(
        [str(part) for part in command],
        env={name: value for name, value in variables.items() if value is not None},
        text=True,
        # What it starts ends with it, and Ctrl-C reaches the tests alone, which then end it.
        start_new_session=True,
        **{"stdin": subprocess.DEVNULL, **options},
    )
    watch(process)
    return process


def watch(process: Any) -> None:
    """End a process with the test that has started it."""
    _started.append(process)


def run(
    *command: object, timeout: float = TIMEOUT, input: str | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and return its exit code and what it printed; `options` as for `start`."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        pipes["stdin"] = subprocess.PIPE
    process = start(*command, **{**pipes, **options})
    try:
        stdout, stderr = process.communicate(input, timeout=timeout)
    finally:
        end(process)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def output_of(*command: object, **options: Any) -> str:
    """Run a command that has to succeed, and return what it printed; `options` as for `run`."""
    done = run(*command, **options)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def free_port() -> int:
    """Find a port of 127.0.0.1 at which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def serve(module: str, *arguments: object) -> int:
    """Start a site of the tests, and return its port once it serves."""
    port = free_port()
    site = start(sys.executable, "-m", module, port, *arguments, stdout=subprocess.PIPE)
    assert site.stdout.readline() == "serving\n"
    return port


def end(process: Any) -> None:
    """End a process if it still runs, and all that it has started."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None and not pipe.closed:
            pipe.close()
    if process in _started:
        _started.remove(process)


def running() -> list[Any]:
    """Return what was started, and neither ended nor was waited for, in the order of its start."""
    return [process for process in _started if process.returncode is None]


@contextmanager
def all_ended() -> Iterator[None]:
    """End at the end of the block what was started in it and still runs."""
    before = list(_started)
    try:
        yield
    finally:
        for process in [process for process in _started if process not in before]:
            end(process)


def let_children_feel_signals() -> None:
    """See that what is started from now on feels Ctrl-C, also where this process was started to ignore it.

    Shells start what runs behind (`make test &`) like that, and so do some runners; what they start inherits it.
    A handler is not inherited. Ours does nothing, so that this process goes on to ignore what it was told to.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
