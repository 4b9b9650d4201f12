"""What `crawlsched check` and `/healthz` look at, for crawls that run by cron and for pauses that somebody forgot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crawlsched.store import Store
from crawlsched.web.vitals import checks, vitals
from tests.commands import run_here


def test_a_pass_has_to_have_ended_or_begun_lately(tmp_path: Path) -> None:
    """Between two runs of cron all is well; not if the last is too old, hangs or broke off. An import is no pass."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"

    def passed(limit: str) -> tuple[int, str]:
        done = run_here(tmp_path, "check", "--database", url, "--last-pass", limit)
        return done.returncode, done.stdout + done.stderr

    store = Store.open(url, "test", upgrade=True)
    assert passed("25h") == (1, "passed: it was never crawled\n")
    began = store.clock()
    lease = store.take_lease("news")
    lease.heartbeat(None, {"last_sent_at": began})
    assert passed("25h")[0] == 0
    limits = {"last_pass": 25 * 3600.0}
    running = vitals(store)
    assert not checks(replace(running, time=began + 26 * 3600.0), **limits)[0].is_well
    lease.release()
    code, said = passed("25h")
    assert code == 0
    assert "passed: the last pass ended" in said
    assert run_here(tmp_path, "check", "--database", url).returncode == 1
    ended = vitals(store)
    late = checks(replace(ended, time=began + 26 * 3600.0), **limits)[0]
    assert (late.is_well, late.sentence) == (False, "the last pass ended 26 h ago, wanted: 25 h")
    store.take_lease("crawlsched import").release()
    imported = checks(replace(vitals(store), time=began + 26 * 3600.0), **limits)[0]
    assert (imported.is_well, imported.sentence) == (False, "the last pass ended 26 h ago, wanted: 25 h")
    store.take_lease("news")
    broken = replace(vitals(store), is_running=False)
    assert "broke off" in checks(broken, **limits)[0].sentence
    store.close()
    assert "such as 45s, 30m, 12h or 90d" in passed("soon")[1]


def test_a_pause_that_somebody_forgot_is_not_well(tmp_path: Path) -> None:
    """A pause by hand is well for a day; whoever starts crawls again that are not well leaves it alone."""
    store = Store.open(f"sqlite:///{tmp_path / 'crawl.db'}", "test", upgrade=True)
    lease = store.take_lease("news")
    lease.heartbeat(None, {"paused_since": store.clock()})
    seen = vitals(store)
    assert all(check.is_well for check in checks(seen))
    (forgotten,) = [check for check in checks(replace(seen, time=seen.time + 90_000.0)) if not check.is_well]
    assert (forgotten.name, forgotten.sentence) == ("pause", "paused by hand for 25 h")
    assert not forgotten.is_of_process
    lease.release()
    store.close()
