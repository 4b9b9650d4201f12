"""`crawlsched pages`, `export` and `db backup`: what a collection holds, for people and for other programs."""

import csv
import gzip
import json
import sqlite3
import time
from io import StringIO
from pathlib import Path

import pytest

from crawlsched.store import Store, copying
from crawlsched.store.database import Database
from tests import simulated
from tests.commands import failed, report, run_here, said

GIVEN = "--database", "sqlite:///crawl.db"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of a day's crawl."""
    folder = tmp_path_factory.mktemp("pages")
    store = Store.open(f"sqlite:///{folder}/crawl.db", "news")
    simulated.crawl(store, time.time(), n_pages=60, days=1.0)
    store.close()
    return folder


def rows(*arguments: str, folder: Path | None = None) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(said(*arguments, "--csv", folder=folder))))


def test_pages_are_listed_by_conditions_and_in_an_order(folder: Path) -> None:
    """What fulfils all conditions, in the order asked for, as JSON and as CSV."""
    where = "--where", "n_changes >= 1", "--where", "url ~ http://127.0.0.1/*", "--where", "crawled_at > now-1d"
    found = report("pages", *where, "--order", "n_changes:desc", *GIVEN, folder=folder)["pages"]
    everything = report("pages", "--columns", "all", *GIVEN, folder=folder)["pages"]
    assert len(everything) == 60
    wanted = [p for p in everything if p["n_changes"] >= 1 and p["host"] == "127.0.0.1"]
    assert sorted(p["url"] for p in found) == sorted(p["url"] for p in wanted)
    assert 0 < len(found) < 60
    counts = [page["n_changes"] for page in found]
    assert counts == sorted(counts, reverse=True)
    first = rows("pages", "--limit", "5", *GIVEN, folder=folder)
    assert [row["url"] for row in first] == [page["url"] for page in everything[:5]]
    assert first[0]["state"] == "live"


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("n_changes", "A condition is a column"),
        ("n_changes > many", "n_changes is a number"),
        ("state = alive", "A state is one of new, live"),
        ("n_changes ~ 3*", "A pattern fits texts only"),
        ("crawled_at < yesterday", "A time is POSIX seconds"),
        ("crawled_at < never", "can be equal or not"),
        ("undelivered = maybe", "is yes or no"),
    ],
)
def test_a_condition_that_is_none_is_said(folder: Path, where: str, words: str) -> None:
    """One sentence says what is allowed."""
    assert words in failed(run_here(folder, "pages", "--where", where, *GIVEN))


def test_an_export_brings_its_import_back(folder: Path, tmp_path: Path) -> None:
    """What was exported and imported elsewhere is exported alike: visits, and what pages are worth."""
    assert "60 rows of pages written to" in said("export", str(tmp_path / "out"), *GIVEN, folder=folder)
    other = "--database", "sqlite:///other.db"
    for name in ("pages", "visits"):
        said("import", f"out/{name}.csv", *other, "--collection", "news", folder=tmp_path)
    said("export", "again", *other, folder=tmp_path)
    for name, columns in (("pages", ("url", "importance")), ("visits", ("url", "time", "changed"))):
        before, after = (
            sorted(
                tuple(row[c] for c in columns)
                for row in csv.DictReader(StringIO((tmp_path / where / f"{name}.csv").read_text()))
            )
            for where in ("out", "again")
        )
        assert before == after
        assert before


def test_tables_are_written_as_csv_and_as_lines_of_json(folder: Path, tmp_path: Path) -> None:
    """Each kind of file has the same rows; an unknown ending is refused, and what fails leaves nothing."""
    said("export", str(tmp_path), "--format", "csv.gz", *GIVEN, folder=folder)
    with gzip.open(tmp_path / "visits.csv.gz", "rt", newline="") as file:
        packed = list(csv.DictReader(file))
    said("export", str(tmp_path / "visits.jsonl"), "--table", "visits", *GIVEN, folder=folder)
    lines = [json.loads(line) for line in (tmp_path / "visits.jsonl").read_text().splitlines()]
    assert [row["url"] for row in packed] == [line["url"] for line in lines] != []
    answer = run_here(folder, "export", str(tmp_path / "visits.xlsx"), "--table", "visits", *GIVEN)
    assert (answer.returncode, "must end in .csv" in answer.stderr) == (1, True)
    assert not list(tmp_path.glob("*unfinished*"))
    answer = run_here(folder, "export", "-", "--table", "visits", "--where", "changed = yes", *GIVEN)
    assert len(answer.stdout.splitlines()) == 1 + sum(line["changed"] == 1 for line in lines)


