"""The contents of the site: HTML with a text for each version, and with noise; sitemaps; robots.txt."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from html import escape
from random import Random

from living_site.cast import LATE_REBUILD, Host
from living_site.site import WORDS, Page, Site

DAY = 86_400.0


@lru_cache(maxsize=10_000)
def paragraph(key: str, n_words: int) -> str:
    """Return a paragraph that depends on the key alone."""
    return " ".join(Random(key).choices(WORDS, k=n_words)).capitalize() + "."


def article(site: Site, page: Page, at: float) -> str:
    """Return the page's own text at a time: two constant paragraphs, and one that every change rewrites."""
    key = f"{site.seed}/{page.host.number}{page.path}"
    version = page.timeline.version(at)
    return (
        f"<h1>{escape(page.title)}</h1>\n<p>{paragraph(f'{key}/first', 60)}</p>\n"
        f'<p class="news">{paragraph(f"{key}/{version}", 40)}</p>\n<p>{paragraph(f"{key}/last", 80)}</p>'
    )


def html(site: Site, page: Page, at: float, origin: str, noise: Random) -> str:
    """Return the whole page, noise included.

    Parameters
    ----------
    at
        Seconds since the site's epoch.
    origin
        The pattern of links to other hosts of the portal, with ``{address}`` in it: ``http://{address}:8000``.
    noise
        The source of nonces, counters and rotating links, which differ at every fetch, and are no change.
    """
    nonce = f"{noise.getrandbits(64):016x}"
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{escape(page.title)}</title><meta name="csrf-token" content="{nonce}">
<script>window.session = "{nonce}"; window.now = {at:.3f};</script></head>
<body data-request="{nonce[:8]}">
<!-- served {at:.3f} s after the epoch -->
<form action="/search"><input type="hidden" name="token" value="{nonce}"><input name="q"></form>
<article>
{article(site, page, at)}
</article>
{_links(site, page, origin)}{_visitors(page.host, noise)}{_read_on(site, page, noise)}</body>
</html>
"""


def _links(site: Site, page: Page, origin: str) -> str:
    links = [(path, path.strip("/").rpartition("/")[2]) for path in page.links]
    if page.path == "/" and page.host is site.cast[0]:
        links += [(origin.format(address=host.address) + "/", host.subject) for host in site.cast[1:]]
    if page.path == "/" and page.host.private:
        links += [(f"/private/{name}", name) for name in ("diary", "letters", "ledger")]
    lines = "".join(f'<li><a href="{href}">{escape(text)}</a></li>\n' for href, text in links)
    return f"<ul>\n{lines}</ul>\n" if lines else '<p><a href="/">Front page</a></p>\n'


def _visitors(host: Host, noise: Random) -> str:
    return f'<p class="visitors">You are visitor {noise.randrange(10**6):,} today.</p>\n' if host.visible_noise else ""


def _read_on(site: Site, page: Page, noise: Random) -> str:
    """Link to two other articles, which vary at every fetch under the same words: a rotating link is no change."""
    hub = site.page(page.host.address, page.path.rpartition("/")[0] + "/")
    others = hub.links if hub is not None and hub.links else page.links
    links = "".join(f'<a rel="related" href="{noise.choice(others)}">Read on</a> ' for _ in range(2)) if others else ""
    return f'<p class="related">{links}</p>\n'


def robots(host: Host, origin: str) -> str:
    """Return the host's robots.txt."""
    lines = ["User-agent: *", "Disallow: /private/" if host.private else "Disallow:"]
    if host.crawl_delay is not None:
        lines.append(f"Crawl-delay: {host.crawl_delay:g}")
    if host.sitemap != "none":
        lines.append(f"Sitemap: {origin.format(address=host.address)}{sitemap_path(host)}")
    return "\n".join(lines) + "\n"


def sitemap_path(host: Host) -> str:
    """Return the path of the host's sitemap as robots.txt names it."""
    return {"plain": "/sitemap.xml", "gzip": "/sitemap.xml.gz", "index": "/sitemap_index.xml"}[host.sitemap_form]


def w3c(epoch: float, at: float) -> str:
    """Return a time in the form of sitemaps, to the millisecond."""
    return datetime.fromtimestamp(epoch + at, UTC).isoformat(timespec="milliseconds")


def child_sitemaps(host: Host) -> list[str]:
    """Return the paths of the sitemaps that an index names; one of the two is compressed."""
    return ["/sitemap-1.xml", "/sitemap-2.xml.gz"] if host.sitemap_form == "index" else []


def lastmods(site: Site, host: Host, path: str, at: float) -> dict[int, float]:
    """Return the dates of a sitemap at a time: page number to ``lastmod``, in seconds since the epoch."""
    if host.sitemap == "late":
        at = at // LATE_REBUILD * LATE_REBUILD
    pages = site.pages_of(host)
    children = child_sitemaps(host)
    if path in children:
        pages = pages[children.index(path) :: len(children)]
    said = {}
    for page in pages:
        if page.timeline.is_alive(at):
            stamp = at if host.sitemap == "stamped now" else page.timeline.last_stamp(at)
            said[page.number] = stamp if stamp is not None else -DAY * (1 + page.number % 90)
    return said


def sitemap(site: Site, said: dict[int, float], epoch: float, origin: str) -> str:
    """Return a sitemap with these dates."""
    urls = {origin.format(address=site.pages[n].host.address) + site.pages[n].path: stamp for n, stamp in said.items()}
    return _sitemap_xml("urlset", "url", urls, epoch)


def sitemap_index(site: Site, host: Host, epoch: float, at: float, origin: str) -> str:
    """Return an index of the host's sitemaps with the date of each."""
    front = origin.format(address=host.address)
    children = {front + path: max(lastmods(site, host, path, at).values()) for path in child_sitemaps(host)}
    return _sitemap_xml("sitemapindex", "sitemap", children, epoch)


def _sitemap_xml(root: str, entry: str, locations: dict[str, float], epoch: float) -> str:
    lines = [f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">']
    for location, stamp in locations.items():
        lines.append(f"<{entry}><loc>{location}</loc><lastmod>{w3c(epoch, stamp)}</lastmod></{entry}>")
    return "\n".join([*lines, f"</{root}>\n"])
