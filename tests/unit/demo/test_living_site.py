"""The living site lives the life that its seed says, and its truth is true."""

import asyncio
from itertools import pairwise

import aiohttp


def host_of(site, subject):
    return next(host for host in site.cast if host.subject == subject)


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
