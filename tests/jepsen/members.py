"""Members of consumer groups over raw connections, many in one process: each can die at an exact moment, and
tells what the coordinator gave it and when.

A member is a thread with one connection. kill() closes it without a word, as the end of a process does."""

from __future__ import annotations

import abc
import contextlib
import json
import socket
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.faults import GroupCoordinator
from tests.jepsen.probes import client_of
from tests.support.raw_client import RawClient
from tests.support.raw_groups import HEARTBEAT, JOIN_GROUP, SYNC_GROUP, RawGroup

from barnabas.errors import ErrorCode, error_of
from barnabas.wire.messages import consumer_group_heartbeat, heartbeat, sync_group

HEARTBEAT_SECONDS = 0.15
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, MODERN_VERSION = 9, 5, 4, 1
COORDINATOR_MOVED = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
STALE = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_MEMBER_EPOCH,
}


@dataclass
class Owners:
    """Who owns which partition: `problems` has what may never happen."""

    partitions: frozenset[int]
    session_seconds: float
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._by_generation: dict[int, dict[int, str]] = defaultdict(dict)
        self._owners: dict[int, Member] = {}

    def assigned(self, generation: int, member: Member) -> None:
        """Classic groups: a generation has one owner for each partition."""
        with self._lock:
            known = self._by_generation[generation]
            for partition in member.owned:
                owner = known.setdefault(partition, member.name)
                if owner != member.name:
                    self.problems.append(
                        f"generation {generation}: {owner} and {member.name} own partition {partition}"
                    )

    def take(self, partitions: Iterable[int], member: Member) -> None:
        """Modern groups: a partition has one owner at a time. One that has missed its session is none."""
        with self._lock:
            for partition in partitions:
                owner = self._owners.get(partition)
                if owner is not None and owner is not member and owner.is_in_session(self.session_seconds):
                    self.problems.append(f"{member.name} gets partition {partition} of {owner.name}")
                self._owners[partition] = member

    def release(self, partitions: Iterable[int], member: Member) -> None:
        with self._lock:
            for partition in partitions:
                if self._owners.get(partition) is member:
                    del self._owners[partition]


class _Moved(Exception):
    """Ask for the coordinator again."""


class _Fenced(Exception):
    """Another member has its name; it must end."""


@dataclass(frozen=True)
class GroupUnderTest:
    system: FaultyCluster
    name: str
    topic: str
    topic_id: bytes
    owners: Owners
    session_ms: int = 3000
    rebalance_ms: int = 4000

    @property
    def partitions(self) -> list[int]:
        return sorted(self.owners.partitions)


class Member(abc.ABC):
    """`errors` counts the refusals of the coordinator by name."""

    def __init__(self, group: GroupUnderTest, name: str, instance: str | None = None) -> None:
        self.group = group
        self.name = name
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.owned: frozenset[int] = frozenset()
        self.is_settled = False
        self.errors: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self.dies_after_join = False
        self._is_dead = threading.Event()
        self._client: RawClient | None = None
        # How many heartbeats were answered without an error, and when the last of them was sent.
        self.heartbeats = 0
        self._last_heartbeat = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __str__(self) -> str:
        settled = "settled" if self.is_settled else "not settled"
        return (
            f"{self.name} is {settled} in generation {self.generation} with {sorted(self.owned)}, after "
            f"{self.heartbeats} heartbeats and {dict(self.errors)}"
        )

    @property
    def is_alive(self) -> bool:
        return not self._is_dead.is_set()

    @property
    def is_fenced(self) -> bool:
        return self.errors["FENCED_INSTANCE_ID"] > 0

    def is_in_session(self, seconds: float) -> bool:
        return self.is_alive and time.monotonic() < self._last_heartbeat + seconds

    def start(self) -> Member:
        self._thread.start()
        return self

    def kill(self) -> None:
        self._die()
        client = self._client
        if client is not None:
            with contextlib.suppress(OSError):
                client.socket.shutdown(socket.SHUT_RDWR)

    def _die(self) -> None:
        self._is_dead.set()
        self.group.owners.release(self.group.partitions, self)

    def wait(self) -> None:
        self._thread.join(60)
        if self.failure is not None:
            raise AssertionError(f"{self.name} has failed") from self.failure

    # ---- in its thread

    def _run(self) -> None:
        try:
            while self.is_alive:
                try:
                    (coordinator,) = GroupCoordinator(self.group.name).find(self.group.system)
                    with client_of(self.group.system, coordinator) as self._client:
                        self._live(self._client)
                except _Moved:
                    self._is_dead.wait(HEARTBEAT_SECONDS)
                except OSError:
                    self.errors["disconnected"] += self.is_alive
                    self._is_dead.wait(HEARTBEAT_SECONDS)
        except _Fenced:
            self._die()
        except BaseException as failure:  # raised by wait(), in the test's thread
            if self.is_alive:
                self.failure = failure

    @abc.abstractmethod
    def _live(self, client: RawClient) -> None: ...

    def _check(self, number: int) -> ErrorCode:
        """What to do is up to the caller for errors that mean: join again."""
        code = error_of(number)
        if code is not ErrorCode.NONE:
            self.errors[code.name] += 1
        if code in COORDINATOR_MOVED:
            raise _Moved
        if code is ErrorCode.FENCED_INSTANCE_ID:
            raise _Fenced
        return code


