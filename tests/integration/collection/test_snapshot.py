"""A crawl begins with what the last one left in its snapshot, if and only if the store is as it was then."""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

from crawlsched.collection.collection import Collection, FoundPage
from crawlsched.columns.array_file import read_arrays, read_facts, write_arrays
from crawlsched.planner import plan
from crawlsched.planner.parameters.in_force import PICKS_A_SLICE, PLAN_SLICE
from crawlsched.settings import Settings
from crawlsched.store import Batch, Source, Store
from tests import children

pytestmark = pytest.mark.usefixtures("compiled_code")

START = 1_700_000_000.0
N = 600
ENDED = START + 4_000.0


def fingerprint(url):
    return hashlib.sha1(url.encode()).digest()


def opened(folder, now, snapshot="snapshots", fingerprinter="sha1", **more):
    where = str(folder / snapshot) if isinstance(snapshot, str) else snapshot
    settings = Settings.from_scrapy(
        {
            "CRAWLSCHED_DATABASE_URL": f"sqlite:///{folder / 'pages.db'}",
            "CRAWLSCHED_SNAPSHOT": where,
            "CRAWLSCHED_BANDWIDTH": "2/s",
            **more,
        },
        "spider",
    )
    collection = Collection(settings, "spider", fingerprint, fingerprinter, Random(1))
    collection.open(now)
    return collection


def crawl(collection, now, n):
    """Use some slots: most visits reach their page, some fail, and some pages are gone."""
    planner, unsaved, picks = collection.planner, collection.unsaved, []
    for _ in range(n):
        now += 0.5
        pick = planner.pick(now, lambda host, time: time)
        if pick is None:
            continue
        page = pick.page
        picks.append((page, pick.reason, pick.crawl_value))
        if page % 29 == 3:
            planner.gone(page, now)
        elif page % 31 == 5:
            planner.failed(page, now)
        else:
            changed = (page * 7 + len(picks)) % (2 + page % 5) == 0
            planner.crawled(page, now, changed)
        unsaved.page(page, now)
    return picks


def crawled_for_an_hour(folder, **more):
    """A crawl over 600 pages of three hosts, a third announced, some by two sources; with a plan; ended well."""
    collection = opened(folder, START, **more)
    found = [
        FoundPage(
            f"http://h{n % 3}.example/{n}", fingerprint(f"http://h{n % 3}.example/{n}"), f"h{n % 3}.example", 1 + n % 4
        )
        for n in range(N)
    ]
    collection.add_pages(found, START)
    for number in (0, 1):
        collection.unsaved.source(Source(number, "sitemap", f"http://h0.example/{number}.xml", "h0.example"), START)
    announced = np.arange(0, N, 3)
    collection.planner.covered(announced, 0, START)
    collection.planner.covered(announced[:30], 1, START)
    crawl(collection, START, 3_000)
    collection.planner.signalled(announced[::2], 0, START + 1_600)
    collection.planner.signalled(announced[:20], 1, START + 1_610)
    collection.unsaved.pages(announced, START + 1_610)
    collection.flush(START + 1_611)
    made = plan(collection.planner.snapshot(), 2.0)
    collection.store.save_plan(made.to_dict(collection.hosts.names), START + 1_620)
    collection.planner.adopt(made, START + 1_620)
    crawl(collection, START + 1_620, 4_000)
    collection.add_pages([FoundPage("http://h9.example/new", fingerprint("new"), "h9.example")], ENDED - 1)
    collection.close(ENDED)


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """What a crawl has left behind: its database and its snapshot."""
    folder = tmp_path_factory.mktemp("left")
    crawled_for_an_hour(folder)
    return folder


@pytest.fixture
def folder(left, tmp_path):
    return Path(shutil.copytree(left, tmp_path / "copy"))


def snapshot_in(folder):
    (path,) = (folder / "snapshots").iterdir()
    return path


def picks_after(folder, now, **more):
    collection = opened(folder, now, **more)
    collection.planner.frontier._check(now)
    picks = crawl(collection, now, 900)
    collection.planner.frontier._check(collection.planner.now)
    found = collection.snapshot_unusable, len(collection.planner.pages), picks
    collection.write_behind.close()
    collection.store.close()
    return found


def picks_with_and_without(folder, now, **more):
    """Return why the snapshot was not used, the picks of a crawl that was to use it, and those of one that was not."""
    copy = Path(shutil.copytree(folder, folder.with_name(f"{folder.name}-without")))
    used, _, first = picks_after(folder, now, **more)
    _, _, second = picks_after(copy, now, snapshot=False, **more)
    return used, first, second


