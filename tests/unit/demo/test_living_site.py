"""The living site lives the life that its seed says, and its truth is true."""

import asyncio

import aiohttp


def test_freshness_is_exact(tmp_path):
    """A copy counts from its fetch to the page's next change, as a share of all living pages, whoever asks."""
    from living_site.measuring import Truth
    from living_site.server import Server, listen
    from living_site.site import Site
    from living_site.truth import TruthLog

    site, epoch, at = Site(1), 1_790_000_000.0, [0.0]
    (portal,) = (host for host in site.cast if host.subject == "portal")
    page = next(page for page in site.pages_of(portal) if 20 < (page.timeline.changes or [0])[0] < 90)

    async def fetched_twice():
        runner, port = await listen(lambda request: server.answer(request), [host.address for host in site.cast])
        log = TruthLog(tmp_path / "truth.jsonl", site, epoch, port)
        server = Server(site, epoch, log, port, clock=lambda: epoch + at[0])
        async with aiohttp.ClientSession() as client:
            for at[0] in (10.0, 200.0):
                async with client.get(f"http://{portal.address}:{port}{page.path}", allow_redirects=False):
                    pass
        await runner.cleanup()
        log.close()

    asyncio.run(fetched_twice())
    truth, change = Truth(tmp_path / "truth.jsonl").read(), page.timeline.changes[0]
    shares = [1 / alive for time, _, alive in truth.steps if epoch + 10.0 <= time <= epoch + change]
    measured = truth.freshness(epoch, epoch + 200.0)
    assert min(shares) * (change - 10.0) / 200.0 <= measured + 1e-12
    assert measured <= max(shares) * (change - 10.0) / 200.0 + 1e-12
    assert truth.freshness(epoch + change + 0.01, epoch + 200.0) == 0.0
    assert len(truth.first_visit_times) == len(truth.change_times) == 1