class ClassicMember(Member):
    """JoinGroup, SyncGroup, Heartbeat. The leader deals the partitions to the members in turn."""

    def _live(self, client: RawClient) -> None:
        raw = RawGroup(client, self.group.name)
        while self.is_alive:
            # After a change of the coordinator, it goes on with what it has.
            if not self.is_settled:
                joined = self._join(raw)
                if self.dies_after_join:
                    self.kill()
                    return
                self.is_settled = joined is not None and self._sync(raw, joined)
            while self.is_alive and self.is_settled:
                self.is_settled = self._heartbeat(raw)
                self._is_dead.wait(HEARTBEAT_SECONDS)

    def _join(self, raw: RawGroup) -> Any:
        request = raw.join_request(self.member_id, instance=self.instance)
        request.session_timeout_ms = self.group.session_ms
        request.rebalance_timeout_ms = self.group.rebalance_ms
        answer = raw.client.call(JOIN_GROUP, JOIN_VERSION, request)
        code = error_of(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return None
        if self._check(code) is not ErrorCode.NONE:
            self.member_id = ""
            return None
        self.member_id = answer.member_id
        self.is_leader = answer.leader == answer.member_id
        return answer

    def _sync(self, raw: RawGroup, joined: Any) -> bool:
        """Whether it got its partitions."""
        request = sync_group.SyncGroupRequest(
            group_id=raw.name,
            generation_id=joined.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=self._assignments(joined) if self.is_leader else [],
        )
        answer = raw.client.call(SYNC_GROUP, SYNC_VERSION, request)
        code = self._check(answer.error_code)
        if code is not ErrorCode.NONE:
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            return False
        self.generation = joined.generation_id
        self.owned = frozenset(json.loads(bytes(answer.assignment) or b"[]"))
        self.group.owners.assigned(self.generation, self)
        return True

    def _assignments(self, joined: Any) -> list[sync_group.SyncGroupRequestAssignment]:
        members = sorted(joined.members, key=lambda each: each.group_instance_id or each.member_id)
        partitions = self.group.partitions
        return [
            sync_group.SyncGroupRequestAssignment(
                member_id=each.member_id,
                assignment=json.dumps(partitions[place :: len(members)]).encode(),
            )
            for place, each in enumerate(members)
        ]

    def _heartbeat(self, raw: RawGroup) -> bool:
        request = heartbeat.HeartbeatRequest(
            group_id=raw.name,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        code = self._check(raw.client.call(HEARTBEAT, HEARTBEAT_VERSION, request).error_code)
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self.heartbeats += code is ErrorCode.NONE
        return code is ErrorCode.NONE


class ModernMember(Member):
    """ConsumerGroupHeartbeat (KIP-848): the coordinator deals the partitions."""

    def _live(self, client: RawClient) -> None:
        self._announces = True
        while self.is_alive:
            began = time.monotonic()
            answer = client.call(consumer_group_heartbeat.API_KEY, MODERN_VERSION, self._request())
            code = self._check(answer.error_code)
            if code in STALE:
                self._own(frozenset())
                self.generation = -1
                self._announces = True
                continue
            if code is not ErrorCode.NONE:
                self._is_dead.wait(HEARTBEAT_SECONDS)
                continue
            self.heartbeats += 1
            self._last_heartbeat = began
            self._take(answer)
            if self.dies_after_join:
                self.kill()
            self._is_dead.wait(HEARTBEAT_SECONDS)

    def _request(self) -> consumer_group_heartbeat.ConsumerGroupHeartbeatRequest:
        is_new = self.generation < 0
        self.member_id = self.member_id or str(uuid.uuid4())
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=self.group.name,
            member_id=self.member_id,
            member_epoch=max(self.generation, 0),
            instance_id=self.instance,
            rebalance_timeout_ms=self.group.rebalance_ms if self._announces else -1,
            subscribed_topic_names=[self.group.topic] if self._announces else None,
            topic_partitions=None,
        )
        if self._announces or not self.is_settled:
            owned = [] if is_new or not self.owned else [self._owned_partitions()]
            request.topic_partitions = owned
        return request

    def _owned_partitions(self) -> consumer_group_heartbeat.TopicPartitions:
        return consumer_group_heartbeat.TopicPartitions(
            topic_id=self.group.topic_id, partitions=sorted(self.owned)
        )

    def _take(self, answer: Any) -> None:
        self._announces = False
        self.generation = answer.member_epoch
        if answer.assignment is None:
            # What it said it owns is what it should own.
            self.is_settled = True
            return
        given = {number for each in answer.assignment.topic_partitions for number in each.partitions}
        self.is_settled = given == self.owned
        self._own(frozenset(given))

    def _own(self, partitions: frozenset[int]) -> None:
        owners, before = self.group.owners, self.owned
        self.owned = partitions
        owners.release(before - partitions, self)
        owners.take(partitions - before, self)


class MemberKind(Protocol):
    def __call__(self, group: GroupUnderTest, name: str, instance: str | None = None) -> Member: ...


def is_stable(members: Sequence[Member], group: GroupUnderTest) -> bool:
    """All members that live are in one generation and own all partitions."""
    alive = [member for member in members if member.is_alive]
    owned = [partition for member in alive for partition in member.owned]
    return (
        all(member.is_settled for member in alive)
        and len({member.generation for member in alive}) == 1
        and sorted(owned) == group.partitions
    )


def seconds_until_stable(members: Sequence[Member], group: GroupUnderTest) -> float:
    """And until the coordinator has answered each member again."""
    began = time.monotonic()
    before = {member: member.heartbeats for member in members}

    def is_stable_now() -> bool:
        for member in members:
            if member.failure is not None:
                member.wait()
        alive = (member for member in members if member.is_alive)
        # The first of two may have been answered before this began.
        return all(each.heartbeats > before[each] + 1 for each in alive) and is_stable(members, group)

    try:
        group.system.wait_until(is_stable_now, f"the group {group.name} is stable")
    except TimeoutError as error:
        states = [str(member) for member in members if member.is_alive]
        raise TimeoutError(f"{error}; its members: {'; '.join(states)}") from None
    return time.monotonic() - began


def new_group(system: FaultyCluster, name: str, topic: str, **timeouts: int) -> GroupUnderTest:
    with system.admin() as admin:
        described = admin.describe_topics([topic])[topic]
    partitions = frozenset(each.partition for each in described.partitions)
    group = GroupUnderTest(system, name, topic, described.topic_id, Owners(partitions, 0.0), **timeouts)
    group.owners.session_seconds = group.session_ms / 1000
    return group
