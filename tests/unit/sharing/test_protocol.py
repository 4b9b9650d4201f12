"""The protocol of sharing, whatever the order of its steps: clocks that differ, lost answers, pauses, deaths."""

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crawlsched.sharing import LEASE, Answer, Grant, Renewal
from tests.inputs import tries
from tests.renewal_rule import Rows, ShardRow, renew

N_SHARDS = 4
# A rate that was lowered by hand: grants given before run down, and a member whose answers are lost may say until its
# own deadline that it uses the old one.
RUN_DOWN = 2 * LEASE


class Process:
    """A member as the add-on has it: its own clock, its grant, the shards that it may send for."""

    def __init__(self, name: str, speed: float, offset: float) -> None:
        self.name, self.speed, self.offset = name, speed, offset
        self.grant = Grant()
        self.shards: dict[int, int] = {}
        self.released: dict[int, int] = {}
        self.lives = True

    def clock(self, time: float) -> float:
        return self.offset + self.speed * time

    def rate(self, time: float) -> float:
        return self.grant.using(self.clock(time)) if self.lives else 0.0

    def may_send_for(self, shard: int, time: float) -> bool:
        return shard in self.shards and self.lives and self.clock(time) < self.grant.deadline

    def says(self, time: float, wants: float, claims: tuple[int, ...]) -> Renewal:
        now = self.clock(time)
        return Renewal(self.name, self.grant.ask(now), self.grant.using(now), wants, claims)

    def answered(self, said: Renewal, answer: Answer) -> None:
        if said.number == self.grant.number:
            self.shards = {s: e for s, e in answer.shards.items() if e > self.released.get(s, 0)}
            self.grant.answered(said.number, answer.granted)


class Sharing(RuleBasedStateMachine):
    """Some members, one database, and a network between them that may do anything but lie."""

    @initialize(rate=st.floats(0.1, 100.0))
    def begin(self, rate: float) -> None:
        self.time = 0.0
        self.started_at = -100.0
        self.rows = Rows(rate, {shard: ShardRow() for shard in range(N_SHARDS)})
        self.processes: list[Process] = []
        self.on_the_way: list[tuple[Process, Renewal, float]] = []
        self.arrived: list[tuple[float, float]] = []
        self.answers: list[tuple[Process, Renewal, Answer]] = []
        self.releases: list[tuple[Process, int, int]] = []
        self.rates = [(0.0, rate)]

    @rule(speed=st.sampled_from([0.93, 1.0, 1.08]), offset=st.sampled_from([-1e6, 0.0, 1e6]))
    def join(self, speed: float, offset: float) -> None:
        if sum(process.lives for process in self.processes) < 3:
            self.processes.append(Process(f"p{len(self.processes)}", speed, offset))

    @rule(seconds=st.sampled_from([0.0, 0.2, 1.0, 3.0, 5.4, 5.7, 6.0, 6.2, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.time += seconds

    @precondition(lambda self: self.processes)
    @rule(data=st.data(), share=st.floats(0.0, 1.5))
    def ask(self, data: st.DataObject, share: float) -> None:
        process = data.draw(st.sampled_from(self.processes))
        if process.lives:
            claims = tuple(data.draw(st.sets(st.integers(0, N_SHARDS - 1))))
            said = process.says(self.time, share * self.rows.rate, claims)
            self.on_the_way.append((process, said, self.time))

    @precondition(lambda self: self.on_the_way)
    @rule(data=st.data(), is_rolled_back=st.booleans())
    def reaches_the_database(self, data: st.DataObject, is_rolled_back: bool) -> None:
        process, said, asked_at = self.on_the_way.pop(data.draw(st.integers(0, len(self.on_the_way) - 1)))
        if not is_rolled_back:
            self.arrived.append((self.time, asked_at))
            answer = renew(self.rows, said, self.time, LEASE, self.started_at)
            if answer is not None:
                self.answers.append((process, said, answer))

    @precondition(lambda self: self.answers)
    @rule(data=st.data(), is_lost=st.booleans())
    def reaches_the_member(self, data: st.DataObject, is_lost: bool) -> None:
        process, said, answer = self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))
        if not is_lost and process.lives:
            process.answered(said, answer)

    @precondition(lambda self: self.processes)
    @rule(data=st.data())
    def renewed_at_once(self, data: st.DataObject) -> None:
        """The usual case, which chance alone would seldom bring about."""
        process = data.draw(st.sampled_from(self.processes))
        if process.lives:
            wants = data.draw(st.floats(0.0, 1.0)) * self.rows.rate
            said = process.says(self.time, wants, tuple(range(N_SHARDS)))
            answer = renew(self.rows, said, self.time, LEASE, self.started_at)
            assert answer is not None
            process.answered(said, answer)

    @precondition(lambda self: self.processes)
    @rule(data=st.data())
    def stops_for_a_shard(self, data: st.DataObject) -> None:
        process = data.draw(st.sampled_from(self.processes))
        if process.shards and process.lives:
            shard = data.draw(st.sampled_from(sorted(process.shards)))
            epoch = process.released[shard] = process.shards.pop(shard)
            self.releases.append((process, shard, epoch))

    @precondition(lambda self: self.releases)
    @rule(data=st.data())
    def gives_a_shard_back(self, data: st.DataObject) -> None:
        process, shard, epoch = self.releases.pop(data.draw(st.integers(0, len(self.releases) - 1)))
        row = self.rows.shards[shard]
        if row.member == process.name and row.epoch == epoch:
            row.member = None

    @precondition(lambda self: self.processes)
    @rule(data=st.data())
    def is_killed(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.processes)).lives = False

    @rule(rate=st.floats(0.1, 100.0))
    def somebody_sets_the_rate(self, rate: float) -> None:
        self.rates.append((self.time, rate))
        self.rows.rate = rate

    @rule()
    def the_server_restarts(self) -> None:
        self.started_at = self.time

    @invariant()
    def the_grants_are_never_more_than_the_rate(self) -> None:
        if not hasattr(self, "rows"):
            return
        # Every rate that was in force at some moment of the run-down. After a restart the database believes a renewal
        # that was held up on its way, and that says what was in use when it was asked.
        asked = [asked_at for arrived_at, asked_at in self.arrived if arrived_at > self.time - LEASE]
        since = min([self.time, *asked]) - RUN_DOWN
        current = [
            rate
            for (_, rate), (end, _) in zip(self.rates, [*self.rates[1:], (self.time + 1, 0.0)], strict=True)
            if end >= since
        ]
        assert self.rows.granted(self.time) <= max(current) * (1 + 1e-9)

    @invariant()
    def nobody_sends_more_than_its_row_says(self) -> None:
        for process in getattr(self, "processes", ()):
            if rate := process.rate(self.time):
                row = self.rows.members[process.name]
                assert row.expires_at > self.time
                assert rate <= row.granted

    @invariant()
    def a_shard_is_sent_for_by_one_process(self) -> None:
        for shard in range(N_SHARDS):
            owners = [p for p in getattr(self, "processes", ()) if p.may_send_for(shard, self.time)]
            assert len(owners) <= 1
            for process in owners:
                # Its writes are let through: nobody has claimed the shard since.
                assert self.rows.shards[shard] == ShardRow(process.name, process.shards[shard])


