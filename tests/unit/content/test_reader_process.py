"""A process that reads bodies gives what reading here gives, and its end costs one answer."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from crawlsched.change_detection import Recipe
from crawlsched.change_detection.recipes import RECIPE_NAMES
from crawlsched.content.reader_process import ReaderProcess, can_be_sent
from crawlsched.content.reading import Body, Content, is_quick, read_content
from tests import children

PAGE = "<html><title>Tea</title><main>{}</main><script>1</script></html>"
TEXT = "".join(
    f"<p class=price>Tea number {number} costs {number} pounds today.<small>net</small>" for number in range(90)
)


def page(text: str = TEXT, url: str = "http://127.0.0.1/tea") -> Body:
    return Body(PAGE.format(text).encode(), "text/html; charset=utf-8", "utf-8", url)


def reading(body: Body, by: Recipe, **options: object) -> partial[Content]:
    return partial(read_content, body, by, **options)


@pytest.fixture
def reader() -> Iterator[ReaderProcess]:
    reader = ReaderProcess()
    yield reader
    reader.stop()


@pytest.mark.parametrize(
    "by", [*map(Recipe, RECIPE_NAMES), Recipe(keep=[".price"], drop=["small"])], ids=lambda by: by.id
)
def test_another_process_reads_what_this_one_reads(reader: ReaderProcess, by: Recipe) -> None:
    assert can_be_sent(by)
    read = reading(page(), by, text_bytes=1_000, address="http://127.0.0.1/called")
    here, there = read(), reader.read(read)
    assert there.fingerprint == here.fingerprint
    assert (there.text, there.packed_text, there.is_html, there.address) == (
        here.text,
        here.packed_text,
        here.is_html,
        here.address,
    )
    assert (there.text_sketch, there.likeness) == (here.text_sketch, here.likeness)
    assert (there.seen is None) == (here.seen is None)
    if there.seen is not None and here.seen is not None:
        assert (there.seen.page, there.seen.trace.packed()) == (here.seen.page, here.seen.trace.packed())
    known = reader.read(reading(page(), by, before=here.fingerprint.digest))
    assert known.text is None


def test_a_function_of_the_users_is_not_sent() -> None:
    """It may know what only this process knows."""
    assert not can_be_sent(Recipe(os.path.basename))


def test_what_may_take_long_is_not_read_on_the_crawls_own_thread() -> None:
    """However short: what holds more than it shows, and what is looked at again and again."""

    def is_read(data: bytes, **options: object) -> bool:
        return is_quick(Body(data, "text/html", None, "http://a/"), Recipe(**options))  # type: ignore[arg-type]

    page = b"<p>Tea</p>" * 1_000
    assert is_read(page)
    assert is_read(page, keep=["main > p"])
    assert not is_read(gzip.compress(page))
    assert not is_read(page, keep=["main > p ~ p"])
    assert not is_read(page * 2)


def test_what_cannot_be_read_costs_its_own_answer(reader: ReaderProcess) -> None:
    by = Recipe("blocks")
    with pytest.raises(RuntimeError, match=r"http://127.0.0.1/tea could not be read \(TypeError"):
        reader.read(reading(page(), by, text_bytes="many"))
    assert reader.read(reading(page(), by)).text is not None


def test_when_the_process_is_killed_the_next_body_is_read_by_another(reader: ReaderProcess) -> None:
    by = Recipe("visible_text")
    reader.read(reading(page(), by))
    assert reader._running is not None
    pid = reader._running[0].pid
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(reader.read, reading(page("Milk " * 400_000), by))
        time.sleep(0.2)  # it waits for an answer now, or for the rest of its question to be taken
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="the process that reads large pages has ended"):
            answer.result(20)
    assert reader.read(reading(page(), by)).text is not None
    assert reader._running[0].pid != pid


HALF = """#!{python}
import os, pickle, struct, sys
answer = pickle.dumps((None, "x" * 100_000))
os.write(int(sys.argv[-1]), struct.pack("!i", len(answer)) + answer[:-10])
"""


def test_half_of_an_answer_is_none_and_nobody_waits_for_the_rest(
    reader: ReaderProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends while it answers, as when the system has no memory left."""
    program = tmp_path / "python"
    program.write_text(HALF.format(python=sys.executable))
    program.chmod(0o755)
    by = Recipe("visible_text")
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(program))
        with ThreadPoolExecutor(1) as thread:
            answer = thread.submit(reader.read, reading(page(), by))
            with pytest.raises(RuntimeError, match="the process that reads large pages has ended"):
                answer.result(20)
    assert reader.read(reading(page(), by)).text is not None


OWNER = """
import sys
from functools import partial
from crawlsched.change_detection import Recipe
from crawlsched.content.reader_process import ReaderProcess
from crawlsched.content.reading import Body, read_content

reader = ReaderProcess()
reader.read(partial(read_content, Body(b"<p>Tea", "text/html", "utf-8", "http://127.0.0.1/"), Recipe("blocks")))
print(reader._running[0].pid, flush=True)
sys.stdin.read()
"""


def test_the_process_ends_when_the_crawl_is_killed() -> None:
    owner = children.start(sys.executable, "-c", OWNER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    for _ in range(500):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":  # nobody's child any more
                    return
        except FileNotFoundError:
            return
        time.sleep(0.02)
    raise AssertionError(f"Process {pid} still runs ten seconds after the one that had started it.")
