"""A process that reads bodies: Python runs one thread at a time, and reading a large page takes milliseconds."""

from __future__ import annotations

import fcntl
import os
import pickle
import subprocess
import sys
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from functools import lru_cache, partial
from threading import Lock, Thread

from crawlsched.change_detection import Recipe, UserFunction
from crawlsched.content.reading import Content, read_content

__all__ = ["ReaderProcess", "can_be_sent"]

_END_WITHIN = 5.0
_KEPT_RECIPES = 256
# With each piece that is read or written a thread waits for its turn anew, five milliseconds where the crawl is busy.
_BUFFERED = 1 << 20


class ReaderProcess:
    """Reads bodies in the order asked, one at a time, in a process of its own, which ends when its input is closed.

    The system does that however this process ends. It starts when it is asked, if it does not run.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._asking = Lock()

    def read(self, read: partial[Content]) -> Content:
        """Return what a call of `read_content` gives; waits for it.

        Several threads may ask, so that the process need not wait for the next question.

        Parameters
        ----------
        read : partial
            Of `read_content`, with body and recipe; the recipe is one that `can_be_sent`.

        Raises
        ------
        RuntimeError
            If reading failed, or the process ended meanwhile.
        """
        body, recipe = read.args
        answer: Future[tuple[Content | None, str]] = Future()
        with self._asking:
            if self._process is None:
                self._start()
            self._waiting.append(answer)
            with suppress(OSError):  # it has ended: who listens says so to all that wait
                pickle.dump((_packed(recipe), body, read.keywords), self._questions, pickle.HIGHEST_PROTOCOL)
                self._questions.flush()
        content, failed = answer.result()
        if content is None:
            raise RuntimeError(f"{body.url} could not be read ({failed}).")
        return content

    def _start(self) -> None:
        self._process = process = subprocess.Popen(
            [sys.executable, "-m", "crawlsched.content.reader_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=_BUFFERED,
            start_new_session=True,  # Ctrl-C is the crawl's, which ends it in its own time
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._questions = process.stdin
        for pipe in (process.stdin, process.stdout) if hasattr(fcntl, "F_SETPIPE_SZ") else ():
            with suppress(OSError):  # of a user who has too many already
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _BUFFERED)
        self._waiting: deque[Future[tuple[Content | None, str]]] = deque()
        Thread(target=self._listen, args=(process, self._waiting), name="crawlsched-reader", daemon=True).start()

    def _listen(self, process: subprocess.Popen[bytes], waiting: deque[Future[tuple[Content | None, str]]]) -> None:
        assert process.stdout is not None
        # What was killed while it answered leaves half of an answer.
        with suppress(EOFError, OSError, pickle.UnpicklingError), process.stdout as answers:
            while True:
                found = pickle.load(answers)
                waiting.popleft().set_result(found)
        with self._asking:
            self._process = None
            for answer in waiting:
                answer.set_result((None, "the process that reads large pages has ended"))
            with suppress(OSError):  # of what it has not taken
                self._questions.close()
        process.wait()

    def stop(self) -> None:
        """Let it end."""
        process = self._process
        if process is None:
            return
        with suppress(OSError):  # it has ended already
            self._questions.close()
        try:
            process.wait(_END_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()


def can_be_sent(recipe: Recipe) -> bool:
    """Whether another process reads by a recipe as this one does: a function of the user's may know more here."""
    return not isinstance(recipe, UserFunction) and _packed(recipe) is not None


@lru_cache(_KEPT_RECIPES)
def _packed(recipe: Recipe) -> bytes | None:
    try:
        return pickle.dumps(recipe)
    except (pickle.PicklingError, TypeError, AttributeError):  # as of a class within a function
        return None


@lru_cache(_KEPT_RECIPES)
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
