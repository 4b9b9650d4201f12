"""The living site lives the life that its seed says, and its truth is true."""

import asyncio
import gzip
import json
import math
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest

EXAMPLE_PROJECT = Path(__file__).parents[3] / "example_project"


@pytest.fixture(autouse=True, scope="module")
def _example_project_is_importable():
    sys.path.insert(0, str(EXAMPLE_PROJECT))
    yield
    sys.path.remove(str(EXAMPLE_PROJECT))


@pytest.fixture(scope="module")
def site():
    from living_site.site import Site

    return Site(seed=1)


def host_of(site, subject):
    return next(host for host in site.cast if host.subject == subject)


def test_it_has_at_least_500_pages_on_several_addresses(site):
    """The demo keeps 500 pages or more, on hosts which Scrapy tells apart."""
    assert len(site.pages) >= 500
    assert len({page.host.address for page in site.pages}) == len(site.cast) >= 8


def test_one_seed_gives_one_life(site):
    """Two sites with one seed have the same pages and change times; another seed gives others."""
    from living_site.site import Site

    lives = [(page.path, page.timeline) for page in site.pages]
    assert [(page.path, page.timeline) for page in Site(seed=1).pages] == lives
    assert [(page.path, page.timeline) for page in Site(seed=2).pages] != lives


def test_change_rates_differ_by_decades_and_some_pages_never_change(site):
    """From the fastest page to the slowest that changes there are three decades, and a fifth never change."""
    counts = [len(page.timeline.changes) for page in site.pages if page.timeline.born < 0]
    assert max(counts) > 1000
    assert min(count for count in counts if count) <= 2
    assert 0.15 < counts.count(0) / len(counts) < 0.5
    assert max(counts) <= 1.15 * site.horizon / 2.0 + 4 * math.sqrt(site.horizon / 2.0)  # none faster than every 2 s


def test_a_mass_edit_changes_a_whole_section_at_once(site):
    """On the law's host all eleven pages of a section change together, as often as the cast says."""
    law = host_of(site, "law")
    times = Counter(time for page in site.pages_of(law) for time in page.timeline.changes)
    expected = law.n_sections * site.horizon / law.mass_edit_interval
    assert sum(n == 11 for n in times.values()) == pytest.approx(expected, abs=4 * math.sqrt(expected))


def test_prices_change_in_bursts(site):
    """The index of dispersion of counts in windows of 10 s is far above a Poisson process's 1."""
    dispersions = []
    for page in site.pages_of(host_of(site, "prices")):
        counts = [0] * int(site.horizon / 10)
        for time in page.timeline.changes:
            counts[int(time / 10)] += 1
        mean = sum(counts) / len(counts)
        if mean > 0.05:
            dispersions.append(sum((n - mean) ** 2 for n in counts) / len(counts) / mean)
    assert sum(dispersions) / len(dispersions) > 2.0


def test_pages_move_vanish_and_return(site):
    """All three happen within the first minute, and a page which returns has changed."""
    lives = [page.timeline for page in site.pages]
    assert sum(life.moved < 60 for life in lives) >= 3
    assert sum(life.gone < 60 and math.isinf(life.returned) for life in lives) >= 2
    returning = [life for life in lives if math.isfinite(life.returned)]
    assert len(returning) >= 2
    for life in returning:
        assert life.is_alive(life.gone - 0.001)
        assert not life.is_alive((life.gone + life.returned) / 2)
        assert life.is_alive(life.returned)
        assert life.version(life.returned) > life.version(life.gone)


def test_two_fetches_differ_in_noise_and_only_a_change_changes_the_text(site):
    """Nonces, clocks and rotating links are no part of the text in <article>, which each version has for itself."""
    from random import Random

    from living_site import rendering

    noise = Random(5)
    page = next(page for page in site.pages_of(host_of(site, "news")) if len(page.timeline.changes) > 10)
    change = page.timeline.changes[3]
    first, second = (rendering.html(site, page, change + 0.001, "http://{address}:1", noise) for _ in range(2))
    before = rendering.html(site, page, change - 0.001, "http://{address}:1", noise)
    text = [html[html.index("<article>") : html.index("</article>")] for html in (before, first, second)]
    assert first != second
    assert text[1] == text[2] != text[0]


