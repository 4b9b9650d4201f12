"""The command line, on real databases and in processes of its own: what it says, what it does, how it fails."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import closing

import pytest

from crawlsched.store import Store, commands, schema
from tests import children, simulated
from tests.commands import failed, run_here
from tests.databases import rows
from tests.simulated import HOSTS


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in an empty directory; with options in a process of its own, where they hold."""
    monkeypatch.setenv("COLUMNS", "100")

    def run_command(*arguments, **options):
        if not options:
            return run_here(tmp_path, *arguments)
        command = [sys.executable, "-m", "crawlsched", *arguments]
        return children.run(*command, environment={"SCRAPY_SETTINGS_MODULE": None}, **{"cwd": tmp_path, **options})

    return run_command


@pytest.fixture
def database(tmp_path):
    """A database with the collection 'news': ten pages on each of two hosts, crawled for some simulated hours."""
    url = f"sqlite:///{tmp_path}/crawl.db"
    with closing(Store.open(url, "news")) as store:
        simulated.crawl(store, time.time(), n_pages=20, days=0.2)
    return url


def url_of(number: int) -> str:
    return f"http://{HOSTS[number % 2]}/page/{number}"


def test_a_collection_need_not_be_named_where_there_is_one(run, database):
    """With one collection it is taken."""
    assert run("forget", "--host", "nowhere", "--yes", "--database", database).returncode == 0


def test_in_a_project_its_settings_say_which_database(run, database, tmp_path):
    """In a project's folder, and below it, neither database nor collection has to be named."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "settings.py").write_text(
        f"CRAWLSCHED_DATABASE_URL = {database!r}\nCRAWLSCHED_COLLECTION = 'news'\n"
    )
    Store.open(database, "shops").close()
    answer = run("forget", url_of(3), "--yes", "--json", cwd=tmp_path / "shop")
    assert json.loads(answer.stdout) == {"collection": "news", "kind": "url", "value": url_of(3), "pages": 1}


def test_a_projects_mistakes_are_said_as_the_crawl_says_them(run, tmp_path):
    """Wrong settings, and settings that cannot be imported, are one sentence."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = shop\n")
    (tmp_path / "shop.py").write_text("CRAWLSCHED_BANDWIDTH = 'fast'\n")
    assert failed(run("status", cwd=tmp_path)).startswith("CRAWLSCHED_BANDWIDTH must be a positive number of crawls")
    (tmp_path / "shop.py").write_text("import nothing_of_that_name\n")
    assert failed(run("status", cwd=tmp_path)) == (
        "The settings of this Scrapy project cannot be imported: No module named 'nothing_of_that_name'."
    )


@pytest.mark.parametrize("place", ["before", "after"])
def test_scrapy_has_the_same_commands(run, database, place, tmp_path):
    """`scrapy crawlsched ...` understands -s before and after the command's name."""
    setting = ["-s", f"CRAWLSCHED_DATABASE_URL={database}"]
    command = [sys.executable, "-c", ENTRY_POINT, "crawlsched", *(setting if place == "before" else [])]
    command += ["forget", "--host", HOSTS[0], "--yes", "--json", *(setting if place == "after" else [])]
    assert json.loads(children.output_of(*command, cwd=tmp_path))["pages"] == 10


# The entry point is looked up in installed packages; a checkout need not be installed to be tested.
ENTRY_POINT = """
import sys
import scrapy.cmdline
from crawlsched.cli.scrapy_command import Command
scrapy.cmdline._get_commands_from_entry_points = lambda inproject, group="scrapy.commands": {"crawlsched": Command()}
sys.exit(scrapy.cmdline.execute(["scrapy", *sys.argv[1:]]))
"""


def test_upgrade_makes_the_tables_and_check_agrees(run, tmp_path):
    """A new file gets its tables; a second upgrade changes nothing; check says that all is well."""
    url = "sqlite:///new.db"
    revision = f"revision {schema.head()}"
    assert f"has its tables now ({revision})" in run("db", "upgrade", "--database", url).stdout
    before = (tmp_path / "new.db").read_bytes()
    assert f"is up to date ({revision})" in run("db", "upgrade", "--database", url).stdout
    assert (tmp_path / "new.db").read_bytes() == before
    assert run("db", "check", "--database", url).stdout == f"{url} is sound and up to date ({revision}).\n"
    report = json.loads(run("db", "check", "--database", url, "--json").stdout)
    assert report == {"database": "sqlite:///new.db", "revision": schema.head(), "sound": True}


def pages_of(database: str) -> dict[str, int]:
    """Count what is left, by host."""
    found = rows(database, "SELECT host, count(*) AS n FROM pages GROUP BY host")
    return {row["host"]: row["n"] for row in found}