Sharing.TestCase.settings = tries(300, stateful_step_count=60, suppress_health_check=list(HealthCheck))
TestSharing = pytest.mark.filterwarnings("default")(Sharing.TestCase)


@given(wants=st.lists(st.floats(0.0, 50.0), min_size=1, max_size=6), rate=st.floats(1.0, 100.0))
def test_what_is_wanted_is_granted_within_three_rounds(wants: list[float], rate: float) -> None:
    """Members that want no more than there is get it, in whatever order they come."""
    wants = [share * rate / max(sum(wants), 1e-9) for share in wants]
    rows = Rows(rate, {0: ShardRow()})
    grants = [Grant() for _ in wants]
    for turn in range(3):
        for number, (grant, wanted) in enumerate(zip(grants, wants, strict=True)):
            now = 2.0 * turn + 0.1 * number
            said = Renewal(str(number), grant.ask(now), grant.using(now), wanted if turn else rate)
            answer = renew(rows, said, now, LEASE)
            assert answer is not None
            grant.answered(said.number, answer.granted)
    assert [grant.rate for grant in grants] == pytest.approx(wants, rel=1e-6, abs=1e-6)


def test_after_a_restart_of_the_server_nobody_rises_and_nobody_claims_for_one_lease() -> None:
    """What the server answered in its last moments may be lost, and is valid for a lease at most."""
    rows = Rows(10.0, {0: ShardRow(), 1: ShardRow()})
    renew(rows, Renewal("a", 1, 0.0, 4.0, (0,)), 0.0, LEASE)
    rows.members.clear()  # an asynchronous replica that was behind
    assert renew(rows, Renewal("a", 2, 4.0, 8.0), 2.0, LEASE, started_at=1.0) == Answer(4.0, {0: 1})
    assert renew(rows, Renewal("b", 1, 0.0, 6.0, (1,)), 3.0, LEASE, started_at=1.0) == Answer(0.0, {})
    assert renew(rows, Renewal("b", 2, 0.0, 6.0, (1,)), 8.5, LEASE, started_at=1.0) == Answer(6.0, {1: 1})
