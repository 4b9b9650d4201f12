"""One shape of the command line: what holds for every command, and what is said to mistakes.

That is: what is wrong, what is allowed, what is like it; and nothing else is done.
"""

import argparse
import json
import re
import shlex
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

import pytest

import crawlsched.cli
from crawlsched.cli.parsing import CommandParser
from crawlsched.store import Store
from tests import simulated
from tests.commands import failed, run_here

URL = "http://a.example/page/3"


def leaves(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Give every command, and those below it."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield words
    for action in below:
        for name, inner in action._name_parser_map.items():
            yield from leaves(inner, (*words, name))


def all_commands() -> list[tuple[str, ...]]:
    parser = CommandParser(prog="crawlsched")
    crawlsched.cli.add_commands(parser)
    return sorted(leaves(parser))


# What makes a command do something in a folder with crawl.db and the files below; those of others would be refused.
ARGUMENTS = {
    "bandwidth": None,  # needs a running crawl
    "changes": None,
    "check": None,
    "db backup": "copy.db",
    "db copy": "sqlite:///copied.db sqlite:///another.db",
    "db restore": "backup.db --yes",
    "detect": "--visits visits.csv",
    "export": "out",
    "forget": "http://a.example/9 --yes",
    "import": "urls.txt",
    "recrawl": URL,
    "replay": "--pages pages.csv --changes changes.csv --bandwidth 0.1/s --policy round_robin",
    "db split": None,  # on PostgreSQL only
    "signal": URL,
    "simulate": "list",
    "web": None,
    "why": URL,
}
WITHOUT_DATABASE = ("db copy", "detect", "replay", "simulate")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A collection of twelve pages, its backup, others without a page, an empty database, and files of each kind."""
    folder = shutil.copytree(Path(__file__).with_name("files"), tmp_path_factory.mktemp("shape") / "files")
    with closing(Store.open(f"sqlite:///{folder}/crawl.db", "news")) as store:
        simulated.crawl(store, time.time(), n_pages=12, days=0.2, hosts=("a.example",))
    for name, collection in (("empty", "news"), ("two", "news"), ("two", "shops")):
        Store.open(f"sqlite:///{folder}/{name}.db", collection).close()
    run_here(folder, "db", "backup", "backup.db", "--database", "sqlite:///crawl.db")
    run_here(folder, "db", "upgrade", "--database", "sqlite:///copied.db")
    return folder


@pytest.mark.parametrize("command", all_commands(), ids=" ".join)
def test_each_command_has_help_an_example_json_and_sentences(command, folder):
    """Its help says what it does and ends with an example that it understands; its JSON is one object, or a file."""
    name = " ".join(command)
    helped = run_here(folder, *command, "--help")
    assert helped.returncode == 0
    assert "--json [FILE]" in helped.stdout
    _, found, example = helped.stdout.partition("\nexample")
    assert found, f"The help of {name} has no example."
    lines = [line.strip().partition(" #")[0].partition(" > ~")[0] for line in example.strip().split("\n")[1:]]
    lines = lines[: lines.index("") if "" in lines else None]
    assert lines
    for line in lines:
        parser = CommandParser(prog="crawlsched")
        crawlsched.cli.add_commands(parser)
        assert line.startswith(f"crawlsched {name}"), line
        parser.parse_args(shlex.split(line)[1:])  # an example that is not understood ends the process

    misspelt = run_here(folder, *command, "--databaze", "x")
    assert (misspelt.returncode, misspelt.stdout) == (2, "")
    assert "Traceback" not in misspelt.stderr

    arguments = ARGUMENTS.get(name, "")
    if arguments is None:
        return
    given = [] if name in WITHOUT_DATABASE else ["--database", "sqlite:///crawl.db"]
    printed = run_here(folder, *command, "--json", *shlex.split(arguments), *given)
    assert printed.returncode == 0, printed.stderr
    assert isinstance(json.loads(printed.stdout), dict)
    (folder / "copy.db").unlink(missing_ok=True)  # a backup is not written over
    written = run_here(folder, *command, *shlex.split(arguments), *given, "--json", "found.json")
    (folder / "copy.db").unlink(missing_ok=True)
    assert written.returncode == 0, written.stderr
    assert json.loads((folder / "found.json").read_text()).keys() == json.loads(printed.stdout).keys()
    assert not written.stdout.startswith("{")


def test_json_takes_any_file_where_nothing_else_can_follow(folder):
    """Where a command takes a URL, only a name that ends in .json is a file's; with = every name is."""
    given = "--database", "sqlite:///crawl.db"
    for arguments in (["status", "--json", "as it is.txt"], ["why", URL, "--json=as it is.txt"]):
        assert run_here(folder, *arguments, *given).returncode == 0
        assert json.loads((folder / "as it is.txt").read_text())["collection"] == "news"
        (folder / "as it is.txt").unlink()
    assert json.loads(run_here(folder, "why", "--json", URL, *given).stdout)["url"] == URL
    (folder / "nothing").symlink_to("/dev/null")  # what is no file is written to, and stays what it is
    assert run_here(folder, "status", "--json", "nothing", *given).returncode == 0
    assert (folder / "nothing").is_char_device()
    answer = run_here(folder, "status", "--json", "no folder/status.json", *given)
    assert answer.returncode == 1
    assert "cannot be written" in answer.stderr


def test_nothing_that_was_lies_in_the_future(tmp_path):
    """What a running crawl did while the command was reading is said to be just now."""
    store = Store.open(f"sqlite:///{tmp_path}/crawl.db", "running")
    now = time.time()
    lease = store.take_lease("running", now)
    lease.heartbeat(now + 2.0, {"bandwidth": 1.0, "last_sent_at": now + 2.0, "paused_since": now + 2.0})
    answer = run_here(tmp_path, "status", "--database", "sqlite:///crawl.db")
    lease.release()
    store.close()
    assert "paused since" in answer.stdout
    assert ", just now" in answer.stdout
    assert " in " not in answer.stdout.split("\n")[1]
    assert "budget" not in answer.stdout
    assert "bandwidth 1/s" in answer.stdout


TABLE = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text())
SHORT = {
    "CRAWL": ("--database", "sqlite:///crawl.db"),
    "EMPTY": ("--database", "sqlite:///empty.db"),
    "HISTORY": ("--pages", "pages.csv", "--changes", "changes.csv"),
}


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
    return sentence.endswith(expected) if expected.endswith(".") else expected in sentence


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
