"""Own ids: pages whose outermost element has an id of the page have places in common all the same."""

from __future__ import annotations

import json
from random import Random

from crawlsched.change_detection import LivingBlocks, PageBlocks, page_blocks
from crawlsched.change_detection.own_ids import OwnIds
from tests.noisy_pages import Judge

PAGE = """<html><title>{name}</title><body><div class=document id="{name}">
<ul class=menu><li>Start<li>Shop{entry}</ul><h1>{name}</h1><p>{text}</p><div class=foot>Made in {year}</div></div>"""
NAMES = ["green", "black", "white", "oolong", "chai", "mate"]


def _page(name: str, release: int, text: str = "") -> bytes:
    entry = "<li>New tastes" * release
    body = PAGE.format(name=name, entry=entry, text=text or f"A cup of {name} tea.", year=2025 + release)
    return body.encode()


def _paths(own_ids: OwnIds, number: int, blocks: PageBlocks) -> set[int]:
    shared = own_ids.shared_paths(number, blocks)
    return {shared.get(path, path) for path in blocks.path_of.values()}


def test_a_new_year_and_entry_on_all_pages_is_no_change_though_ids_differ() -> None:
    """Of six pages whose outer ids differ none has changed, but the one of which one word was edited has."""
    judge = Judge(LivingBlocks(), Random(1))
    for release in (0, 1):
        for name in NAMES:
            edited = bool(release) and name == "chai"
            body = _page(name, release, "A mug of chai tea." if edited else "")
            judge.visit(f"https://tea.example/{name}.html", lambda body=body: body, edited=edited)  # type: ignore[misc]
    assert judge.counts.seen == judge.counts.edits == 1
    assert judge.counts.quiet == len(NAMES) - 1
    assert judge.counts.false <= 1, judge.counts  # without siblings the first page cannot tell


def test_an_id_that_several_pages_have_is_part_of_the_place() -> None:
    """Pages of two kinds, with an id each, are not mixed up."""
    own_ids = OwnIds()
    tea, shop = (page_blocks(f"<div id={kind}><p>One<p>Two</div>") for kind in ("tea", "shop"))
    for number in range(4):
        _paths(own_ids, number, tea)
        _paths(own_ids, 10 + number, shop)
    assert not own_ids.shared_paths(1, tea)
    assert not own_ids.shared_paths(11, shop)


def test_an_id_of_a_part_of_the_page_stays() -> None:
    """Where much stands beside an element, what it holds is found by its id."""
    own_ids = OwnIds()
    for number, name in enumerate(NAMES):
        page = page_blocks(f"<ul>{'<li>One' * 9}</ul><div id={name}>{'<p>Two' * 200}</div>")
        assert not own_ids.shared_paths(number, page)


def test_no_two_paths_of_a_page_become_one() -> None:
    """What stands beside the element around everything, and looks as what is within, stays apart."""
    own_ids = OwnIds()
    for number, name in enumerate(NAMES):
        page = page_blocks(f"<div id={name}>{'<p>Tea' * 20}</div><div><p>Coffee</div>")
        assert len(_paths(own_ids, number, page)) == len(set(page.path_of.values()))


def test_ids_survive_as_plain_data_and_are_bounded() -> None:
    """After 300 pages no more than 64 are kept, and what comes back from JSON knows the same."""
    own_ids = OwnIds()
    for number in range(300):
        name = "".join(chr(97 + number // 26**power % 26) for power in range(3))
        _paths(own_ids, number, page_blocks(f"<div id={name}><p>Tea</div>"))
    ((_, seen),) = own_ids.to_list()
    assert len(seen) == 64
    again = OwnIds.from_list(json.loads(json.dumps(own_ids.to_list())))
    page = page_blocks("<div id=zzz><p>Tea</div>")
    assert again.shared_paths(999, page) == own_ids.shared_paths(999, page) != {}
