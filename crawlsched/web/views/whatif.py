"""What if: the freshness at other bandwidths, and the bandwidth that a given freshness needs."""

from __future__ import annotations

from crawlsched.web import words
from crawlsched.web.chart import chart
from crawlsched.web.html import Html, Node, tag
from crawlsched.web.views import Context, card, columns, section, table
from crawlsched.wording import say_rate

__all__ = ["whatif"]


def whatif(context: Context) -> Html:
    """Return the main part of the page."""
    report = context.reports["whatif"]()
    present = report["bandwidth"]
    rows = report["bandwidths"]
    drawn = chart(
        [one["bandwidth"] for one in rows],
        [
            ("by crawl value", "c1", [one["freshness"] for one in rows]),
            ("all pages in turn", "c5", [one["freshness_in_turn"] for one in rows]),
        ],
        say_place=say_rate,
        say_value=words.share,
        low=0.0,
        high=1.0,
        marks=[(present, "now")],
        is_log=True,
        has_area=True,
        label="Expected freshness by bandwidth",
    )
    needed: list[list[Node]] = [
        [
            words.share(one["freshness"]),
            "not reached" if one["bandwidth"] is None else say_rate(one["bandwidth"]),
            "" if one["times_present"] is None else f"{one['times_present']:.3g}×",
        ]
        for one in report["needed"]
    ]
    now_at = next((one for one in rows if abs(one["times_present"] - 1.0) < 1e-9), None)
    cards = tag(
        "div",
        card("fresh now", words.share(report["fresh_now"]), f"of {words.short(report['pages'])} pages", style="main"),
        card("in the long run", words.share(now_at["freshness"] if now_at else None), f"at {say_rate(present)}"),
        card("all in turn", words.share(now_at["freshness_in_turn"] if now_at else None), "at the same bandwidth"),
        class_="cards",
    )
    note = f"Computed from what is known now, for {report['sample']:,} of {report['pages']:,} pages."
    headings = [("freshness", "r"), ("takes", "r"), ("of today's", "r")]
    return tag(
        "main",
        cards,
        columns(
            [section("Freshness by bandwidth", drawn, tag("p", note, class_="faint"))],
            [section("For this freshness", table(headings, needed))],
        ),
    )
