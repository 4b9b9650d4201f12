"""Learned noise, flapping, and the size of a change."""

import json
import random
import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.change_detection import (
    MAX_HISTORY,
    LivingBlocks,
    NoiseMask,
    changed_share,
    compare,
    extended_history,
    is_flapping,
    page_blocks,
    shingle_similarity,
    sketch,
    sketch_similarity,
    template_of,
)

WORDS = [
    f"{first}{second}"
    for first in ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu")
    for second in ("ran", "sel", "tim", "vor", "wux", "yan")
]


def words(rng: random.Random, n: int) -> str:
    return " ".join(rng.choices(WORDS, k=n))


# Noise


def made_at(rng: random.Random) -> str:
    """A footer with the time of its making."""
    return f"<footer>Made at {rng.randrange(24)}:{rng.randrange(10, 60)} in 0.{rng.randrange(1000)} s</footer>"


def tokens(rng: random.Random) -> str:
    """What is made anew for each fetch, and no reader sees."""
    return f"<!-- {rng.random()} --><input type=hidden value={rng.random()}><script>{rng.random()}</script>"


NOISE: dict[str, Callable[[random.Random], str]] = {
    "counter": lambda rng: f"<p class=meta>{rng.randrange(10**6)} views</p>",
    "clock": made_at,
    "related": lambda rng: f"<ul class=related>{''.join(f'<li>{words(rng, 6)}' for _ in range(6))}</ul>",
    "shuffled": lambda rng: "<ol>" + "".join(f"<li>{tag}</li>" for tag in rng.sample("abcdefgh", 8)) + "</ol>",
    "long counter": lambda rng: f"<p class=count>Since the first of January it was read {rng.randrange(10**6)} times",
    "token": tokens,
    "made up id": lambda rng: f"<div id=ad-{rng.randrange(10**9)}><span>Buy {rng.choice(WORDS)}</span></div>",
}


def article(rng: random.Random) -> list[str]:
    """A page of some paragraphs with an author, a price and a list."""
    paragraphs = [f"<p>{words(rng, 25)} <a href=/x>{words(rng, 2)}</a> {words(rng, 3)}.</p>" for _ in range(8)]
    return [f"<h1>{words(rng, 5)}</h1>", f"<p class=price>{rng.randrange(100)}.50</p>", "<article>", *paragraphs,
            "</article>", f"<ul>{''.join(f'<li>{words(rng, 4)}</li>' for _ in range(5))}</ul>"]  # fmt: skip


def edited(parts: list[str], rng: random.Random) -> list[str]:
    """The same page with one word, or one number, replaced by another one."""
    position = rng.choice([number for number, part in enumerate(parts) if re.search(r">[^<]*\w", part)])
    spots = re.finditer(r"(?<=[ >])[\w.]+(?=[ <.])", parts[position])
    spot = rng.choice([match for match in spots if match[0] not in ("a", "href", "class")])
    new = f"{rng.randrange(100, 1000)}.50" if spot[0][0].isdigit() else "otherword"
    changed = list(parts)
    changed[position] = parts[position][: spot.start()] + new + parts[position][spot.end() :]
    return changed


def served(parts: list[str], noise: list[str], rng: random.Random) -> str:
    """A page with its noise, as one fetch gets it; a named box moves between three places."""
    body = list(parts)
    if "moving box" in noise:
        body.insert(
            rng.choice([1, 2, len(body)]), f"<div class=promo><b>{words(rng, 5)}</b><p>{words(rng, 3)}</p></div>"
        )
    tail = "".join(make(rng) for name, make in NOISE.items() if name in noise)
    return f"<html><head><title>Page</title></head><body>{''.join(body)}{tail}</body></html>"


@pytest.mark.parametrize("noise", [*NOISE, "moving box"])
def test_every_kind_of_noise_is_learned_and_hides_no_content(noise: str) -> None:
    """After 6 probes nothing but a change of the content looks like one."""
    rng = random.Random(noise)
    parts = article(rng)
    mask = NoiseMask()
    for _ in range(6):
        mask.learn([page_blocks(served(parts, [noise], rng)) for _ in range(2)])
    baseline = mask.living(page_blocks(served(parts, [noise], rng)))
    for _ in range(30):
        assert mask.living(page_blocks(served(parts, [noise], rng))) == baseline
        assert mask.living(page_blocks(served(edited(parts, rng), [noise], rng))) != baseline


