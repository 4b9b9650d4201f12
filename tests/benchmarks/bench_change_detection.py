"""How long fingerprints and sitemaps take, against alternatives measured in the same run.

Usage: python -m tests.benchmarks.bench_change_detection
"""

import asyncio
import gc
import hashlib
import itertools
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from lxml import etree
from scrapy.utils.sitemap import Sitemap

from crawlsched.change_detection import (
    Detector,
    Recipe,
    Seen,
    SharedTexts,
    TemplateNoise,
    page_blocks,
)
from crawlsched.change_signals import announcements, read_sitemap
from crawlsched.content.reading import Body, Content, read_content
from tests.noisy_pages import Counts, Judge, real_pages, visits_of_a_site, visits_of_real_pages

URL = "https://www.example.com/sitemap.xml"
WORDS = [f"word{number:03d}" for number in range(997)]


def page(n_bytes: int, rng: random.Random) -> bytes:
    """Make an HTML page like those of a news site: navigation, paragraphs with links, scripts, lists of headlines."""
    parts = ["<!DOCTYPE html><html><head><title>News</title><style>p{color:red}</style></head><body><nav><ul>"]
    parts += [f'<li class="nav-item"><a href="/section/{number}">Section {number}</a></li>' for number in range(40)]
    parts.append("</ul></nav>")
    size = 0
    while size < n_bytes - 4000:
        words = " ".join(rng.choices(WORDS, k=60))
        parts.append(
            f'<div class="block b{size % 7}"><h2 id="h{size}">{words[:40]}</h2><p>{words} &amp; '
            f'<a href="/a/{size}?x=1">more</a> caf&eacute;</p>'
            f'<img src="/i/{size}.jpg" alt="x"><script>var a = "<p>{size}</p>";</script></div>'
        )
        size += len(parts[-1])
    return "".join([*parts, "</body></html>"]).encode()


def sitemap(n: int) -> bytes:
    """Make a sitemap of n pages."""
    entries = [
        f"  <url>\n    <loc>https://www.example.com/section/{number % 97}/article-{number}?a=1&amp;b=2</loc>\n"
        f"    <lastmod>2026-{1 + number % 12:02d}-{1 + number % 28:02d}T{number % 24:02d}:{number % 60:02d}:00+00:00"
        "</lastmod>\n    <changefreq>daily</changefreq>\n    <priority>0.5</priority>\n  </url>\n"
        for number in range(n)
    ]
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset>\n{"".join(entries)}</urlset>\n'.encode()


def cpu_seconds(function: Callable[[], object], repeat: int) -> float:
    """CPU seconds of one call, the best of several: other work on the machine does not count."""
    best = float("inf")
    for _ in range(repeat):
        start = time.thread_time()
        function()
        best = min(best, time.thread_time() - start)
    return best


def lateness(function: Callable[[], object]) -> tuple[float, float]:
    """Lateness (99th percentile and greatest, in seconds) of a 1 ms tick in this thread while another one works."""
    worker = threading.Thread(target=function)
    late = []
    worker.start()
    due = time.perf_counter()
    while worker.is_alive():
        due += 0.001
        time.sleep(max(due - time.perf_counter(), 0.0))
        late.append(time.perf_counter() - due)
        due = max(due, time.perf_counter() - 0.001)
    late.sort()
    return late[int(len(late) * 0.99)], late[-1]


def scrapy_texts(body: bytes) -> str:
    """What a spider would do for the text of a page."""
    root = etree.fromstring(body, etree.HTMLParser(encoding="utf-8"))
    return " ".join("".join(root.itertext()).split())


def bench_fingerprints() -> None:
    """Fingerprints of a page of 100 KB."""
    body = page(100_000, random.Random(1))
    reference = cpu_seconds(lambda: scrapy_texts(body), 30)
    rows = [("lxml: parse, itertext, join", reference)]
    for name, recipe in (
        ("raw bytes", Recipe("raw_bytes")),
        ("visible text", Recipe("visible_text")),
        ("visible text, links, images", Recipe("visible_text", links=True, images=True)),
        ("blocks", Recipe()),
        ("selectors: drop two", Recipe("visible_text", drop=["nav", ".b3"])),
        ("selectors: keep one, drop one", Recipe("visible_text", keep=["div"], drop=[".b3"])),
    ):
        rows.append((name, cpu_seconds(lambda r=recipe: r.fingerprint(body, "text/html", "utf-8", URL), 30)))
    rows.append(("sha1 of the bytes", cpu_seconds(lambda: hashlib.sha1(body).digest(), 30)))
    print(f"\nFingerprint of a page of {len(body):,} bytes ({body.count(b'<'):,} tags)")
    print(f"{'':34s}{'CPU ms':>10s}{'of lxml':>10s}")
    for name, seconds in rows:
        print(f"{name:34s}{1e3 * seconds:10.2f}{seconds / reference:10.2f}")