def test_a_backup_is_of_one_moment_while_others_write(folder: Path, tmp_path: Path, monkeypatch) -> None:
    """What is written meanwhile is not in it, and does not make it begin anew; it can be put back."""
    (tmp_path / "crawl.db").write_bytes(b"")
    run_here(folder, "db", "backup", str(tmp_path / "first.db"), *GIVEN)
    said("db", "restore", "first.db", "--yes", *GIVEN, folder=tmp_path)
    database = Database(f"sqlite:///{tmp_path}/crawl.db")
    heard = []

    def write(done: int, total: int) -> None:
        heard.append(done)
        with database.writing() as connection:
            connection.exec_driver_sql(f"UPDATE collections SET changes_given = {done}")

    monkeypatch.setattr(copying, "_PAGES_AT_ONCE", 5)
    copying.copy_file(Database(f"sqlite:///{tmp_path}/crawl.db", read_only=True), tmp_path / "copy.db", write)
    database.close()
    assert len(heard) > 3
    assert heard == sorted(heard)
    (kept,) = sqlite3.connect(tmp_path / "copy.db").execute("SELECT changes_given FROM collections").fetchone()
    assert kept is None
    assert copying.require_sound(tmp_path / "copy.db")


def test_a_restore_that_cannot_be_right_is_refused(folder: Path, tmp_path: Path) -> None:
    """Unasked, of what is no backup, while a crawl runs, and over a backup that is there."""
    copy = str(tmp_path / "copy.db")
    said("db", "backup", copy, *GIVEN, folder=folder)
    (tmp_path / "text.db").write_text("no database" * 100)
    store = Store.open(f"sqlite:///{folder}/crawl.db", "news")
    for arguments, words in (
        (["restore", copy], "nobody is here to be asked"),
        (["restore", str(tmp_path / "none.db"), "--yes"], "There is no file"),
        (["restore", str(tmp_path / "text.db"), "--yes"], "not a database"),
        (["restore", "crawl.db", "--yes"], "is the database itself"),
        (["backup", copy], "already"),
    ):
        assert words in failed(run_here(folder, "db", *arguments, *GIVEN))
    lease = store.take_lease("news")
    assert "is being crawled" in failed(run_here(folder, "db", "restore", copy, "--yes", *GIVEN))
    lease.release()
    store.close()


def test_pages_come_in_and_out_of_both_databases(database_url: str, tmp_path: Path) -> None:
    """What is imported is listed and exported alike from SQLite and from PostgreSQL; a backup says what to use."""
    given = "--database", database_url
    said("db", "upgrade", *given, folder=tmp_path)
    (tmp_path / "visits.csv").write_text(
        "url,time,changed\nhttp://a.example/x_1,1700000000,\nhttp://a.example/x_1,1700086400,1\nhttp://b.example/,1700000000,\n"
    )
    said("import", "visits.csv", "--collection", "news", *given, folder=tmp_path)
    (page,) = report("pages", "--where", "url ~ *x_*", *given)["pages"]
    assert (page["url"], page["n_crawls"], page["n_changes"], page["state"]) == ("http://a.example/x_1", 2, 1, "live")
    for order in ("changed_at", "changed_at:desc"):  # what has no value comes last
        assert rows("pages", "--order", order, *given)[-1]["url"] == "http://b.example/"
    assert "did you mean http://b.example/?" in run_here(tmp_path, "why", "b.example", *given).stderr
    said("export", "out", *given, folder=tmp_path)
    assert len((tmp_path / "out" / "pages.csv").read_text().splitlines()) == 3
    backup = run_here(tmp_path, "db", "backup", "copy.db", *given)
    assert (backup.returncode == 0) is database_url.startswith("sqlite")
    assert backup.returncode == 0 or "pg_dump" in backup.stderr