def test_sitemaps_are_honest_late_partial_and_stamped_now(site):
    """An honest lastmod is the last change, a late one is up to 8 s behind, stamped now is the moment of asking."""
    from living_site import rendering

    at = 1005.0  # 5 s after a late sitemap was rebuilt
    for host in site.cast:
        if host.sitemap in ("none", "absent file") or rendering.child_sitemaps(host):
            continue
        said = rendering.lastmods(site, host, rendering.sitemap_path(host), at)
        truth = {
            page.number: page.timeline.last_change(at)
            for page in site.pages_of(host)
            if page.timeline.is_alive(at) and page.timeline.last_change(at) is not None
        }
        right = [number for number, time in truth.items() if said[number] == time]
        if host.sitemap == "honest":
            assert len(right) == len(truth)
        elif host.sitemap == "late":
            assert len(right) < len(truth)
            assert max(said.values()) <= at // 8 * 8
        elif host.sitemap == "partial":
            assert 0.1 * len(truth) < len(right) < 0.9 * len(truth)
        else:
            assert set(said.values()) == {at}


class Running:
    """A site listening in this process, at a time that the test sets."""

    def __init__(self, seed, path):
        self.seed, self.path, self.at = seed, path, 0.0
        self.epoch = 1_790_000_000.0

    async def __aenter__(self):
        from living_site.server import Server, listen
        from living_site.site import Site
        from living_site.truth import TruthLog

        self.site = Site(self.seed)
        self.runner, self.port = await listen(
            lambda request: self.server.answer(request), [h.address for h in self.site.cast]
        )
        self.truth = TruthLog(self.path, self.site, self.epoch, self.port)
        self.server = Server(self.site, self.epoch, self.truth, self.port, clock=lambda: self.epoch + self.at)
        self.client = aiohttp.ClientSession(auto_decompress=True)
        return self

    async def __aexit__(self, *error):
        await self.client.close()
        await self.runner.cleanup()
        self.truth.close()

    async def get(self, address, path, at, **headers):
        self.at = at
        url = f"http://{address}:{self.port}{path}"
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.client.get(url, headers=names, allow_redirects=False) as response:
            return response, await response.read()


def run(test, tmp_path):
    """Run a coroutine function on a running site, and return its truth as read back."""
    from living_site.measuring import Truth

    async def whole():
        async with Running(1, tmp_path / "truth.jsonl") as running:
            await test(running)

    asyncio.run(whole())
    return Truth(tmp_path / "truth.jsonl").read()


def test_honest_validators_tell_the_truth_and_lying_ones_do_not(tmp_path):
    """304 before a change and 200 after it on the portal; on the shop 304 for ever; on the blog never."""

    async def test(running):
        for subject, before, after in (("portal", 304, 200), ("shop", 304, 304), ("blog", 200, 200)):
            pages = running.site.pages_of(host_of(running.site, subject))
            page = next(page for page in pages if page.timeline.changes and page.timeline.changes[0] > 5)
            change = page.timeline.changes[0]
            first, _ = await running.get(page.host.address, page.path, change - 2)
            same, _ = await running.get(page.host.address, page.path, change - 1, If_None_Match=first.headers["ETag"])
            other, _ = await running.get(
                page.host.address, page.path, change + 0.01, If_None_Match=first.headers["ETag"]
            )
            assert (first.status, same.status, other.status) == (200, before, after)

    truth = run(test, tmp_path)
    assert truth.statuses["page", 200] == 3 + 1 + 2
    assert len(truth.change_times) == 2  # the portal's page and the blog's; the shop hides its change


def test_last_modified_alone_is_honest_to_the_second(tmp_path):
    """On the law's host, which sends no ETag, If-Modified-Since gives 304 until the page changes."""

    async def test(running):
        pages = running.site.pages_of(host_of(running.site, "law"))
        page = next(page for page in pages if page.timeline.changes and page.timeline.changes[0] > 5)
        change = page.timeline.changes[0]
        first, _ = await running.get(page.host.address, page.path, change - 3)
        since = first.headers["Last-Modified"]
        assert "ETag" not in first.headers
        same, _ = await running.get(page.host.address, page.path, change - 1.5, If_Modified_Since=since)
        other, _ = await running.get(page.host.address, page.path, change + 0.1, If_Modified_Since=since)
        assert (same.status, other.status) == (304, 200)

    run(test, tmp_path)


