"""A process that reads bodies: Python runs one thread at a time, and reading a large page takes milliseconds."""

from __future__ import annotations

import fcntl
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache, partial
from threading import Lock

from crawlsched.change_detection import Recipe
from crawlsched.content.reading import Content, read_content

__all__ = ["ReaderProcess", "can_be_sent"]

# With each piece that is read or written a thread waits for its turn anew, five milliseconds where the crawl is busy.
_BUFFERED = 1 << 20


class ReaderProcess:
    """Reads bodies in the order asked, one at a time, in a process that starts when it is asked.

    It ends with its input, which the system closes however this process ends.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        # Who has asked listens before the next one asks, so that answers come to whom they are for.
        self._asking, self._listening = Lock(), Lock()

    def read(self, read: partial[Content]) -> Content:
        """Return the result of `read_content` with a recipe that `can_be_sent`; any thread may wait for it."""
        body, recipe = read.args
        with self._asking:
            process = self._process = self._process or _started()
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(OSError, ValueError):  # it has ended, and gives no answer
                pickle.dump((pickle.dumps(recipe), body, read.keywords), process.stdin, pickle.HIGHEST_PROTOCOL)
                process.stdin.flush()
            self._listening.acquire()
        try:
            content, failed = pickle.load(process.stdout)
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):  # killed while it answers, it leaves half of it
            content, failed = None, "the process that reads large pages has ended"
            self._end(process)
        finally:
            self._listening.release()
        if content is None:
            raise RuntimeError(f"{body.url} could not be read ({failed}).")
        return content  # type: ignore[no-any-return]

    def stop(self) -> None:
        """End it: what it reads is wanted no more."""
        if self._process is not None:
            self._end(self._process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if self._process is process:
            self._process = None
        with suppress(OSError), process:  # what it has not taken is lost
            process.kill()


def can_be_sent(recipe: Recipe) -> bool:
    """Whether another process reads by a recipe as this one does: a function of the user's may know more here."""
    return not callable(recipe.method)


def _started() -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "crawlsched.content.reader_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=_BUFFERED,
        start_new_session=True,  # Ctrl-C is the crawl's, which ends it in its own time
    )
    for pipe in (process.stdin, process.stdout) if hasattr(fcntl, "F_SETPIPE_SZ") else ():
        with suppress(OSError):  # of a user who has too many already
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _BUFFERED)  # type: ignore[arg-type]
    return process


@lru_cache
def _unpacked(packed: bytes) -> Recipe:
    recipe: Recipe = pickle.loads(packed)
    return recipe


def _serve() -> None:
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    with suppress(EOFError, pickle.UnpicklingError):
        while True:
            packed, body, options = pickle.load(questions)
            try:
                content = read_content(body, _unpacked(packed), **options)
                _ = content.text_sketch  # made here, and not when the crawl asks for it
                found = content, ""
            except Exception as error:
                found = None, repr(error)  # type: ignore[assignment]
            pickle.dump(found, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()


if __name__ == "__main__":
    _serve()