@pytest.mark.statistics
@pytest.mark.parametrize("pause", [0.0, 30.0, 86_400.0])
@pytest.mark.parametrize("longest", [None, "15m"])
def test_the_same_pages_are_picked_with_a_snapshot_and_without(left, tmp_path, pause, longest):
    """At once, or after a pause in which many pages' time has come; with deadlines that were not there before."""
    found = []
    for name in ("with", "without"):
        folder = Path(shutil.copytree(left, tmp_path / name))
        snapshot = "snapshots" if name == "with" else False
        found.append(picks_after(folder, ENDED + pause, snapshot=snapshot, CRAWLSCHED_MAX_CRAWL_INTERVAL=longest))
    (used, n_with, first), (unused, n_without, second) = found
    assert (used, unused) == ("", None)
    assert n_with == n_without == N + 1
    assert [pick[:2] for pick in first] == [pick[:2] for pick in second]
    assert [pick[2] for pick in first] == pytest.approx([pick[2] for pick in second], rel=2e-7, nan_ok=True)


def test_deadlines_are_put_back(tmp_path):
    """A crawl with a longest interval picks the same overdue pages after its snapshot as after reading its store."""
    crawled_for_an_hour(tmp_path, CRAWLSCHED_MAX_CRAWL_INTERVAL="10m")
    used, first, second = picks_with_and_without(tmp_path, ENDED + 60, CRAWLSCHED_MAX_CRAWL_INTERVAL="10m")
    assert used == ""
    assert {reason for _, reason, _ in first} >= {"overdue"}
    assert [pick[:2] for pick in first] == [pick[:2] for pick in second]


def test_pages_that_stood_behind_an_equal_one_are_put_back(tmp_path):
    """Of thousands of pages that are equal in all, one stands for the rest; those are filed anew."""
    collection = opened(tmp_path, START)
    urls = [f"http://h.example/{n}" for n in range(3_000)]
    collection.add_pages([FoundPage(url, fingerprint(url), "h.example") for url in urls], START)
    for page in range(3_000):
        collection.planner.crawled(page, START, changed=None)
    collection.unsaved.pages(np.arange(3_000), START)
    crawl(collection, START, 300)
    places = {collection.planner.frontier.place_of(page) for page in range(3_000)}
    assert "behind another" in places
    collection.close(START + 200)
    used, first, second = picks_with_and_without(tmp_path, START + 200)
    assert used == ""
    assert [pick[:2] for pick in first] == [pick[:2] for pick in second]


@pytest.mark.parametrize("n_plans", [1, 2])
@pytest.mark.parametrize("n_slices", [1, 2])
def test_a_plan_goes_on_being_adopted_where_the_crawl_ended(left, tmp_path, n_slices, n_plans):
    """Pages whose turn had not come are put back under the plan before, and plans that wait go on waiting."""
    # How far the look for pages that have waited too long has come is not kept; with 50 rounds none has.
    found, patient = [], {"CRAWLSCHED_MAX_CRAWL_ROUNDS": 50}
    for name, ends in (("ends", True), ("goes_on", False)):
        folder = Path(shutil.copytree(left, tmp_path / name))
        collection = opened(folder, ENDED, **patient)
        crawl(collection, ENDED, 300)
        made = plan(collection.planner.snapshot(), 7.0)
        collection.store.save_plan(made.to_dict(collection.hosts.names), ENDED + 150)
        collection.planner.adopt(made, ENDED + 150)
        for _ in range(n_slices * PICKS_A_SLICE):
            collection.planner.work(ENDED + 150)
        if n_plans == 2:
            newer = plan(collection.planner.snapshot(), 2.0)
            collection.store.save_plan(newer.to_dict(collection.hosts.names), ENDED + 150)
            collection.planner.adopt(newer, ENDED + 150)
        collection.unsaved.pages(np.arange(N), ENDED + 150)
        if ends:
            collection.close(ENDED + 150)
            collection = opened(folder, ENDED + 151, **patient)
            assert collection.snapshot_unusable == ""
        planner = collection.planner
        below = planner.in_force.adopted_below
        planner.frontier._check(ENDED + 151)
        found.append((below, [pick[:2] for pick in crawl(collection, ENDED + 151, 200)]))
        planner.frontier._check(planner.now)
        assert planner.in_force.adopted_below is None
        collection.write_behind.close()
        collection.store.close()
    (below, picks), (below_without_end, picks_without_end) = found
    assert below == below_without_end == n_slices * PLAN_SLICE
    assert picks == picks_without_end