def test_moved_gone_and_ill_pages_answer_so(tmp_path):
    """301 to the new address, 404 or 410 while away, 503, and 429 with the seconds that the spell will last."""

    async def test(running):
        site, forum = running.site, host_of(running.site, "forum")
        ill = sorted(site.unavailable[forum.address] + site.too_many[forum.address])

        def well_after(time):
            while site.spell(forum.address, time) is not None:
                time += 0.5
            return time

        moved = next(page for page in site.pages if page.moved_to is not None)
        response, _ = await running.get(forum.address, moved.path, well_after(moved.timeline.moved))
        assert response.status == 301
        assert response.headers["Location"].endswith(moved.moved_to.path)
        response, _ = await running.get(forum.address, moved.moved_to.path, well_after(moved.timeline.moved))
        assert response.status == 200
        gone = next(p for p in site.pages if p.timeline.gone < 60 and p.timeline.returned - p.timeline.gone > 30)
        response, _ = await running.get(forum.address, gone.path, well_after(gone.timeline.gone))
        assert response.status in (404, 410)
        for start, end in ill[:6]:
            response, _ = await running.get(forum.address, "/", (start + end) / 2)
            assert response.status in (503, 429)
            if response.status == 429:
                assert 1 <= int(response.headers["Retry-After"]) <= 5
        response, _ = await running.get(forum.address, "/robots.txt", (ill[0][0] + ill[0][1]) / 2)
        assert response.status == 200

    run(test, tmp_path)


def test_robots_txt_names_sitemaps_a_crawl_delay_and_what_is_forbidden(tmp_path):
    """The wiki forbids /private/, which is linked all the same; sitemaps come plain, compressed and as an index."""

    async def test(running):
        async def text(subject, path):
            response, body = await running.get(host_of(running.site, subject).address, path, 100.0)
            return response.status, body

        _, robots = await text("wiki", "/robots.txt")
        assert b"Disallow: /private/\nCrawl-delay: 0.2\nSitemap: http://127.0.0.19:" in robots
        _, front = await text("wiki", "/")
        assert b'href="/private/diary"' in front
        assert (await text("wiki", "/private/diary"))[0] == 200
        assert b"Sitemap" not in (await text("forum", "/robots.txt"))[1]
        assert b"Sitemap" in (await text("shop", "/robots.txt"))[1]
        assert (await text("shop", "/sitemap.xml"))[0] == 404
        assert (await text("portal", "/sitemap_index.xml"))[1].count(b"<sitemap>") == 2
        for subject, path in (("news", "/sitemap.xml.gz"), ("portal", "/sitemap-2.xml.gz")):
            _, body = await text(subject, path)
            assert gzip.decompress(body).count(b"<lastmod>") >= 28

    truth = run(test, tmp_path)
    assert truth.forbidden == 1


def test_freshness_is_exact(tmp_path):
    """A copy counts from its fetch to the page's next change, as a share of all living pages, whoever asks."""

    async def test(running):
        page = next(
            p
            for p in running.site.pages_of(host_of(running.site, "portal"))
            if 20 < (p.timeline.changes or [0])[0] < 90
        )
        self.page = page
        await running.get(page.host.address, page.path, 10.0)
        await running.get(page.host.address, page.path, 200.0)

    class self:  # noqa: N801 (a place to keep what the coroutine chose)
        page = None

    truth = run(test, tmp_path)
    change, epoch = self.page.timeline.changes[0], truth.epoch
    shares = [1 / alive for time, _, alive in truth.steps if epoch + 10.0 <= time <= epoch + change]
    measured = truth.freshness(epoch, epoch + 200.0)
    assert min(shares) * (change - 10.0) / 200.0 <= measured + 1e-12
    assert measured <= max(shares) * (change - 10.0) / 200.0 + 1e-12
    assert truth.freshness(epoch + change + 0.01, epoch + 200.0) == 0.0
    assert len(truth.first_visit_times) == len(truth.change_times) == 1