def test_a_template_with_all_noises_gives_one_false_change_in_a_hundred_at_most() -> None:
    """200 pages of one template, 6 visits each, an edit of one word or number at every third visit.

    A visit that looks changed is confirmed by a second fetch at once with probability `doubt`, as the crawl does; the
    mask learns from the two. Of the visits without an edit at most 1 % count as changed, and of the edits at least
    97 % do; probes are few.
    """
    rng = random.Random(20)
    noise = [*NOISE, "moving box"]
    mask = NoiseMask()
    recipe = LivingBlocks(lambda url: mask)
    n_false = n_quiet = n_seen = n_edits = n_probes = n_visits = 0
    for _ in range(200):
        parts = article(rng)
        previous = None
        for visit in range(6):
            is_edited = visit % 3 == 2
            parts = edited(parts, rng) if is_edited else parts
            bodies = [served(parts, noise, rng).encode()]
            current = recipe.fingerprint(bodies[0], "text/html", None, "")
            if (previous is None or compare(previous, current)) and rng.random() < mask.doubt:
                bodies.append(served(parts, noise, rng).encode())
                mask.learn([recipe.blocks(body, "text/html", None) for body in bodies])
                current = recipe.fingerprint(bodies[0], "text/html", None, "")
            changed = None if previous is None else compare(previous, current)
            previous = current
            n_probes += len(bodies) - 1
            n_visits += 1
            if is_edited:
                n_edits += 1
                n_seen += changed is True
            elif visit:
                n_quiet += 1
                n_false += changed is True
    assert n_false <= 0.01 * n_quiet
    assert n_seen >= 0.97 * n_edits
    assert n_probes < 0.1 * n_visits


def test_what_is_not_noise_is_never_masked() -> None:
    """Probes of a page that is the same each time teach nothing, and leave the recipe as it was."""
    rng = random.Random(1)
    page = page_blocks(served(article(rng), [], rng))
    mask = NoiseMask()
    assert not any(mask.learn([page, page]) for _ in range(20))
    assert (mask.n_rules, mask.rules_id) == (0, "")
    assert mask.doubt < 0.1


def test_a_wall_that_comes_between_two_fetches_teaches_nothing() -> None:
    """Else all of the article would be noise from then on, and no edit be seen on any page of the template."""
    article = "<article><h1>Tea</h1><p>It is made of leaves.</p><p>And water.</p></article><p class=now>12:0{}</p>"
    wall = page_blocks("<h2>Please log in</h2><div>It costs nothing but your address.</div>")
    mask = NoiseMask()
    assert mask.learn([page_blocks(article.format(1)), page_blocks(article.format(2))])
    rules = mask.rules_id
    assert not mask.learn([page_blocks(article.format(3)), wall])
    assert not mask.learn([wall, page_blocks(article.format(4))])
    assert not mask.learn([page_blocks(article.format(3)), page_blocks("")])
    assert (mask.rules_id, mask.n_probes, mask.n_quiet) == (rules, 4, 3)
    assert "leaves" in mask.living(page_blocks(article.format(5)))


def test_noise_returns_to_the_living_when_it_stops_to_flicker() -> None:
    """Then its text counts again; noise that flickers on does not return."""
    page = "<p>Tea<p class=views>{}<p class=now>{}"
    mask = NoiseMask()
    for number in range(10):
        mask.learn([page_blocks(page.format(number, number)), page_blocks(page.format(number + 1, number + 1))])
    assert mask.n_rules == 2
    noisy_id = mask.rules_id
    for number in range(10):
        mask.learn([page_blocks(page.format(5, number)), page_blocks(page.format(5, number + 1))])
    assert mask.n_rules == 1
    assert mask.rules_id != noisy_id
    five, six = (mask.living(page_blocks(page.format(number, 0))) for number in (5, 6))
    assert five != six
    assert mask.living(page_blocks(page.format(5, 0))) == mask.living(page_blocks(page.format(5, 1)))


