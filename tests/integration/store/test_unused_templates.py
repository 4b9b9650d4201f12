"""Request templates that no page names any more are deleted, and no other."""

from __future__ import annotations

from crawlsched.store import Batch, NewPage, Store


def _page(number: int, template: bytes) -> NewPage:
    return NewPage(number, f"http://a/{number}", "a", bytes([number]) * 20, 0.0, template)


def test_only_templates_that_no_page_names_are_deleted(database_url: str) -> None:
    """A page that came to another request leaves its old one behind, unless others have it, too."""
    store = Store.open(database_url, "test", upgrade=True)
    old, new, shared = b"o" * 16, b"n" * 16, b"s" * 16
    store.save(
        Batch(
            new_pages={0: _page(0, old), 1: _page(1, shared), 2: _page(2, shared)},
            templates={old: {"priority": 1}, shared: {"priority": 2}},
        )
    )
    assert store.forgetting.prune_templates() == 0
    store.save(Batch(contents={0: {"template": new}, 1: {"template": new}}, templates={new: {"priority": 3}}))
    assert store.forgetting.prune_templates() == 1
    facts = store.reader.facts([0, 1, 2])
    assert [fact.template_data for fact in facts if fact is not None] == [
        {"priority": 3},
        {"priority": 3},
        {"priority": 2},
    ]
    store.close()