def bench_hostile() -> None:
    """Bodies that are made to take long: 1 and 8 times the size should take about 8 times as long."""
    print(
        "\nHostile bodies; visible text, a selector, blocks: CPU ms at 250 KB and at 2 MB, and the growth (8: linear)"
    )
    recipes = (Recipe("visible_text"), Recipe("visible_text", drop=["nav"]), Recipe())
    for unit in (b"<div>", b"<a", b"<a b='", b"<!--", b"<script>", b"</x>", b"&", b"<a b=\"> '", b"<p>x"):
        cells = []
        for recipe in recipes:
            bodies = [unit * (n // len(unit)) for n in (250_000, 2_000_000)]
            small, large = (
                cpu_seconds(lambda r=recipe, body=body: r.fingerprint(body, "text/html", None, URL), 2)
                for body in bodies
            )
            cells.append(f"{1e3 * small:8.1f}{1e3 * large:9.1f}{large / max(small, 1e-4):7.1f}")
        print(f"{unit.decode():12s}{'   '.join(cells)}")


def bench_sitemaps() -> None:
    """A sitemap of 50,000 entries: time against Scrapy's reader, and what another thread feels of it."""
    body = sitemap(50_000)
    ours = cpu_seconds(lambda: read_sitemap(body, URL), 5)
    theirs = cpu_seconds(lambda: sum(1 for _ in Sitemap(body)), 3)
    entries = read_sitemap(body, URL).entries
    stored = {entry.url: None if entry.lastmod is None else entry.lastmod - 1 for entry in entries}
    comparing = cpu_seconds(lambda: announcements(entries, stored), 5)
    print(f"\nSitemap of {len(entries):,} entries, {len(body) / 1e6:.1f} MB")
    print(f"{'':34s}{'CPU ms':>10s}{'of Scrapy':>10s}")
    print(f"{'scrapy.utils.sitemap':34s}{1e3 * theirs:10.0f}{1.0:10.2f}")
    print(f"{'read_sitemap':34s}{1e3 * ours:10.0f}{ours / theirs:10.2f}")
    print(f"{'announcements':34s}{1e3 * comparing:10.0f}{comparing / theirs:10.2f}")
    gc.collect()
    gc.freeze()  # as the crawl does after loading its pages
    print(f"\n{'Lateness of a 1 ms tick meanwhile':34s}{'p99 ms':>10s}{'max ms':>10s}")
    for name, function in (
        ("nothing else (sleep)", lambda: time.sleep(0.7)),
        ("read_sitemap", lambda: read_sitemap(body, URL)),
        ("announcements", lambda: announcements(entries, stored)),
        ("scrapy.utils.sitemap", lambda: list(Sitemap(body))),
        ("one etree.fromstring", lambda: etree.fromstring(body)),
    ):
        p99, greatest = lateness(function)
        print(f"{name:34s}{1e3 * p99:10.2f}{1e3 * greatest:10.2f}")


def bench_reading() -> None:
    """What a visit costs: fingerprint, text and sketches of a new content, and what the slot clock feels of it."""
    recipe = Recipe()
    rng = random.Random(2)
    body = Body(page(100_000, rng), "text/html", "utf-8", URL)
    other = Seen(URL, page_blocks(page(100_000, rng).decode()))
    huge = body._replace(body=page(2_000_000, rng))
    content = read_content(body, recipe)
    same = content.fingerprint.digest
    assert content.seen is not None
    seen = content.seen
    reference = cpu_seconds(lambda: scrapy_texts(body.body), 30)
    print(f"\nReading a response of {len(body.body):,} bytes, as the crawl does")
    print(f"{'':34s}{'CPU ms':>10s}{'of lxml':>10s}")
    for name, function in (
        ("unchanged", lambda: read_content(body, recipe, before=same)),
        ("changed: text and sketches, too", lambda: read_content(body, recipe)),
        ("judged against another page", lambda: Detector(TemplateNoise(), SharedTexts()).judge(seen, other.trace, 0.0)),
        ("changed, its text kept", lambda: read_content(body, recipe, text_bytes=20_000)),
    ):
        seconds = cpu_seconds(function, 15)
        print(f"{name:34s}{1e3 * seconds:10.2f}{seconds / reference:10.2f}")
    print(f"\n{'Lateness of a 1 ms tick meanwhile':34s}{'p99 ms':>10s}{'max ms':>10s}")
    for name, function in (
        ("nothing else (sleep)", lambda: time.sleep(0.7)),
        ("100 KB, twenty in a thread", lambda: [read_content(body, recipe) for _ in range(20)]),
        ("2 MB in a thread", lambda: read_content(huge, recipe)),
    ):
        interval = sys.getswitchinterval()
        sys.setswitchinterval(0.0005)  # as the crawl does
        p99, greatest = lateness(function)
        sys.setswitchinterval(interval)
        print(f"{name:34s}{1e3 * p99:10.2f}{1e3 * greatest:10.2f}")


async def ticks(seconds: float, work: Callable[[], Awaitable[object]]) -> tuple[float, float, float]:
    """Lateness of a tick each 5 ms on an event loop beside work: median, 99th percentile, greatest, in seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds

    async def at_work() -> None:
        while loop.time() < end:
            await work()
            await asyncio.sleep(0.005)

    working = asyncio.ensure_future(at_work())
    late = []
    due = loop.time() + 0.005
    while due < end:
        await asyncio.sleep(max(due - loop.time(), 0.0))
        late.append(loop.time() - due)
        due = max(due + 0.005, loop.time())
    await working
    late.sort()
    return late[len(late) // 2], late[int(len(late) * 0.99)], late[-1]


def longest_call(function: Callable[[], object]) -> tuple[float, str]:
    """CPU seconds of the longest call into C, which may keep the interpreter's lock for so long, and its name."""
    found: dict[str, float] = {}
    for _ in range(9):
        calls: dict[str, float] = {}
        begun: list[float] = []

        def profile(frame: object, event: str, argument: object, begun=begun, calls=calls) -> None:
            if event == "c_call":
                begun.append(time.thread_time())
            elif event in ("c_return", "c_exception") and begun:
                name = getattr(argument, "__qualname__", str(argument))
                calls[name] = max(calls.get(name, 0.0), time.thread_time() - begun.pop())

        sys.setprofile(profile)
        function()
        sys.setprofile(None)
        for name, seconds in calls.items():
            found[name] = min(found.get(name, seconds), seconds)
    return max((seconds, name) for name, seconds in found.items())


def bench_event_loop() -> None:
    """What the event loop feels of pages of 100 KB that are read in a thread, as the crawl does, and on the loop."""
    recipe = Recipe()
    bodies = itertools.cycle(Body(page(100_000, random.Random(n)), "text/html", "utf-8", URL) for n in range(8))

    def read() -> Content:
        return read_content(next(bodies), recipe)

    # As much work for a thread, during which other threads may have the interpreter: what the machine does to the loop.
    megabytes = bytes(int(cpu_seconds(read, 10) / cpu_seconds(lambda: hashlib.blake2b(bytes(10**6)), 10) * 10**6))
    seconds, name = longest_call(read)
    print(f"\nLongest call into C while a page of 100 KB is read: {1e3 * seconds:.2f} ms ({name})")
    gc.collect()
    gc.freeze()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)  # as the crawl does
    with ThreadPoolExecutor(4) as pool:

        async def nothing() -> None:
            pass

        async def without_the_lock() -> None:
            await asyncio.get_running_loop().run_in_executor(pool, hashlib.blake2b, megabytes)

        async def on_the_loop() -> None:
            read()

        async def in_a_thread() -> None:
            await asyncio.get_running_loop().run_in_executor(pool, read)

        rows = [
            (title, asyncio.run(ticks(8.0, work)))
            for title, work in (
                ("nothing else", nothing),
                ("as long in C, without the lock", without_the_lock),
                ("100 KB read in a thread", in_a_thread),
                ("100 KB read on the loop", on_the_loop),
            )
        ]
    sys.setswitchinterval(interval)
    print(f"\n{'Lateness of a 5 ms tick of the loop':36s}{'p50 ms':>10s}{'p99 ms':>10s}{'max ms':>10s}")
    for title, late in rows:
        print(f"{title:36s}" + "".join(f"{1e3 * value:10.2f}" for value in late))
    ratios = [on / off for on, off in zip(rows[3][1], rows[2][1], strict=True)]
    print(f"{'on the loop, of in a thread':36s}" + "".join(f"{ratio:10.1f}" for ratio in ratios))


def bench_noise() -> None:
    """False changes and edits seen on noisy pages, judged by the parts of the crawl that judge them."""
    pages = real_pages()
    for title, visit, n_seeds in (
        ("Noisy pages of one template: 200 pages, 6 visits, an edit before every third", visits_of_a_site, 5),
        (
            f"{len(pages)} real documents with noise around them: 12 visits, an edit before every fourth",
            lambda judge, rng: visits_of_real_pages(judge, rng, pages),
            3,
        ),
    ):
        print(f"\n{title}; one word each, {n_seeds} seeds")
        print(f"{'':34s}{'false changes':>15s}{'edits seen':>12s}{'probes':>10s}")
        for name, method, with_probes in (
            ("raw bytes", "raw_bytes", False),
            ("visible text", "visible_text", False),
            ("main text (trafilatura)", "main_text", False),
            ("blocks, nothing learned", "blocks", False),
            ("blocks, learned noise", "blocks", True),
        ):
            total = Counts()
            for seed in range(1 if method == "main_text" else n_seeds):
                rng = random.Random(seed)
                total += visit(Judge(Recipe(method), rng, with_probes), rng)
            probes = total.probes / total.visits
            print(f"{name:34s}{total.false_share:15.2%}{total.seen_share:12.2%}{probes:10.2%}")


def main() -> None:
    """Print the tables."""
    bench_fingerprints()
    bench_reading()
    bench_event_loop()
    bench_hostile()
    bench_noise()
    bench_sitemaps()


if __name__ == "__main__":
    main()
