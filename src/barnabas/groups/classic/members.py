"""The members of a classic group: their protocols, their leader, and their parked calls."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.coordination.step import Waiter
from barnabas.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupRequestProtocol


class ClientInfo(NamedTuple):
    id: str
    host: str


class Protocol(NamedTuple):
    """A way to assign partitions that a member supports, with the metadata that the leader needs for it."""

    name: str
    metadata: bytes


def protocols_of(offered: Iterable[JoinGroupRequestProtocol]) -> tuple[Protocol, ...]:
    """If a name is repeated, the first one counts: a member has one vote per protocol."""
    by_name: dict[str, Protocol] = {}
    for protocol in offered:
        by_name.setdefault(protocol.name, Protocol(protocol.name, bytes(protocol.metadata)))
    return tuple(by_name.values())


class ParkedJoin(NamedTuple):
    waiter: Waiter
    # The version of the request: it decides the form of the answer.
    version: int


@dataclass(slots=True)
class Member:
    id: str
    instance_id: str | None
    client: ClientInfo
    session_timeout_ms: int
    rebalance_timeout_ms: int
    # In the member's order of preference.
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    # True until its first rebalance ends: it has no answer yet, so it sends no heartbeats.
    is_new: bool = False
    join: ParkedJoin | None = None
    sync: Waiter | None = None

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def waits_for_answer(self) -> bool:
        """A member with a parked call sends no heartbeats, so its session does not expire."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        return next((each.metadata for each in self.protocols if each.name == protocol_name), b"")

    def vote(self, candidates: frozenset[str]) -> str:
        return next(protocol.name for protocol in self.protocols if protocol.name in candidates)


@dataclass(slots=True)
class Roster:
    """Members in the order in which they joined. The first one is the leader, unless it does not join
    again."""

    leader: str | None = None
    _members: dict[str, Member] = field(default_factory=dict)
    _instances: dict[str, str] = field(default_factory=dict)
    # How many members support each protocol.
    _known: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def __getitem__(self, member_id: str) -> Member:
        return self._members[member_id]

    def get(self, member_id: str) -> Member | None:
        return self._members.get(member_id)

    def holder(self, instance_id: str | None) -> Member | None:
        """The member that has this instance id now."""
        member_id = None if instance_id is None else self._instances.get(instance_id)
        return None if member_id is None else self._members[member_id]

    def check(self, member_id: str, instance_id: str | None) -> Member:
        """The member that sent a request. FENCED_INSTANCE_ID if another member has its instance id now."""
        holder = self.holder(instance_id)
        if holder is not None and holder.id != member_id:
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member = self._members.get(member_id)
        if member is None or (instance_id is not None and holder is None):
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    # Changing

    def add(self, member: Member) -> None:
        self._members[member.id] = member
        if member.instance_id is not None:
            self._instances[member.instance_id] = member.id
        self._known.update(protocol.name for protocol in member.protocols)
        if self.leader is None:
            self.leader = member.id

    def remove(self, member_id: str) -> None:
        member = self._members.pop(member_id, None)
        if member is None:
            return
        if member.instance_id is not None:
            del self._instances[member.instance_id]
        self._known.subtract(protocol.name for protocol in member.protocols)
        if self.leader == member_id:
            self.leader = next(iter(self._members), None)

    def replace(self, old: Member, new: Member) -> None:
        """The same static member under a new id: it keeps its position, and stays the leader if it was."""
        led = self.leader == old.id
        order = [new if member is old else member for member in self]
        leader = new.id if led else self.leader
        self.reset(order, leader)

    def reset(self, members: Sequence[Member], leader: str | None) -> None:
        self._members.clear()
        self._instances.clear()
        self._known.clear()
        self.leader = None
        for member in members:
            self.add(member)
        if leader is not None:
            self.leader = leader

    def offer(self, member: Member, protocols: tuple[Protocol, ...]) -> None:
        self._known.subtract(protocol.name for protocol in member.protocols)
        member.protocols = protocols
        self._known.update(protocol.name for protocol in protocols)

    # Who has joined, and which protocols all support

    @property
    def all_joined(self) -> bool:
        return all(member.join is not None for member in self)

    @property
    def joined_count(self) -> int:
        return sum(member.join is not None for member in self)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self), default=0)

    def knows_any(self, names: Sequence[str]) -> bool:
        """Whether all members support one of these protocols."""
        return any(self._known[name] == len(self) for name in names)

    def choose_protocol(self) -> str:
        return chosen_protocol(list(self))

    def elect_joined_leader(self) -> bool:
        """Choose a leader among those who have joined; False if nobody has."""
        leader = None if self.leader is None else self._members[self.leader]
        if leader is None or leader.join is None:
            leader = next((member for member in self if member.join is not None), None)
            if leader is None:
                return False
            self.leader = leader.id
        return True


def chosen_protocol(members: Sequence[Member]) -> str:
    """Each member votes for the first of its protocols that all support. In a tie the earlier vote wins."""
    offers = [frozenset(protocol.name for protocol in member.protocols) for member in members]
    candidates = frozenset.intersection(*offers)
    votes = Counter(member.vote(candidates) for member in members)
    return votes.most_common(1)[0][0]