def test_pages_are_found_by_their_fingerprints_and_new_ones_go_on_counting(folder):
    """The index is in the snapshot, too, with the page that was found last."""
    collection = opened(folder, ENDED)
    assert collection.snapshot_unusable == ""
    assert collection.index.page(fingerprint("http://h0.example/9")) == 9
    assert collection.index.page(fingerprint("new")) == N
    assert collection.add_pages([FoundPage("http://h9.example/b", fingerprint("b"), "h9.example")], ENDED) == [N + 1]
    assert collection.hosts.names[collection.planner.pages.host[N + 1]] == "h9.example"
    collection.close(ENDED + 1)
    assert opened_and_closed(folder, ENDED + 2) == ""


def opened_and_closed(folder, now, **more):
    collection = opened(folder, now, **more)
    reason = collection.snapshot_unusable
    assert len(collection.planner.pages) >= N
    collection.close(now)
    return reason


def change_a_page(folder):
    store = Store.open(f"sqlite:///{folder / 'pages.db'}", "spider")
    store.save(Batch(contents={3: {"etag": "another"}}))
    store.close()


def forget_a_page(folder):
    store = Store.open(f"sqlite:///{folder / 'pages.db'}", "spider")
    assert store.forget("url", "http://h9.example/new", ENDED).tolist() == [N]
    store.close()


def say_in_the_file(**facts):
    def change(folder):
        path = snapshot_in(folder)
        write_arrays(path, read_facts(path) | facts, read_arrays(path))

    return change


def of_another_grid(folder):
    path = snapshot_in(folder)
    facts = read_facts(path)
    write_arrays(path, facts | {"planner": facts["planner"] | {"grid": "2-ffff"}}, read_arrays(path))


def cut_short(folder):
    path = snapshot_in(folder)
    os.truncate(path, path.stat().st_size // 2)


def flip_a_bit(folder):
    path = snapshot_in(folder)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def write_something_else(folder):
    snapshot_in(folder).write_text("this is no snapshot")


def take_an_array_out(folder):
    path = snapshot_in(folder)
    arrays = read_arrays(path)
    del arrays["posterior"]
    write_arrays(path, read_facts(path), arrays)


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (change_a_page, "the pages have been changed in the store since it was written"),
        (forget_a_page, "the pages have been changed in the store since it was written"),
        (say_in_the_file(version="0.0.0"), "it is of another version of crawlsched"),
        (say_in_the_file(format=0), "it is of another version of crawlsched"),
        (say_in_the_file(schema="0001"), "it is of another version of the tables"),
        (say_in_the_file(collection=["other", 0, 1]), "it is of another collection"),
        (say_in_the_file(fingerprinter="md5"), "the project has another REQUEST_FINGERPRINTER_CLASS"),
        (of_another_grid, "it is of another grid of change rates"),
        (cut_short, "the file is damaged"),
        (flip_a_bit, "the file is damaged"),
        (write_something_else, "the file is damaged"),
        (take_an_array_out, "the file is damaged"),
    ],
)
def test_a_snapshot_that_does_not_fit_is_not_used_and_the_log_says_why(folder, caplog, happens, reason):
    """The pages are read from the store, as if there were none; and at its end the crawl leaves one that fits."""
    copy = Path(shutil.copytree(folder, folder.with_name("without")))
    happens(folder)
    with caplog.at_level(logging.INFO, "crawlsched.collection.collection"):
        collection = opened(folder, ENDED)
    assert collection.snapshot_unusable.startswith(reason)
    (line,) = [record.getMessage() for record in caplog.records if "snapshot" in record.getMessage()]
    assert reason in line
    n_pages, picks = len(collection.planner.pages), crawl(collection, ENDED, 300)
    collection.close(ENDED + 200)
    if happens is forget_a_page:
        assert n_pages == N
    else:
        without = opened(copy, ENDED, snapshot=False)
        assert [pick[:2] for pick in picks] == [pick[:2] for pick in crawl(without, ENDED, 300)]
        without.close(ENDED + 200)
    assert opened_and_closed(folder, ENDED + 300) == ""


def test_a_clock_that_was_set_back_makes_it_unusable(folder):
    """What the snapshot says of times to come was true by another clock."""
    assert opened_and_closed(folder, ENDED - 1_000) == "it is of a later time than the clock says"


