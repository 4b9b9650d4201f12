"""Second fetches: how many there are at most, whatever a site is like."""

from collections import Counter
from random import Random

from crawlsched.change_detection.fingerprint import Fingerprint
from crawlsched.change_detection.template_noise import TemplateNoise
from crawlsched.content.reading import Content
from crawlsched.crawl.probes import Probe, Probes
from crawlsched.jobs.recorded import RecordedVisit, judge_all

WORDS = ("alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "pi", "rho")


def test_where_each_page_has_a_template_of_its_own_edits_are_told_without_second_fetches() -> None:
    """Three for each would be a fifth of the visits: 5 in a hundred and 30 more are made, and some hosts asked."""
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
    assert sum(row.probes for row in judged) <= 0.05 * len(visits) + 30 + 12
    assert all(row.delivered for row, is_edited in zip(judged, edited, strict=True) if is_edited)


def test_pages_that_share_a_template_teach_what_is_noise_however_many_templates_there_are() -> None:
    """Twenty of eight pages: what changes at each fetch is told of five pages of each at most, and of nobody later."""
    rng, n_templates, n_pages = Random(1), 20, 8
    visits, templates = [], []
    for visit in range(2 * n_templates * n_pages):
        template, page = divmod(visit % (n_templates * n_pages), n_pages)
        url = f"http://s{template}.example/{WORDS[template % 14]}/{page}"
        said = "".join(f"<p>{' '.join(Random(f'{url} {n}').choices(WORDS, k=30))}</p>" for n in range(5))
        bodies = [f"<h1>{url}</h1>{said}<footer>{rng.random()}</footer>".encode() for _ in range(2)]
        visits.append(RecordedVisit(1.7e9 + 600.0 * visit, url, *bodies, content_type="text/html"))
        templates.append(template)
    second = list(zip(judge_all(visits, {}), templates, strict=True))[n_templates * n_pages :]
    told = Counter(template for row, template in second if row.delivered)
    assert max(told.values()) <= 5
    assert sum(row.probes for row, _ in second) <= 4 * n_templates


def test_of_announced_changes_one_visit_in_six_waits_for_a_second_fetch_and_of_others_each() -> None:
    """Pages of templates that are not known: an announcement speaks for a change, silence does not."""
    content = Content("http://a/", Fingerprint("bytes/1", b"x"), None)

    def n_asked(*, announced: bool) -> int:
        probes = Probes(Random(1), lambda: False)
        for _ in range(120):
            probes.visited(is_again=False)
        for page in range(120):
            probes.visited(is_again=True)
            noise = TemplateNoise()
            if not probes.knows(noise, announced=announced) and probes.may_ask(page, 0, noise):
                probes.ask(Probe(page, 0, content, True, False, 0.0))
                assert probes.next_due(1.0, lambda host: True) is not None
        return probes.n_asked

    assert (n_asked(announced=True), n_asked(announced=False)) == (120 // 6, 30 + 6)


def test_where_a_host_has_no_room_nothing_is_fetched_twice() -> None:
    """Not asked for, and what was asked for to learn from it is given up; a visit that waits for it is judged by it."""
    content = Content("http://a/", Fingerprint("bytes/1", b"x"), None)
    full = {1}
    probes = Probes(Random(1), lambda: False, has_room=lambda host: host not in full)
    assert (probes.may_ask(0, 0, None), probes.may_ask(0, 1, None)) == (True, False)
    to_learn, held = (Probe(page, 0, content, page == 1, False, 0.0) for page in (0, 1))
    probes.ask(to_learn)
    probes.ask(held)
    full.add(0)
    assert probes.next_due(1.0, lambda host: True) is held
    assert probes.give_up(asked_before=0.0) == [to_learn]


def test_two_fetches_of_a_page_lie_a_second_apart() -> None:
    """A clock of seconds differs each time then; a page that cannot exist is asked for at once."""
    content = Content("http://a/", Fingerprint("bytes/1", b"x"), None)
    probes = Probes(Random(1), lambda: False)
    second, urgent = (Probe(0, 0, content, True, False, 5.0, is_urgent=urgent) for urgent in (False, True))
    probes.ask(second)
    assert probes.next_due(5.9, lambda host: True) is None
    probes.ask(urgent)
    assert [probes.next_due(now, lambda host: True) for now in (5.0, 6.0)] == [urgent, second]
