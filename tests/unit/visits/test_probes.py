"""Second fetches: how many there are at most, whatever a site is like."""

from __future__ import annotations

from random import Random

from crawlsched.cli.recorded import RecordedVisit, judge_all

WORDS = ("alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "pi", "rho")


def test_where_each_page_has_a_template_of_its_own_edits_are_told_without_second_fetches() -> None:
    """Three for each would be a fifth of the visits: 5 in a hundred and 100 more are made, and some hosts asked."""
    rng = Random(1)
    paragraphs = {page: [" ".join(rng.choices(WORDS, k=30)) for _ in range(5)] for page in range(120)}
    visits, edited = [], []
    for visit in range(1800):
        page, turn = visit % 120, visit // 120
        if turn % 2:
            paragraphs[page][rng.randrange(5)] = " ".join(rng.choices(WORDS, k=30))
        url = f"http://s{page}.example/{WORDS[page % 14]}"
        said = "".join(f"<p>{text}</p>" for text in paragraphs[page])
        bodies = [f"<h1>{url}</h1>{said}<footer>{rng.random()}</footer>".encode() for _ in range(2)]
        visits.append(RecordedVisit(1.7e9 + 600.0 * visit, url, *bodies, content_type="text/html"))
        edited.append(turn % 2 == 1)
    judged = list(judge_all(visits, {}))
    assert sum(row.probes for row in judged) <= 0.05 * len(visits) + 100 + 12
    assert all(row.delivered for row, is_edited in zip(judged, edited, strict=True) if is_edited)
