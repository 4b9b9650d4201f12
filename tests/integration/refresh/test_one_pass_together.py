"""When the pass of a collection that processes share is over: nobody has anything to do, and nothing is on its way."""

import pytest

from crawlsched.crawl.shared.membership import Membership
from crawlsched.store.lease import me
from crawlsched.store.members import new_token
from tests.integration.refresh.processes import HOSTS, asked_of, row

DONE = {"is_done": True, "dispatched": 7}


def joined(shared) -> Membership:
    return Membership(shared, new_token(), me("spider"), pass_since=shared.join_pass())


def loads(shared, member: Membership) -> None:
    for shard, epoch in member.mine().items():
        member.publish(shard, shared.lease(shard, member.token, epoch).token, 1)


@pytest.fixture
def two(shared):
    """Two processes in one pass, of which the first has all shards."""
    members = [joined(shared), joined(shared)]
    members[0].renew()
    loads(shared, members[0])
    yield members
    for member in members:
        shared.leave(member.token)


def renew(members, *statuses, times: int = 1) -> None:
    for _ in range(times):
        for member, status in zip(members, statuses, strict=True):
            member.fares(status, dict)
            member.renew()


def is_over(members) -> bool:
    """Say whether it is over for all; it is never over for some of them only."""
    (said,) = {member.pass_is_over for member in members}
    return said


def test_it_is_over_for_all_when_each_has_said_twice_that_it_has_nothing_to_do(shared, two):
    """The second word comes after everybody's first, so nothing can have been under way between two of them."""
    assert two[0].pass_since == two[1].pass_since
    renew(two, DONE, DONE)
    assert not is_over(two)
    renew(two, DONE, DONE, times=3)
    assert is_over(two)
    assert shared.look().pass_since is None


@pytest.mark.parametrize(
    "others",
    [
        [{"is_done": False, "dispatched": 7}] * 4,  # it may still find pages of the others
        [{}] * 4,  # it has just begun, and may have much to say
        [{"is_done": True, "dispatched": n} for n in range(5)],  # what it has sent meanwhile may have found something
    ],
)
def test_who_has_something_to_do_keeps_all_others(two, others):
    """Although it has nothing to do whenever it is asked."""
    for other in others:
        renew(two, DONE, other)
    assert not is_over(two)


def test_what_waits_to_be_taken_in_is_something_to_do(shared, two):
    """Its shard does not know of it yet."""
    shared.hand_over([row(f"http://{HOSTS[1]}/", 1)])
    renew(two, DONE, DONE, times=4)
    assert not is_over(two)
    asked_of(shared, "DELETE FROM inbox")
    renew(two, DONE, DONE, times=4)
    assert is_over(two)


def test_a_shard_that_nobody_crawls_keeps_all_and_what_was_said_before_it_was_loaded_is_not_of_it(shared, two):
    """Its crawling thread may be busy for some renewals after that, and has not looked what there is to do."""
    first, second = two
    token = shared.lease(2, first.token, first.mine()[2]).token
    first.publish(2, token, 1, ready=False)
    renew(two, DONE, DONE, times=4)
    assert not is_over(two)
    first.publish(2, token, 1)
    for _ in range(4):
        first.renew()
        renew([second], DONE)
    assert not is_over(two)
    renew(two, DONE, DONE, times=4)
    assert is_over(two)


def test_a_pass_goes_on_for_who_joins_and_a_new_one_begins_when_all_are_gone(shared, two):
    """Those that are killed on the way and started again within a lease go on with the pass they were in."""
    since = two[0].pass_since
    assert shared.join_pass() == since
    for member in two:
        shared.leave(member.token)
    assert shared.join_pass() == since
    asked_of(shared, "UPDATE budgets SET pass_since = pass_since - 60")
    assert shared.join_pass() > since