def test_noise_that_flickers_rarely_stays_noise() -> None:
    """Once in ten probes: it takes more than nine equal ones to believe that it has stopped."""
    page = "<p>Tea<p class=rare>{}"
    mask = NoiseMask()
    for number in range(200):
        mask.learn([page_blocks(page.format(0)), page_blocks(page.format(number % 10 == 0))])
        assert number < 40 or mask.n_rules == 1


def test_noise_among_content_with_the_same_path_hides_nothing() -> None:
    """An unnamed paragraph that is inserted anywhere shifts all others: they go on counting, and it is said."""
    rng = random.Random(3)
    paragraphs = [f"<p>{words(rng, 12)}" for _ in range(10)]

    def fetch(content: list[str]) -> str:
        place = rng.randrange(len(content) // 2)
        return "".join([*content[:place], f"<p>{words(rng, 5)}", *content[place:]])

    mask = NoiseMask()
    for _ in range(10):
        mask.learn([page_blocks(fetch(paragraphs)), page_blocks(fetch(paragraphs))])
    assert mask.n_mixed > 0
    whole = mask.living(page_blocks("".join(paragraphs)))
    assert sum(paragraph.removeprefix("<p>") in whole for paragraph in paragraphs) >= 9


def test_a_mask_stays_within_its_bounds() -> None:
    """What finds no room is counted."""
    rng = random.Random(4)
    mask = NoiseMask(max_rules=10)
    for _ in range(5):
        mask.learn([page_blocks("".join(f"<p class={name}>{rng.random()}" for name in WORDS)) for _ in range(2)])
    assert mask.n_rules == 10
    assert mask.n_refused >= len(WORDS) - 10


def test_a_mask_survives_as_plain_data() -> None:
    """Through JSON and back it ignores, learns and doubts the same."""
    rng = random.Random(5)
    parts = article(rng)
    noise = [*NOISE, "moving box"]
    mask = NoiseMask()
    for _ in range(4):
        mask.learn([page_blocks(served(parts, noise, rng)) for _ in range(2)])
    copy = NoiseMask.from_dict(json.loads(json.dumps(mask.to_dict())))
    assert copy.to_dict() == mask.to_dict()
    assert (copy.rules_id, copy.doubt, copy.n_probes) == (mask.rules_id, mask.doubt, mask.n_probes)
    page = page_blocks(served(parts, noise, rng))
    assert copy.living(page) == mask.living(page)


def test_another_mask_is_another_recipe_and_the_same_rules_are_the_same() -> None:
    """A page is re-baselined when its template's noise is learned, and not when learning finds nothing new."""
    mask = NoiseMask()
    recipe = LivingBlocks(lambda url: mask, links=True)
    one, two = b"<p>Tea<p class=x>1</p>", b"<p>Tea<p class=x>2</p>"
    before = recipe.fingerprint(one, "text/html", None, "")
    assert compare(before, recipe.fingerprint(two, "text/html", None, "")) is True
    fetches = [recipe.blocks(body, "text/html", None) for body in (one, two)]
    assert mask.learn(fetches)
    learned = recipe.fingerprint(two, "text/html", None, "")
    assert compare(before, learned) is None
    assert not mask.learn(fetches)
    assert compare(learned, recipe.fingerprint(one, "text/html", None, "")) is False


def test_links_count_by_option_in_blocks_too() -> None:
    """A page whose download link moved has changed for many readers."""
    one, two = b"<p><a href=/1.pdf>File</a>", b"<p><a href=/2.pdf>File</a>"
    for links, changed in ((False, False), (True, True)):
        recipe = LivingBlocks(links=links)
        assert compare(*(recipe.fingerprint(body, "text/html", None, "") for body in (one, two))) is changed


@pytest.mark.parametrize("n", [0, 1])
def test_noise_is_learned_from_two_fetches_at_least(n: int) -> None:
    """One sentence says so."""
    with pytest.raises(ValueError, match=rf"^fetches has {n} of a page; noise is learned from two at least\.$"):
        NoiseMask().learn([page_blocks("<p>a")] * n)
    with pytest.raises(ValueError, match=r"^max_rules is 0; a mask needs room for at least 1\.$"):
        NoiseMask(max_rules=0)


# Flapping


def test_a_page_that_goes_back_and_forth_is_recognised() -> None:
    """From its second return on, known contents are no change; new content is one."""
    history: list[bytes] = []
    seen = []
    for digest in [b"a", b"b", b"a", b"b", b"a", b"c", b"a", b"b"]:
        seen.append(is_flapping(history, digest))
        history = extended_history(history, digest)
    assert seen == [False, False, False, False, True, False, True, True]


def test_a_page_that_is_reverted_once_has_changed_twice() -> None:
    """A, B, A is no flapping, and neither is a page that stays as it is."""
    assert not is_flapping([b"a", b"b"], b"a")
    assert not is_flapping([b"a", b"b", b"a", b"b"], b"b")


@given(st.lists(st.binary(max_size=2), max_size=40))
def test_the_history_of_a_page_is_bounded(digests: list[bytes]) -> None:
    """And holds no content twice in a row."""
    history: list[bytes] = []
    for digest in digests:
        history = extended_history(history, digest)
        assert len(history) <= MAX_HISTORY
        assert history[-1] == digest
    assert all(one != two for one, two in pairwise(history))


# Size of a change


def test_the_size_of_a_change_is_the_share_of_blocks_that_differ() -> None:
    """Moved blocks are not changed ones."""
    page = "<p>a<p>b<p>c<p>d"
    assert changed_share(page_blocks(page), page_blocks("<p>d<p>c<p>b<p>a")) == 0.0
    assert changed_share(page_blocks(page), page_blocks("<p>a<p>b<p>c<p>e")) == 0.25
    assert changed_share(page_blocks(page), page_blocks("<p>x")) == 1.0
    assert changed_share(page_blocks(""), page_blocks("")) == 0.0


def test_sketches_estimate_the_similarity_of_texts_within_their_error() -> None:
    """Errors over 40 pairs of texts have the spread that the sampling of 64 shingles gives."""
    rng = random.Random(6)
    errors = []
    for _ in range(40):
        one = words(rng, 400).split()
        two = [rng.choice(WORDS) if rng.random() < 0.1 else word for word in one]
        exact = shingle_similarity(" ".join(one), " ".join(two))
        errors.append(sketch_similarity(sketch(" ".join(one)), sketch(" ".join(two))) - exact)
    standard_error = 0.5 / 64**0.5
    assert sum(error**2 for error in errors) / len(errors) < 1.5 * standard_error**2
    assert abs(sum(errors) / len(errors)) < 4 * standard_error / len(errors) ** 0.5


@given(st.text(max_size=100), st.text(max_size=100))
def test_similarities_are_symmetric_and_one_for_equal_texts(one: str, two: str) -> None:
    """From 0 to 1; for short texts the sketch is exact."""
    assert shingle_similarity(one, one) == sketch_similarity(sketch(one), sketch(one)) == 1.0
    assert 0.0 <= shingle_similarity(one, two) == shingle_similarity(two, one) <= 1.0
    assert sketch_similarity(sketch(one), sketch(two)) == pytest.approx(shingle_similarity(one, two))


# Templates


def test_pages_of_one_pattern_have_one_template() -> None:
    """Numbers and names made of several words do not count; host, words and the keys of a query do."""
    same = ["https://a.example/news/2026/tea-is-back.html", "http://A.example/news/2025/more-tea.html#x"]
    assert len({template_of(url) for url in same}) == 1
    others = ["https://a.example/", "https://a.example/blog/2026/tea-is-back.html", "https://b.example/news/2026/a-b.html",
              "https://a.example/news/2026/tea-is-back.html?page=1"]  # fmt: skip
    assert len({template_of(url) for url in [same[0], *others]}) == 5


@given(st.text(max_size=200))
def test_no_url_makes_it_raise(url: str) -> None:
    """Arbitrary text."""
    assert len(template_of(f"http://a/{url}")) < 1000