def test_another_plan_in_the_store_is_adopted_in_slices(folder):
    """One made while the crawl ended: pages stand where they stood, and adopt it as if the crawl had gone on."""
    other = Path(shutil.copytree(folder, folder.with_name("goes-on")))
    found = []
    for where in (folder, other):
        collection = opened(where, ENDED)
        made = plan(collection.planner.snapshot(), 7.0)
        if where is folder:
            collection.close(ENDED)
            store = Store.open(f"sqlite:///{folder / 'pages.db'}", "spider")
            store.save_plan(made.to_dict(collection.hosts.names), ENDED + 1)
            store.close()
            collection = opened(folder, ENDED + 10)
            assert collection.snapshot_unusable == ""
        else:
            collection.planner.adopt(made, ENDED + 10)
        planner = collection.planner
        assert planner.in_force.adopted_below == 0
        picks = [pick[:2] for pick in crawl(collection, ENDED + 10, 300)]
        planner.frontier._check(planner.now)
        assert planner.in_force.adopted_below is None
        found.append((picks, planner.plan.to_dict(collection.hosts.names)))
        collection.write_behind.close()
        collection.store.close()
    assert found[0] == found[1]


def test_the_first_plan_goes_on_being_adopted_where_the_crawl_ended(tmp_path):
    """What was supposed before there was a plan stays in force for the other pages."""
    found = []
    for name in ("ends", "goes on"):
        folder = tmp_path / name
        folder.mkdir()
        collection = opened(folder, START)
        urls = [f"http://h.example/{n}" for n in range(N)]
        collection.add_pages([FoundPage(url, fingerprint(url), "h.example") for url in urls], START)
        crawl(collection, START, 2_000)
        made = plan(collection.planner.snapshot(), 2.0)
        collection.store.save_plan(made.to_dict(collection.hosts.names), START + 1_000)
        collection.planner.adopt(made, START + 1_000)
        for _ in range(PICKS_A_SLICE):
            collection.planner.work(START + 1_000)
        if name == "ends":
            collection.close(START + 1_000)
            collection = opened(folder, START + 1_001)
            assert collection.snapshot_unusable == ""
        planner = collection.planner
        found.append((planner.in_force.adopted_below, [pick[:2] for pick in crawl(collection, START + 1_001, 200)]))
        planner.frontier._check(planner.now)
        collection.write_behind.close()
        collection.store.close()
    assert found[0] == found[1]
    assert found[0][0] == PLAN_SLICE


KILLED = """
import sys
sys.path[:0] = [sys.argv[2]]
from pathlib import Path
from tests.integration.collection.test_snapshot import ENDED, crawl, opened
collection = opened(Path(sys.argv[1]), ENDED)
assert collection.snapshot_unusable == ""
crawl(collection, ENDED, 100)
collection.flush(ENDED + 100)
collection.write_behind.drain(20)
print("written", flush=True)
sys.stdin.read()
"""


def test_after_kill_9_the_snapshot_before_is_not_used(folder):
    """What the killed crawl had written is in the store alone, and counts."""
    process = children.start(
        *(sys.executable, "-c", KILLED, folder, children.ROOT), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == "written\n"
    process.kill()
    process.wait()
    reason, first, second = picks_with_and_without(folder, ENDED + 200)
    assert reason == "the pages have been changed in the store since it was written"
    assert [pick[:2] for pick in first] == [pick[:2] for pick in second]


def test_without_a_folder_small_collections_leave_none(tmp_path):
    """Beside a database there is a snapshot from 100,000 pages on, and none where the setting says so."""
    crawled_for_an_hour(tmp_path, snapshot=True)
    assert {path.suffix for path in tmp_path.iterdir()} == {".db"}
    assert opened_and_closed(tmp_path, ENDED, snapshot=False) is None
    assert {path.suffix for path in tmp_path.iterdir()} == {".db"}


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_snapshot(tmp_path, caplog):
    """The crawl ends as it would, and says so."""
    (tmp_path / "snapshots").write_text("a file stands where the folder should be")
    with caplog.at_level(logging.WARNING):
        crawled_for_an_hour(tmp_path)
    assert [record.getMessage()[:41] for record in caplog.records] == ["No snapshot could be left, so the next st"]
    assert opened_and_closed(tmp_path, ENDED, snapshot=False) is None


def test_an_unfinished_file_is_never_taken_for_a_snapshot(tmp_path):
    """It stands under another name until it is whole, and what stood there before stays until then."""
    path = tmp_path / "snapshot"
    write_arrays(path, {"n": 1}, {"a": np.arange(5)})
    with pytest.raises(TypeError):
        write_arrays(path, {"n": object()}, {"a": np.arange(6)})
    assert read_facts(path) == {"n": 1}
    assert read_arrays(path)["a"].tolist() == [0, 1, 2, 3, 4]
    assert [one.name for one in tmp_path.iterdir()] == ["snapshot"]
