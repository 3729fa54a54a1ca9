"""A classic group for tests: members by name, a clock that the test moves, an inbox for each member.

Plays the runtime (journal, apply, answer, timers) and the members' side of the protocol, step by step."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from barnabas.clock import FakeClock
from barnabas.coordination.step import PARKED, JournalRecord, Step, Timer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.groups.classic.group import ClassicGroup, ClientInfo
from barnabas.groups.classic.plan import timer_key
from barnabas.groups.group import Committer
from barnabas.groups.record_schemas import GroupMetadataValue
from barnabas.groups.records import decode
from barnabas.groups.settings import GroupSettings
from barnabas.wire.codec import encode_message
from barnabas.wire.message import NEVER
from barnabas.wire.messages import join_group, sync_group
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

GROUP = "readers"
Answer = JoinGroupResponse | SyncGroupResponse
_CODES = {int(code): code for code in ErrorCode}


def subscription(*topics: str) -> bytes:
    """The subscription of a consumer: version 0 of the consumer protocol."""
    return b"\0\0" + encode_message(ConsumerProtocolSubscription(topics=list(topics)), 0, NEVER)


@dataclass
class Person:
    """What one member knows and sends."""

    name: str
    version: int = 9
    instance_id: str | None = None
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    protocol_type: str = "consumer"
    protocols: Mapping[str, bytes] = field(default_factory=lambda: {"range": subscription("orders")})

    member_id: str = ""
    generation: int = -1
    protocol_name: str | None = None
    # All answers, oldest first, those to parked calls and the others alike.
    inbox: list[Answer] = field(default_factory=list)
    waiting: "Call | None" = None

    @property
    def sync_version(self) -> int:
        """The SyncGroup version of clients with this JoinGroup version; from 5 on it names the protocol."""
        return 5 if self.version >= 7 else 3


class Call:
    """A parked request of one member."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.answer: Answer | None = None

    def resolve(self, answer: Any) -> None:
        assert self.answer is None, "answered twice"
        self.answer = answer
        if self.person.waiting is self:
            self.person.waiting = None
            _take(self.person, answer)


def _take(person: Person, answer: Answer) -> None:
    _check_it_can_be_sent(person, answer)
    person.inbox.append(answer)
    if isinstance(answer, JoinGroupResponse):
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            person.member_id = answer.member_id
        if answer.error_code == ErrorCode.NONE:
            person.generation = answer.generation_id
            person.protocol_name = answer.protocol_name


def _check_it_can_be_sent(person: Person, answer: Answer) -> None:
    if isinstance(answer, JoinGroupResponse):
        encode_message(answer, person.version, join_group.FLEXIBLE_FROM)
    else:
        encode_message(answer, person.sync_version, sync_group.FLEXIBLE_FROM)


