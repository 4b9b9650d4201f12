"""The processes of the demo: they are started, watched, and ended in any case."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType

LAST_LINES = 15


class Failure(Exception):
    """The demo cannot go on; the message is a sentence with the reason."""


class Child:
    """One process whose output goes into a log file."""

    def __init__(self, name: str, command: list[str], folder: Path, log: Path, read_stdout: bool = False) -> None:
        self.name, self.log, self.is_killed = name, log, False
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.PIPE,  # closed when we end, in any way; then the sites end, too
                stdout=subprocess.PIPE if read_stdout else file,
                stderr=file,
                start_new_session=True,  # only we get Ctrl-C, and then end the others in order
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )

    def check(self) -> None:
        """Raise Failure if the process has ended by itself."""
        if not self.is_killed and (code := self.process.poll()) is not None:
            raise Failure(f"{self.name} ended by itself with exit code {code}; {self.last_lines()}")

    def first_line(self, timeout: float) -> str:
        """Return the first line that the process prints, which must be read."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(timeout):
                raise Failure(f"{self.name} did not start within {timeout:g} s; {self.last_lines()}")
            line = self.process.stdout.readline()
        if not line:  # its output has ended, so the process has ended, too
            self.wait(timeout)
            self.check()
        return line.decode().strip()

    def kill(self) -> None:
        """Kill the process, as part of what the demo shows."""
        self.is_killed = True
        self.process.kill()
        self.process.wait()

    def terminate(self) -> None:
        """Ask the process to end, even if it is stopped."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGCONT)

    def wait(self, timeout: float) -> int:
        """Return the exit code of a process that was asked to end; kill it, and say so, when it does not."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failure(f"{self.name} did not end within {timeout:g} s of SIGTERM; {self.last_lines()}") from None

    def last_lines(self) -> str:
        """Return the end of the log for a message."""
        lines = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        if not lines:
            return f"its log {self.log} is empty"
        return f"the last lines of {self.log} are:\n" + "\n".join(f"    {line}" for line in lines)


class Children:
    """All processes of the demo; leaving the block ends those that still run."""

    def __init__(self) -> None:
        self._children: list[Child] = []

    def start(self, name: str, command: list[str], folder: Path, log: Path, read_stdout: bool = False) -> Child:
        """Start a process."""
        child = Child(name, command, folder, log, read_stdout)
        self._children.append(child)
        return child

    def check(self) -> None:
        """Raise Failure if one has ended."""
        for child in self._children:
            child.check()

    def end(self) -> None:
        """End those that still run."""
        for child in self._children:
            child.terminate()
        deadline = time.monotonic() + 10.0
        for child in self._children:
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()
            for stream in (child.process.stdin, child.process.stdout):
                if stream is not None:
                    stream.close()

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
