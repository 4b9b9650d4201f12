"""Hosts: which hosts fail, how long they rest, how many requests they may get, and their faults."""

from __future__ import annotations

from urllib.parse import quote

from crawlsched.crawl.validators import standings
from crawlsched.web import words
from crawlsched.web.html import Html, Node, tag
from crawlsched.web.views import Context, empty, section, table
from crawlsched.web.vitals import say_failing
from crawlsched.web.words import SHOWN

__all__ = ["hosts"]


def hosts(context: Context) -> Html:
    """Return the main part of the page: hosts that fail, then hosts that rest, then others by withheld responses."""
    now, store = context.now, context.store
    known = store.reader.hosts(notable_at=now)
    names = {host.host for host in known}
    known += [host for host in store.reader.hosts(limit=SHOWN) if host.host not in names]

    def held(host: object) -> int:
        rows = host.counts.get("withheld", {}).items()  # type: ignore[attr-defined]
        return sum(int(row.get("n", 0)) for reason, row in rows if reason != "known")

    known.sort(key=lambda host: (not host.counts.get("failing"), -max(host.rest_until, now), -held(host), host.host))
    rows: list[list[Node]] = []
    for host in known[:SHOWN]:
        lying = [name for name, standing in standings(host.counts.get("validators", {})).items() if standing == "lying"]
        wrong, failing = len(host.counts.get("wrong_pages", ())), host.counts.get("failing")
        rows.append(
            [
                tag("a", host.host, href=f"pages?q={quote(f'//{host.host}', safe='')}"),
                _badge(say_failing(host.host, failing, now) if failing else None),
                _badge(words.ago(host.rest_until, now) if host.rest_until > now else None),
                words.duration(host.crawl_delay),
                words.number(held(host)),
                words.number(wrong),
                ", ".join(lying) or "–",
                words.moment(host.robots_seen_at, now),
            ]
        )
    if not rows:
        return tag("main", section("Hosts", empty("Nothing is known about any host yet.")))
    headings = [("host", ""), ("fails", ""), ("rests until", ""), ("Crawl-delay", "r"), ("held back", "r")]
    headings += [("wrong pages", "r w"), ("lying headers", "w"), ("robots.txt", "r w")]
    n = store.reader.count_hosts() if len(known) > SHOWN else 0
    note = f"The first {SHOWN} of {n:,} hosts about which something is known." if n else None
    return tag("main", section("Hosts", tag("p", note, class_="faint") if note else None, table(headings, rows)))


def _badge(trouble: str | None) -> Node:
    return tag("span", trouble, class_="badge error") if trouble else "no"