class GroupStory:
    def __init__(self, **settings: Any) -> None:
        self.settings = GroupSettings(**settings)
        self.clock = FakeClock()
        self.people: dict[str, Person] = {}
        self.journal: list[JournalRecord] = []
        # Set for one step: its records are not written, so that it did not happen.
        self.disk_fails = False
        self._numbers = count(1)
        self._timers: dict[Hashable, tuple[int, int]] = {}
        self._timer_numbers = count()
        self.group = self._new_group()

    def _new_group(self) -> ClassicGroup:
        return ClassicGroup(GROUP, self.settings, lambda: next(self._numbers))

    # Who is who

    def person(self, name: str, **traits: Any) -> Person:
        person = self.people.setdefault(name, Person(name))
        for trait, value in traits.items():
            setattr(person, trait, value)
        return person

    def __getitem__(self, name: str) -> Person:
        return self.people[name]

    def last(self, name: str) -> Answer:
        return self.people[name].inbox[-1]

    @property
    def parked(self) -> set[str]:
        return {person.name for person in self.people.values() if person.waiting is not None}

    @property
    def member_names(self) -> set[str]:
        """The names of the group's members."""
        names = {person.member_id: person.name for person in self.people.values()}
        return {names.get(member.id, member.id) for member in self.group.members}

    @property
    def leader(self) -> str:
        return next(p.name for p in self.people.values() if p.member_id == self.group.leader)

    # Requests

    def join(self, name: str, **traits: Any) -> Answer | None:
        """One JoinGroup; None if it is parked."""
        person = self.person(name, **traits)
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=person.session_timeout_ms,
            rebalance_timeout_ms=person.rebalance_timeout_ms if person.version > 0 else -1,
            member_id=person.member_id,
            group_instance_id=person.instance_id,
            protocol_type=person.protocol_type,
            protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in person.protocols.items()],
        )
        client = ClientInfo(name, "/10.0.0.1")
        call = Call(person)
        return self._ask(call, self.group.join(request, client, person.version, call, self.clock.now_ms()))

    def enter(self, name: str, **traits: Any) -> Answer | None:
        """Join in one or two steps, as the version requires."""
        answer = self.join(name, **traits)
        if answer is not None and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return self.join(name)
        return answer

    def sync(self, name: str, assignments: Mapping[str, bytes] | None = None) -> Answer | None:
        """One SyncGroup, with assignments by name or by member id; None if it is parked."""
        person = self.people[name]
        names_protocol = person.sync_version >= 5
        given = [
            SyncGroupRequestAssignment(
                member_id=self.people[who].member_id if who in self.people else who, assignment=assignment
            )
            for who, assignment in (assignments or {}).items()
        ]
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=person.generation,
            member_id=person.member_id,
            group_instance_id=person.instance_id,
            protocol_type=person.protocol_type if names_protocol else None,
            protocol_name=person.protocol_name if names_protocol else None,
            assignments=given,
        )
        call = Call(person)
        return self._ask(call, self.group.sync(request, call, person.sync_version, self.clock.now_ms()))

    def heartbeat(self, name: str) -> ErrorCode:
        person = self.people[name]
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=person.generation,
            member_id=person.member_id,
            group_instance_id=person.instance_id,
        )
        return _CODES[self.run(self.group.heartbeat(request, self.clock.now_ms())).error_code]

    def leave(self, *names: str) -> list[ErrorCode]:
        return self.remove(
            *(
                MemberIdentity(member_id=self[n].member_id, group_instance_id=self[n].instance_id)
                for n in names
            )
        )

    def remove(self, *identities: MemberIdentity) -> list[ErrorCode]:
        request = LeaveGroupRequest(group_id=GROUP, members=list(identities))
        answer = self.run(self.group.leave(request, 5, self.clock.now_ms()))
        return [_CODES[member.error_code] for member in answer.members]

    def commit(
        self, name: str | None, *, transactional: bool = False, generation: int | None = None
    ) -> ErrorCode:
        """The error code of a commit. An accepted one counts as a heartbeat."""
        committer = Committer()
        if name is not None:
            person = self.people[name]
            chosen = person.generation if generation is None else generation
            committer = Committer(person.member_id, person.instance_id, chosen)
        try:
            self.group.check_commit(committer, transactional=transactional, version=9)
        except KafkaError as error:
            return error.code
        self._set_timers(self.group.touch(committer.member_id))
        return ErrorCode.NONE

    # Whole scenes

    def stable(self, *names: str, **traits: Any) -> "GroupStory":
        """These members have joined and have their assignments: each gets its own name."""
        for name in names:
            self.enter(name, **traits)
        self.rejoin_all()
        self.sync_all()
        assert self.group.state_name == "Stable"
        return self

    def rejoin_all(self) -> None:
        """All members join again, and time passes until all have joined."""
        for person in list(self.people.values()):
            if person.waiting is None and person.member_id in self._member_ids():
                self.join(person.name)
        while self.group.state_name == "PreparingRebalance":
            self.pass_to_next_timer()

    def sync_all(self) -> None:
        names = sorted(self.member_names & self.people.keys())
        for name in [*(n for n in names if n != self.leader), self.leader]:
            self.sync(name, {who: who.encode() for who in names} if name == self.leader else None)

    def _member_ids(self) -> set[str]:
        return {member.id for member in self.group.members}

    # Time

    def pass_time(self, milliseconds: int, *, heartbeats: Iterable[str] = ()) -> None:
        """Timers run out in order; members that send heartbeats send one every second."""
        names = list(heartbeats)
        end_ms = self.clock.now_ms() + milliseconds
        while self.clock.now_ms() < end_ms:
            self._pass_to(min(end_ms, self.clock.now_ms() + 1000))
            for name in names:
                self.heartbeat(name)

    def pass_to_next_timer(self) -> None:
        self._pass_to(min(due_ms for due_ms, _ in self._timers.values()))

    def _pass_to(self, until_ms: int) -> None:
        while self._timers:
            key = min(self._timers, key=lambda key: self._timers[key])
            due_ms = self._timers[key][0]
            if due_ms > until_ms:
                break
            self.clock.advance(max(due_ms - self.clock.now_ms(), 0))
            del self._timers[key]
            self._lapse(key)
        self.clock.advance(max(until_ms - self.clock.now_ms(), 0))

    def _lapse(self, key: Hashable) -> None:
        try:
            self.run(self.group.lapse(key, self.clock.now_ms()))
        except KafkaError:
            # What could not be recorded is tried again.
            self._set_timers([Timer(key, 1000)])

    def time_left_ms(self, kind: str, name: str | None = None) -> int | None:
        """The time until a timer of the group or of a member runs out; None if it is not set."""
        member_id = None if name is None else self.people[name].member_id
        due = self._timers.get(timer_key(GROUP, kind, member_id))
        return None if due is None else due[0] - self.clock.now_ms()

    def has_timer(self, kind: str, member_id: str | None = None) -> bool:
        return timer_key(GROUP, kind, member_id) in self._timers

    @property
    def has_timers(self) -> bool:
        return bool(self._timers)

    # The runtime's part

    def _ask(self, call: Call, step: Step[Any]) -> Answer | None:
        if step.reply is PARKED:
            call.person.waiting = call
            self.run(step)
            return None
        answer: Answer = self.run(step)
        _take(call.person, answer)
        return answer

    def run(self, step: Step[Any]) -> Any:
        if step.records and self.disk_fails:
            self.disk_fails = False
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        self.journal.extend(step.records)
        for record in step.records:
            self.group.apply(value_of(record))
        for key in step.cancelled:
            self._timers.pop(key, None)
        self._set_timers(step.timers)
        for waiter, answer in step.answers:
            waiter.resolve(answer)
        return step.reply

    def _set_timers(self, timers: Iterable[Timer]) -> None:
        for timer in timers:
            due_ms = self.clock.now_ms() + timer.delay_ms
            self._timers[timer.key] = (due_ms, next(self._timer_numbers))

    def replayed(self) -> ClassicGroup:
        """The group as another coordinator would load it."""
        group = self._new_group()
        for record in self.journal:
            group.apply(value_of(record))
        return group

    @property
    def recorded_generations(self) -> list[int]:
        values = [value_of(record) for record in self.journal]
        return [value.generation for value in values if value is not None]

    def fail_over(self) -> None:
        """Another coordinator takes over: parked calls and timers are lost."""
        for person in self.people.values():
            person.waiting = None
        self._timers.clear()
        self.group = self.replayed()
        self.run(self.group.loaded(self.clock.now_ms()))


def value_of(record: JournalRecord) -> GroupMetadataValue | None:
    read = decode(record)
    assert read is not None
    assert read.value is None or isinstance(read.value, GroupMetadataValue)
    return read.value
