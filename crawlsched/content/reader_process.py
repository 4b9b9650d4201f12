"""A process that reads bodies: Python runs one thread at a time, and reading a large page takes milliseconds."""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache, partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Lock

from crawlsched.change_detection import Recipe
from crawlsched.content.reading import Content, read_content

__all__ = ["ReaderProcess", "can_be_sent"]


class ReaderProcess:
    """Reads bodies, one at a time, in a process that starts when it is asked.

    It ends when nobody is left who could ask, however this process ends.
    """

    def __init__(self) -> None:
        self._running: tuple[subprocess.Popen[bytes], Connection] | None = None
        self._reading = Lock()

    def read(self, read: partial[Content]) -> Content:
        """Return the result of `read_content` with a recipe that `can_be_sent`; any thread may wait for it."""
        body, recipe = read.args
        with self._reading:
            self._running = _, answers = self._running or _started()
            try:
                answers.send((pickle.dumps(recipe), body, read.keywords))
                content, failed = answers.recv()
            except (EOFError, OSError):
                content, failed = None, "the process that reads large pages has ended"
                self.stop()
        if content is None:
            raise RuntimeError(f"{body.url} could not be read ({failed}).")
        return content  # type: ignore[no-any-return]

    def stop(self) -> None:
        """End it: what it reads is wanted no more."""
        running, self._running = self._running, None
        if running is not None:
            process, _ = running
            process.kill()
            process.wait()


def can_be_sent(recipe: Recipe) -> bool:
    """Whether another process reads by a recipe as this one does: a function of the user's may know more here."""
    return not callable(recipe.method)


def _started() -> tuple[subprocess.Popen[bytes], Connection]:
    answers, questions = Pipe()
    with questions:
        process = subprocess.Popen(
            [sys.executable, "-m", "crawlsched.content.reader_process", str(questions.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=2,  # what a library prints
            pass_fds=[questions.fileno()],
            start_new_session=True,  # Ctrl-C is the crawl's, which ends it in its own time
        )
    return process, answers


@lru_cache
def _unpacked(packed: bytes) -> Recipe:
    recipe: Recipe = pickle.loads(packed)
    return recipe


def _serve(questions: Connection) -> None:
    with suppress(EOFError, OSError):  # nobody is left who could ask
        while True:
            packed, body, options = questions.recv()
            try:
                content = read_content(body, _unpacked(packed), **options)
                _ = content.text_sketch  # made here, and not when the crawl asks for it
                found = content, ""
            except Exception as error:
                found = None, repr(error)  # type: ignore[assignment]
            questions.send(found)


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