def test_forget_deletes_a_page_and_leaves_a_tombstone(run, database):
    """The page is gone, its URL is remembered as forgotten, and the report counts it."""
    answer = run("forget", url_of(3), "--yes", "--database", database)
    assert answer.stdout == "1 page deleted from 'news'. It will not come back by itself.\n"
    assert pages_of(database) == {HOSTS[0]: 10, HOSTS[1]: 9}
    with closing(Store.open(database, "news", read_only=True)) as store:
        assert store.tombstones.cover([url_of(3), url_of(4)]) == [True, False]
        owner = store.owner()
    assert owner.released_at is not None


def test_forget_does_not_delete_unasked(run, database):
    """Where nobody can be asked it refuses; at a terminal it asks, and only "y" deletes."""
    asked = f"Forget the host {HOSTS[0]}: delete 10 pages with all their data for good?"
    sentence = failed(run("forget", "--host", HOSTS[0], "--database", database, stdin=subprocess.DEVNULL))
    assert sentence == f"{asked} Nothing was done, for there is no terminal to ask at; add --yes to do it."
    for typed, code, left in (("n\n", 1, 20), ("\n", 1, 20), ("y\n", 0, 10)):
        ours, theirs = pty.openpty()
        os.write(ours, typed.encode())
        answer = run("forget", "--host", HOSTS[0], "--database", database, stdin=theirs)
        os.close(ours)
        os.close(theirs)
        assert answer.returncode == code
        assert answer.stdout.startswith(asked)
        assert sum(pages_of(database).values()) == left


def test_what_was_forgotten_is_listed_named_by_why_and_taken_back(run, database):
    """`--list` has kind, value and time; `why` says by which pattern; `--undo` ends it, once."""
    pattern = "http://*/page/1*"
    assert run("forget", "--pattern", pattern, "--yes", "--database", database).returncode == 0
    listed = json.loads(run("forget", "--list", "--json", "--database", database).stdout)["forgotten"]
    assert [(stone["kind"], stone["value"]) for stone in listed] == [("pattern", pattern)]
    assert listed[0]["created_at"] == pytest.approx(time.time(), abs=60.0)
    assert f"pattern  {pattern}" in run("forget", "--list", "--database", database).stdout
    sentence = failed(run("why", url_of(11), "--database", database))
    assert f"the pattern {pattern} was forgotten (" in sentence
    assert f"`crawlsched forget --undo --pattern '{pattern}'`" in sentence
    answer = run("forget", "--undo", "--pattern", pattern, "--database", database)
    assert answer.stdout.startswith(f"The pattern {pattern} is no longer forgotten in 'news'.")
    assert "Nothing was forgotten" in run("forget", "--list", "--database", database).stdout
    assert "forgotten" not in failed(run("why", url_of(11), "--database", database))


def test_a_page_is_found_by_another_spelling_and_an_unknown_one_is_said(run, database):
    """Without a running crawl the word waits in the database for the next; unknown URLs are named."""
    answer = run("recrawl", url_of(1), "http://127.0.0.1/none", "--json", "--database", database)
    expected = {"collection": "news", "running": False, "pages": 1, "taken": None, "unknown": ["http://127.0.0.1/none"]}
    assert json.loads(answer.stdout) == expected
    answer = run("signal", url_of(1), "--source", "cms", "--database", database)
    assert answer.stdout == "The announcement of 1 page waits for the next crawl; none is running now.\n"
    store = Store.open(database, "news", read_only=True)
    waiting = [(command.name, command.arguments) for command in commands.pending(store)]
    store.close()
    assert waiting == [("recrawl", {"urls": [url_of(1)]}), ("signal", {"urls": [url_of(1)], "source": "cms"})]


def test_output_that_nobody_reads_to_the_end_is_no_failure(run, database):
    """`crawlsched ... | head -0` ends quietly."""
    reader, writer = os.pipe()
    os.close(reader)
    answer = run("db", "check", "--database", database, stdout=writer)
    os.close(writer)
    assert answer.stderr == ""


def test_ctrl_c_is_quiet_wherever_it_comes(tmp_path):
    """While modules are loaded (half of the time that a command takes), while it works, and of each kind of command."""
    database = "--database", f"sqlite:///{tmp_path / 'crawl.db'}"
    Store.open(database[1], "news").close()
    for waited, *command in (
        ("numpy", "status", *database),
        ("sqlalchemy", "why", "http://a.example/", *database),
        ("crawlsched.cli", "changes", *database),
        # Hours of work, of which nothing is written before its end.
        ("crawlsched.simulation.figures", "simulate", "noisy-signals-2", "--out", tmp_path / "figures"),
    ):
        process = children.start(
            *(sys.executable, "-X", "importtime", "-m", "crawlsched", *command),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        said = ""
        for line in process.stderr:
            said += line
            if line.rstrip().endswith(waited):
                process.send_signal(signal.SIGINT)
                break
        said += process.stderr.read()
        children.end(process)
        assert process.returncode in (0, 1, 130, -signal.SIGINT)
        assert "KeyboardInterrupt" not in said
        assert "Traceback" not in said
    assert not list(tmp_path.glob("figures/*"))
