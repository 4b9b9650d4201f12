"""What the command line says to mistakes: what is wrong, what is allowed, what is like it; and it does nothing else."""

import gzip
import re
import shlex
import shutil
import subprocess
import time
import tomllib
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest

from crawlsched.store import Store
from tests import simulated
from tests.commands import failed, run_here

TABLE = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text())
SHORT = {
    "CRAWL": ("--database", "sqlite:///crawl.db"),
    "EMPTY": ("--database", "sqlite:///empty.db"),
    "HISTORY": ("--pages", "pages.csv", "--changes", "changes.csv"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A collection of twelve pages, its backup, one without a page, and files of each kind."""
    folder = tmp_path_factory.mktemp("mistakes")
    with closing(Store.open(f"sqlite:///{folder}/crawl.db", "news")) as store:
        simulated.crawl(store, time.time(), n_pages=12, days=0.2, hosts=("a.example",))
    Store.open(f"sqlite:///{folder}/empty.db", "news").close()
    run_here(folder, "db", "backup", "backup.db", "--database", "sqlite:///crawl.db")
    for name, text in {
        "pages.csv": "end,page,birth,change_rate\n10,30,0,0.2\n10,4,-5,0.1\n",
        "changes.csv": "time,page\n6,30\n1,4\n",
        "nothing.csv": "page,birth,end\n",
        "never.csv": "page,time\n",
        "text.csv.gz": "page,birth,end\n",
        "text.db": "no database" * 100,
        "urls.txt": "http://a.example/1\n",
        "half.csv": "url,changed\n",
    }.items():
        (folder / name).write_text(text)
    (folder / "cut.gz").write_bytes(gzip.compress(b"http://a.example/1\n" * 100)[:40])
    return folder


def typed(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run what stands in the table."""
    words = (SHORT.get(word, (word,)) for word in shlex.split(line))
    return run_here(folder, *chain.from_iterable(words))


def said_to(folder: Path, line: str) -> str:
    """Return the one sentence with which a command fails, having written nothing."""
    before = names(folder)
    sentence = failed(typed(folder, line))
    assert names(folder) == before
    return sentence


def names(folder: Path) -> set[str]:
    """Return the files of a folder but those that SQLite has beside a database."""
    return {file.name for file in folder.iterdir() if not re.search("-(wal|shm)$", file.name)}


def is_said(expected: str, sentence: str) -> bool:
    return sentence == expected if expected.endswith(".") else expected in sentence


@pytest.mark.parametrize("line", TABLE["exit_code_1"])
def test_a_mistake_is_answered_with_one_sentence(folder, line):
    """On standard error; and no file is there afterwards that was not before."""
    expected = TABLE["exit_code_1"][line]
    sentence = said_to(folder, line)
    assert is_said(expected, sentence), sentence


@pytest.mark.parametrize("name", ["pages.csv", "changes.csv"])
def test_of_a_history_the_sentence_names_the_file_and_the_place(folder, tmp_path, name):
    """What is wrong in it, and in which line or of which page."""
    for file in ("pages.csv", "changes.csv"):
        shutil.copy(folder / file, tmp_path)
    for text, expected in TABLE[name.replace(".", "_")].items():
        (tmp_path / name).write_text(text)
        sentence = said_to(tmp_path, "replay HISTORY --bandwidth 1")
        assert is_said(expected, sentence), sentence


@pytest.mark.parametrize("line", TABLE["exit_code_2"])
def test_what_no_command_understands_is_answered_with_what_is_like_it(folder, line):
    """Commands, actions, options and their values."""
    answer = typed(folder, line)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert TABLE["exit_code_2"][line] in answer.stderr