def test_a_constant_etag_hides_changes_and_the_copy_counts_as_stale(tmp_path):
    """A 304 that lies does not make an old copy fresh."""

    async def test(running):
        page = next(p for p in running.site.pages_of(host_of(running.site, "shop")) if p.timeline.changes)
        change = page.timeline.changes[0]
        first, _ = await running.get(page.host.address, page.path, change - 0.5)
        await running.get(page.host.address, page.path, change + 0.5, If_None_Match=first.headers["ETag"])
        running.end = change + 1.0
        await running.get(page.host.address, "/robots.txt", running.end)

    truth = run(test, tmp_path)
    assert truth.freshness_now() == 0.0
    assert truth.change_times == []


def test_the_truth_about_an_honest_sitemap(tmp_path):
    """It tells of every change; what is dated before the client's fetch announces nothing."""

    async def test(running):
        page = max(running.site.pages_of(host_of(running.site, "news")), key=lambda page: len(page.timeline.changes))
        await running.get(page.host.address, "/sitemap.xml.gz", 50.0)
        await running.get(page.host.address, page.path, 100.0)
        changes = [change for change in page.timeline.changes if change > 101.0]
        # Told at once, then fetched: an announcement. Fetched, then told: none.
        at = next(early for early, late in pairwise(changes) if late > early + 3.0) + 1.5
        await running.get(page.host.address, "/sitemap.xml.gz", at)
        await running.get(page.host.address, page.path, at + 0.1)
        at = next(early for early, late in pairwise(changes) if early > at + 20.0 and late > early + 3.0) + 1.5
        await running.get(page.host.address, page.path, at)
        await running.get(page.host.address, "/sitemap.xml.gz", at + 0.1)

    counts = run(test, tmp_path).sitemaps["127.0.0.12"]
    assert (counts.n_announcements, counts.n_true) == (1, 1)
    assert counts.n_told == counts.n_changes > 10
    assert (counts.precision, counts.recall) == (1.0, 1.0)
    # A change counts for who told of it first: here the sitemap of all but those that the second fetch found.
    assert counts.n_heard_first + counts.n_seen_first <= counts.n_changes + 1
    assert 0.0 < counts.recall_in_time < 1.0


def test_the_truth_about_sitemaps_that_lie_or_tell_half(tmp_path):
    """Stamped now announces every page at every look, and tells of nothing; partial tells of half the changes."""

    async def test(running):
        for subject in ("blog", "wiki"):
            for page in running.site.pages_of(host_of(running.site, subject)):
                await running.get(page.host.address, page.path, 90.0)
        for look in range(100):
            for subject in ("blog", "wiki"):
                await running.get(host_of(running.site, subject).address, "/sitemap.xml", 100.0 + 4.0 * look)

    sitemaps = run(test, tmp_path).sitemaps
    blog, wiki = sitemaps["127.0.0.16"], sitemaps["127.0.0.19"]
    assert blog.n_announcements == 99 * 56
    assert (blog.precision, blog.recall) == (0.0, 0.0)
    assert wiki.recall == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(wiki.n_changes))
    assert 0.4 < wiki.precision < 0.95


def test_the_log_is_in_order_and_can_be_read_while_it_grows(tmp_path):
    """Reading in two parts, with half a line between, gives what reading once gives."""
    from living_site.measuring import Truth

    async def test(running):
        for i in range(30):
            page = running.site.pages[7 * i]
            await running.get(page.host.address, page.path, 10.0 + i)

    whole = run(test, tmp_path)
    times = [json.loads(line)["time"] for line in whole.path.read_text().splitlines() if '"time"' in line]
    assert times == sorted(times)
    content = whole.path.read_bytes()
    part = tmp_path / "part.jsonl"
    part.write_bytes(content[: len(content) // 2])
    truth = Truth(part).read()
    part.write_bytes(content)
    truth.read()
    assert (truth.steps, truth.statuses, truth.arrivals) == (whole.steps, whole.statuses, whole.arrivals)


def test_an_empty_window_is_refused(tmp_path):
    """Freshness over no time has no meaning, and the message says so."""

    async def test(running):
        await running.get("127.0.0.11", "/", 1.0)

    with pytest.raises(ValueError, match=r"the window must not be empty, got start=2\.0 and end=2\.0"):
        run(test, tmp_path).freshness(2.0, 2.0)
