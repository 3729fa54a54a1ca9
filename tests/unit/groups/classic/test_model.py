"""Any sequence of joins, crashes, restarts, leaves, failovers and lost writes keeps what a group promises.

Promises: a partition has one owner in a generation; what is on record is what another coordinator reads;
every wait ends, at the latest with a timer; and some time after the last failure, all members that are alive
are in the group and share all partitions."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.support.group_story import Answer, GroupStory, subscription

from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.group import State
from barnabas.wire.messages.join_group import JoinGroupResponse

PARTITIONS = range(6)
RANGE, STICKY = {"range": subscription("orders")}, {"sticky": subscription("orders", "bills")}
# All members support both protocols: only the chosen one survives a failover. Two processes may use "s".
TRAITS: dict[str, dict[str, object]] = {
    "old": {"version": 3, "protocols": RANGE | STICKY},
    "new": {"version": 9, "protocols": STICKY | RANGE},
    "fixed": {"version": 5, "protocols": RANGE | STICKY},
    "s1": {"version": 9, "instance_id": "s", "protocols": RANGE | STICKY},
    "s2": {"version": 6, "instance_id": "s", "protocols": STICKY | RANGE},
    "t": {"version": 9, "instance_id": "t", "protocols": RANGE | STICKY, "rebalance_timeout_ms": 20_000},
}
NAMES = st.sampled_from(sorted(TRAITS))
FORGET_ID = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)


@dataclass
class Client:
    """What a consumer does about the answers it gets."""

    name: str
    next_call: str = "join"
    leads: list[str] = field(default_factory=list)
    owned: bytes = b""
    seen: int = 0


class ClassicGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.story = GroupStory(initial_rebalance_delay_ms=1000)
        self.clients: dict[str, Client] = {}
        self.owners: dict[tuple[int, int], str] = {}
        self.turns = 0

    # The members' side

    def read_inbox(self, client: Client) -> None:
        person = self.story[client.name]
        for answer in person.inbox[client.seen :]:
            self.take(client, answer)
        client.seen = len(person.inbox)

    def take(self, client: Client, answer: Answer) -> None:
        if answer.error_code == ErrorCode.FENCED_INSTANCE_ID:
            self.clients.pop(client.name, None)
        elif answer.error_code != ErrorCode.NONE:
            client.next_call = "join"
            if answer.error_code in FORGET_ID:
                self.story[client.name].member_id = ""
        elif isinstance(answer, JoinGroupResponse):
            client.next_call = "sync"
            leads = answer.leader == answer.member_id and not answer.skip_assignment
            client.leads = [member.member_id for member in answer.members] if leads else []
        else:
            client.next_call, client.owned = "nothing", answer.assignment
            self.own(client, self.story[client.name].generation)

    def own(self, client: Client, generation: int) -> None:
        identity = self.story[client.name].instance_id or client.name
        for partition in client.owned:
            assert self.owners.setdefault((generation, partition), identity) == identity

    def act(self, client: Client) -> None:
        self.read_inbox(client)
        if client.name not in self.clients or self.story[client.name].waiting is not None:
            return
        try:
            if client.next_call == "join":
                self.story.join(client.name)
            elif client.next_call == "sync":
                self.story.sync(client.name, self.assignments(client.leads))
            else:
                self.take_heartbeat(client, self.story.heartbeat(client.name))
        except KafkaError:
            client.next_call = "join"
        self.read_inbox(client)

    def assignments(self, member_ids: list[str]) -> dict[str, bytes]:
        """Another one each time: so that two leaders of one generation would be detected."""
        self.turns += 1
        count = len(member_ids)
        owners = {p: member_ids[(p + self.turns) % count] for p in PARTITIONS if count}
        return {who: bytes(p for p in PARTITIONS if owners[p] == who) for who in member_ids}

    def take_heartbeat(self, client: Client, code: ErrorCode) -> None:
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.clients.pop(client.name)
        elif code is not ErrorCode.NONE:
            client.next_call = "join"
            if code in FORGET_ID:
                self.story[client.name].member_id = ""

    # What happens

    @rule(name=NAMES)
    def somebody_starts(self, name: str) -> None:
        if name not in self.clients:
            person = self.story.person(name, member_id="", waiting=None, generation=-1, **TRAITS[name])
            self.clients[name] = Client(name, seen=len(person.inbox))

    @rule(name=NAMES)
    def somebody_crashes(self, name: str) -> None:
        if self.clients.pop(name, None) is not None:
            self.story[name].waiting = None

    @rule(name=NAMES)
    def somebody_leaves(self, name: str) -> None:
        if name in self.clients and self.story[name].member_id:
            try:
                self.story.leave(name)
            except KafkaError:
                return
            self.clients.pop(name)

    @rule(name=NAMES)
    def somebody_changes_its_subscription(self, name: str) -> None:
        if name in self.clients and self.clients[name].next_call == "nothing":
            self.story[name].protocols = {"range": subscription("orders", f"t{self.turns}")} | STICKY
            self.clients[name].next_call = "join"

    @rule(name=NAMES)
    def somebody_acts(self, name: str) -> None:
        if name in self.clients:
            self.act(self.clients[name])

    @rule()
    def all_act(self) -> None:
        for client in list(self.clients.values()):
            self.act(client)

    @rule(name=NAMES)
    def a_request_is_sent_twice(self, name: str) -> None:
        if name in self.clients and self.story[name].waiting is not None:
            if self.clients[name].next_call == "join":
                self.story.join(name)
            else:
                self.story.sync(name)

    @rule(milliseconds=st.sampled_from([500, 1000, 6000, 21_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.story.pass_time(milliseconds)

    @rule()
    def the_next_timer_lapses(self) -> None:
        if self.story.has_timers:
            self.story.pass_to_next_timer()

    @rule()
    def another_coordinator_takes_over(self) -> None:
        self.story.fail_over()

    @rule()
    def the_next_write_fails(self) -> None:
        self.story.disk_fails = True

    @rule()
    def failures_stop(self) -> None:
        """All clients that are alive act every second, for as long as the longest timeouts may take."""
        self.story.disk_fails = False
        for _ in range(200):
            if self.is_settled():
                break
            self.all_act()
            self.story.pass_time(1000)
        assert self.is_settled(), self.story.group.describe()
        owned = sorted(p for client in self.clients.values() for p in client.owned)
        assert owned == (list(PARTITIONS) if self.clients else [])

    def is_settled(self) -> bool:
        group = self.story.group
        for client in list(self.clients.values()):
            self.read_inbox(client)
        if not self.clients:
            return group.is_empty and not group.pending_members
        people = [self.story[name] for name in self.clients]
        return (
            group.state is State.STABLE
            and {person.member_id for person in people} == {member.id for member in group.members}
            and all(client.next_call == "nothing" for client in self.clients.values())
            and {person.generation for person in people} == {group.generation}
        )

    # Invariants

    @invariant()
    def another_coordinator_would_read_the_same(self) -> None:
        group, replayed = self.story.group, self.story.replayed()
        assert replayed.saved == group.saved
        if group.state in (State.STABLE, State.EMPTY) and group.saved is not None:
            assert replayed.describe() == group.describe()
            assert replayed.leader == group.leader
            assert replayed.generation == group.generation
            assert replayed.subscribed_topics() == group.subscribed_topics()

    @invariant()
    def generations_never_go_back_on_record(self) -> None:
        numbers = self.story.recorded_generations
        assert numbers == sorted(numbers)

    @invariant()
    def every_wait_has_an_end(self) -> None:
        group = self.story.group
        if group.state is State.PREPARING:
            assert self.story.has_timer("join")
        if group.state is State.COMPLETING:
            assert self.story.has_timer("sync")
        for member in group.members:
            assert member.waits_for_answer or self.story.has_timer("session", member.id)
        for member_id in group.pending_members:
            assert self.story.has_timer("pending", member_id)

    @invariant()
    def members_wait_where_the_state_says(self) -> None:
        group = self.story.group
        assert (group.leader is None) == (not group.members)
        assert group.leader is None or group.leader in {member.id for member in group.members}
        for member in group.members:
            assert member.join is None or group.state is State.PREPARING
            assert member.sync is None or group.state is State.COMPLETING


TestClassicGroup = ClassicGroupMachine.TestCase
TestClassicGroup.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
