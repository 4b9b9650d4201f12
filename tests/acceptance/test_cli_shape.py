"""One shape of the command line: what holds for every command, whichever it is."""

import argparse
import json
import shlex
import time
from collections.abc import Iterator

import pytest

import crawlsched.cli
from crawlsched.cli.parsing import CommandParser
from crawlsched.store import Batch, Store
from tests.commands import run_here
from tests.rows import new_page

URL = "http://a.example/p/3"


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
    "replay": "--pages pages.csv --changes changes.csv --bandwidth 1/h --policy round_robin",
    "db split": None,  # on PostgreSQL only
    "signal": URL,
    "simulate": "list",
    "web": None,
    "why": URL,
}
WITHOUT_DATABASE = ("db copy", "detect", "replay", "simulate")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a database and a file of each kind."""
    folder = tmp_path_factory.mktemp("shape")
    store = Store.open(f"sqlite:///{folder}/crawl.db", "news")
    store.save(Batch(new_pages={n: new_page(n, f"http://a.example/p/{n}") for n in range(12)}))
    store.close()
    run_here(folder, "db", "backup", "backup.db", "--database", "sqlite:///crawl.db")
    run_here(folder, "db", "upgrade", "--database", "sqlite:///copied.db")
    for name, text in {
        "pages.csv": "page,birth,end\n1,0,100000\n2,0,100000\n",
        "changes.csv": "page,time\n1,5000\n2,9000\n",
        "urls.txt": "http://a.example/new\n",
        "body.html": "<p>Hello there",
        "visits.csv": "time,url,body\n1000,http://a.example/1,body.html\n",
    }.items():
        (folder / name).write_text(text)
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


def test_nothing_that_was_lies_in_the_future(folder):
    """What a running crawl did while the command was reading is said to be just now."""
    store = Store.open(f"sqlite:///{folder}/crawl.db", "running")
    now = time.time()
    lease = store.take_lease("running", now)
    lease.heartbeat(now + 2.0, {"bandwidth": 1.0, "last_sent_at": now + 2.0, "paused_since": now + 2.0})
    answer = run_here(folder, "status", "--database", "sqlite:///crawl.db", "--collection", "running")
    lease.release()
    store.close()
    assert "paused since" in answer.stdout
    assert ", just now" in answer.stdout
    assert " in " not in answer.stdout.split("\n")[1]
    assert "budget" not in answer.stdout
    assert "bandwidth 1/s" in answer.stdout
