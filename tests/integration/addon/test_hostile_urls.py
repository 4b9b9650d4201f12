"""URLs that nothing can ask for, from robots.txt, a sitemap and a ping, do not stop a crawl."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path

from crawlsched.store import Batch, Source, Store
from tests.crawling import VISITING_SPIDER, Project
from tests.site import Site

KEY = "0123456789abcdef"


def _pinged(project: Project, body: bytes) -> int:
    connection = http.client.HTTPConnection(*project.receiver_address(), timeout=10)
    try:
        connection.request("POST", "/indexnow", body)
        return connection.getresponse().status
    finally:
        connection.close()


def test_urls_that_nothing_can_ask_for_stop_nothing(tmp_path: Path) -> None:
    """A port that is none in robots.txt, in a sitemap and in pings: the rest is read, and the crawl goes on.

    Nor does what is no HTTP fill the log with tracebacks, for which nobody would need a key.
    """
    with Site() as site:
        host = f"127.0.0.1:{site.port}"
        names = "".join(
            f"Sitemap: http://{name}/sitemap.xml\n" for name in ("127.0.0.1:99999", "127.0.0.1:abc", "[::1")
        )
        site.page("/robots.txt", f"User-agent: *\n{names}Sitemap: /sitemap.xml\n")
        pages = "".join(f"<url><loc>http://{name}/a</loc></url>" for name in ("127.0.0.1:99999", "127.0.0.1:abc", host))
        site.page("/sitemap.xml", f"<urlset>{pages}</urlset>")
        site.page("/a", "<p>listed behind those")
        start = site.page("/", "<p>start")
        project = Project(
            tmp_path,
            VISITING_SPIDER.format(urls=[start]),
            ROBOTSTXT_OBEY="True",
            CRAWLSCHED_SOURCE_INTERVAL="2",
            CRAWLSCHED_RECEIVER=json.dumps({"address": 0, "key": KEY}),
            CLOSESPIDER_TIMEOUT="3",
        )
        # Kept by an earlier version, which looked at URLs less closely.
        store = Store.open(project.database_url, "test")
        old = Source(0, "sitemap", "http://127.0.0.1:99999/old.xml", "127.0.0.1", next_poll_at=0.0)
        store.save(Batch(sources={0: old}))
        store.close()
        process = project.start()
        try:
            bad = ("http://127.0.0.1:99999/", "http://127.0.0.1:abc/", "http://127.0.0.1/\ud800")
            answers = [
                _pinged(project, json.dumps({"host": "127.0.0.1", "key": KEY, "urlList": [url]}).encode())
                for url in bad
            ]
            answers.append(
                _pinged(project, json.dumps({"host": "127.0.0.1", "key": "\ud800", "urlList": bad}).encode())
            )
            with socket.create_connection(project.receiver_address(), timeout=10) as connection:
                connection.sendall(
                    b"POST /indexnow HTTP/1.1\r\nContent-Encoding: deflate\r\nContent-Length: 3\r\n\r\nabc"
                )
                assert b" 400 " in connection.recv(1000)
            answers.append(_pinged(project, json.dumps({"host": "127.0.0.1", "key": KEY, "urlList": [start]}).encode()))
        finally:
            crawl = project.finish(process)
        assert answers == [400, 400, 400, 403, 202]
        assert "The sitemap http://127.0.0.1:99999/old.xml cannot be asked for" in crawl.log
        assert "Traceback" not in crawl.log
        visits = crawl.outcomes()
        assert visits.keys() == {start, site.url("/a")}
        assert crawl.stats["crawlsched/change_signals/received"] == 1
        # Until the end of the crawl, not only until the first of those URLs came.
        assert site.times[-1] - site.times[0] > 1.5
