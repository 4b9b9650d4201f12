"""What one process leaves behind is another's, as soon as it is known that the first one sends nothing any more."""

import sys
import time

import pytest

from crawlsched.crawl.shared.membership import Membership
from crawlsched.sharing import RENEWAL_INTERVAL, Renewal
from crawlsched.slot_clock import TIMER_SLACK
from crawlsched.store.lease import me, process_start
from crawlsched.store.members import new_token
from tests import children
from tests.integration.refresh.processes import N_SHARDS, asked_of

ALL = set(range(N_SHARDS))


@pytest.fixture
def heir(member):
    return member


def joins(shared, process, claims=ALL, *, rate=1000.0, **about) -> str:
    """Let a process claim shards and a part of the rate, as a member that never comes again; return its token."""
    about = {**me("spider"), "pid": process.pid, "process_started": process_start(process.pid), **about}
    token = new_token()
    shared.renew(Renewal(token, 1, 0.0, rate, tuple(claims)), about, {})
    return token


@pytest.fixture
def sleeper():
    return children.start(sys.executable, "-c", "import time; time.sleep(60)")


def test_who_is_killed_is_replaced_at_once_on_its_own_machine(shared, heir, sleeper):
    """The kernel knows that it sends nothing any more; its lease need not run out, and its rate is free, too."""
    joins(shared, sleeper)
    heir.renew()
    assert heir.mine() == {}
    sleeper.kill()
    sleeper.wait()
    heir.renew()
    assert set(heir.mine()) == ALL
    assert shared.look().members.keys() == {heir.token}


@pytest.mark.parametrize("about", [{"machine": "elsewhere"}, {"process_started": ""}])
def test_who_may_live_keeps_its_shards_until_its_lease_is_over(shared, heir, sleeper, about):
    """A pid says nothing of another machine, nor where the kernel does not tell when a process started."""
    sleeper_token = joins(shared, sleeper, **about)
    if about.keys() == {"machine"}:
        sleeper.kill()
        sleeper.wait()
    heir.renew()
    assert heir.mine() == {}
    assert sleeper_token in shared.look().members


def test_what_a_silent_process_has_is_claimed_right_after_its_lease(shared, heir, sleeper):
    """Renewals come every two seconds, and one more when the lease of another ends."""
    silent = joins(shared, sleeper, {0, 1}, rate=500.0)
    # It said so four seconds ago.
    asked_of(shared, "UPDATE members SET expires_at = expires_at - 4 WHERE token = :token", token=silent)
    waits, expires_at = [heir.renew() for _ in range(3)], shared.look().members[silent].expires_at
    if heir.seen.is_alive(silent):  # on a busy machine it may be over by now
        assert set(heir.mine()) == {2, 3}
        assert waits[-1] == pytest.approx(min(RENEWAL_INTERVAL, expires_at - heir.seen.now + TIMER_SLACK))
        time.sleep(waits[-1])
        heir.renew()
    assert set(heir.mine()) == ALL
    assert not shared.look().is_alive(silent)


def test_who_is_given_a_shard_asks_for_it_soon(shared, heir, sleeper):
    """Its owner writes it down within a second, and then nobody crawls it until it is claimed."""
    joins(shared, sleeper)
    assert heir.renew() < 0.5
    assert heir.mine() == {}


def test_who_is_about_to_end_is_left_nothing(shared, heir):
    """It claims nothing any more, and what was meant for it would be crawled by nobody."""
    leaving = Membership(shared, new_token(), me("spider"))
    leaving.leaves()
    leaving.renew()
    heir.renew()
    assert set(heir.mine()) == ALL
    shared.leave(leaving.token)
