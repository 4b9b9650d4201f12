"""How long fingerprints and reading a response take, against alternatives measured in the same run.

Usage: python -m tests.benchmarks.bench_change_detection
"""

import hashlib
import random
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

from lxml import etree

from crawlsched.change_detection import Recipe
from crawlsched.change_detection.blocks import PageBlocks, page_blocks
from crawlsched.change_detection.detector import Detector
from crawlsched.change_detection.shared_texts import SharedTexts
from crawlsched.change_detection.template_noise import TemplateNoise
from crawlsched.change_detection.trace import differences
from crawlsched.content.reading import Body, read_content

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


def judged(seen: PageBlocks, other: PageBlocks) -> None:
    """Judge a page against what another one said, as if they had never been compared."""
    differences.cache_clear()
    Detector(TemplateNoise(), SharedTexts()).judge(seen, other.trace, 0.0)


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


def compared(title: str, body: bytes, functions: dict[str, Callable[[], object]]) -> None:
    """Print the CPU time of each function, beside that of what a spider does with the same page."""
    reference = cpu_seconds(lambda: scrapy_texts(body), 30)
    print(f"\n{title} of {len(body):,} bytes ({body.count(b'<'):,} tags)")
    print(f"{'':34s}{'CPU ms':>10s}{'of lxml':>10s}")
    print(f"{'lxml: parse, itertext, join':34s}{1e3 * reference:10.2f}{1:10.2f}")
    for name, function in functions.items():
        seconds = cpu_seconds(function, 30)
        print(f"{name:34s}{1e3 * seconds:10.2f}{seconds / reference:10.2f}")


def bench_fingerprints() -> None:
    """Fingerprints of a page of 100 KB."""
    body = page(100_000, random.Random(1))
    recipes = {
        "raw bytes": Recipe("raw_bytes"),
        "visible text": Recipe("visible_text"),
        "visible text, links": Recipe("visible_text", keep=["html", "a::attr(href)"]),
        "blocks": Recipe(),
        "selectors: drop two": Recipe("visible_text", drop=["nav", ".b3"]),
        "selectors: keep one, drop one": Recipe("visible_text", keep=["div"], drop=[".b3"]),
    }
    of_page = {name: partial(recipe.fingerprint, body, "text/html", "utf-8", URL) for name, recipe in recipes.items()}
    compared("Fingerprint of a page", body, {**of_page, "sha1 of the bytes": lambda: hashlib.sha1(body).digest()})


def bench_reading() -> None:
    """What a visit costs: fingerprint, text and sketches of a new content, and what the slot clock feels of it."""
    recipe, rng = Recipe(), random.Random(2)
    body = Body(page(100_000, rng), "text/html", "utf-8", URL)
    other = page_blocks(page(100_000, rng).decode(), url=URL)
    huge = body._replace(body=page(2_000_000, rng))
    content = read_content(body, recipe)
    assert content.seen is not None
    compared(
        "Reading a response, as the crawl does,",
        body.body,
        {
            "unchanged": partial(read_content, body, recipe, before=content.fingerprint.digest),
            "changed: text and sketches, too": partial(read_content, body, recipe),
            "judged against another page": partial(judged, content.seen, other),
            "changed, its text kept": partial(read_content, body, recipe, text_bytes=20_000),
        },
    )
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


def main() -> None:
    """Print the tables."""
    bench_fingerprints()
    bench_reading()


if __name__ == "__main__":
    main()
