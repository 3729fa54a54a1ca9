"""Incremental fetch sessions: the broker remembers what a client fetches, and answers only what changed.

A session is named by an id and an epoch that both sides count up with each request. A client whose epoch does
not match gets an error and starts over with a full fetch.

Sessions are kept in a cache that has two limits: Kafka's number of slots, and the number of partitions in all
sessions, which is what takes memory. A new session that finds no room displaces, by Kafka's rules, the least
recently used one if nobody has used it for long, or else the smallest of those that are smaller than itself
and have existed for long. If there is none, the client gets no session and sends full fetches."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from barnabas.broker.replica_news import ReplicaNews
from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import ZERO_UUID, Uuid
from barnabas.kernels.log_end import Permit
from barnabas.replication.gate import Asker
from barnabas.replication.waiters import Waiter

NO_SESSION = 0
EPOCH_INITIAL = 0
EPOCH_FINAL = -1
EPOCH_MAX = 2**31 - 1
# All sessions together remember at most this many partitions, which take about 60 MB.
PARTITIONS_MAX = 200_000

# The topic's name, or its id if the session uses ids; and the partition.
PartitionKey: TypeAlias = tuple[str | Uuid, int]


@dataclass(slots=True)
class FetchPartition:
    """One partition that a client fetches, and what it was last sent about it."""

    topic: str
    topic_id: Uuid
    index: int
    fetch_offset: int
    partition_bytes_max: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    last_sent_high_watermark: int = -1
    last_sent_log_start: int = -1
    # The high watermark (for a replica: the end of the log) when the partition was last looked at.
    seen_end: int = -1
    # The log start of the replica that fetches; clients do not send one.
    replica_log_start: int = -1
    permit: Permit | None = None
    # For a replica that has everything: waits for the next append.
    waiter: Waiter | None = None

    @property
    def key(self) -> PartitionKey:
        return (self.topic if self.topic_id == ZERO_UUID else self.topic_id, self.index)

    def update(self, newer: "FetchPartition") -> None:
        self.fetch_offset = newer.fetch_offset
        self.partition_bytes_max = newer.partition_bytes_max
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch
        self.replica_log_start = newer.replica_log_start


class FetchSession:
    """`asker` is who got the permits of the partitions."""

    def __init__(
        self, session_id: int, asker: Asker, partitions: Mapping[PartitionKey, FetchPartition], now: float
    ) -> None:
        self.id = session_id
        self.epoch = 1
        self.asker = asker
        self.client_id = (asker.client_id or "").encode()
        self.uses_topic_ids = False
        self.partitions = dict(partitions)
        self.created = self.last_used = now
        # For the session of a replica: what changed.
        self.news: ReplicaNews | None = None

    def release(self) -> None:
        """The session has ended."""
        if self.news is not None:
            self.news.supersede_waiting()
            for partition in self.partitions.values():
                self.news.forget(partition)

    def served(self, keys: Iterable[PartitionKey]) -> None:
        """Partitions that just had data go to the end, so that a limit on bytes starves none."""
        for key in keys:
            partition = self.partitions.pop(key, None)
            if partition is not None:
                self.partitions[key] = partition


class FetchSessions:
    def __init__(
        self, clock: Clock, slots: int, eviction_seconds: float, partitions_max: int = PARTITIONS_MAX
    ) -> None:
        self._clock = clock
        self._slots = slots
        self._eviction_seconds = eviction_seconds
        self._partitions_max = partitions_max
        # In the order of use, the least recently used first.
        self._sessions: dict[int, FetchSession] = {}
        # Both are read by /metrics.
        self.partition_count = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def start(
        self, asker: Asker, partitions: Mapping[PartitionKey, FetchPartition], *, uses_topic_ids: bool
    ) -> FetchSession | None:
        """A new session over these partitions; None when there is no room or nothing to remember."""
        if not partitions or not self._make_room(len(partitions), is_replica=asker.is_replica):
            return None
        session = FetchSession(self._fresh_id(), asker, partitions, self._clock.monotonic())
        session.uses_topic_ids = uses_topic_ids
        if asker.is_replica:
            session.news = ReplicaNews(self._clock)
        self._sessions[session.id] = session
        self.partition_count += len(partitions)
        return session

    def resume(self, session_id: int, epoch: int, asker: Asker, *, uses_topic_ids: bool) -> FetchSession:
        """The session a client names, moved on to its next epoch."""
        session = self._sessions.get(session_id)
        if session is None or session.asker.principal != asker.principal:
            # The topics in the session of another user are not for everybody.
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if session.asker != asker:
            # Somebody else, or another version: the gate has to be asked again.
            session.asker = asker
            session.client_id = (asker.client_id or "").encode()
            for partition in session.partitions.values():
                partition.permit = None
        self.move_on(session)
        return session

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def move_on(self, session: FetchSession) -> None:
        """The session is used for a request with its epoch; the next request has the next one."""
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        session.last_used = self._clock.monotonic()
        del self._sessions[session.id]
        self._sessions[session.id] = session

    def update(
        self,
        session: FetchSession,
        changed: Mapping[PartitionKey, FetchPartition],
        forgotten: Iterable[PartitionKey],
    ) -> None:
        """Add, update and remove partitions. A session that becomes too large ends: its client gets an error
        and starts over with a full fetch."""
        before = len(session.partitions)
        for key, partition in changed.items():
            known = session.partitions.get(key)
            if known is None:
                session.partitions[key] = partition
                continue
            if session.asker.is_replica and known.current_leader_epoch != partition.current_leader_epoch:
                # A follower may have ignored answers that came while it learned of the new epoch.
                known.last_sent_high_watermark = known.last_sent_log_start = -1
            known.update(partition)
        for key in forgotten:
            gone = session.partitions.pop(key, None)
            if gone is not None and session.news is not None:
                session.news.forget(gone)
        self.partition_count += len(session.partitions) - before
        if self.partition_count > self._partitions_max and len(session.partitions) > before:
            self.end(session.id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    def end_of(self, session_id: int, asker: Asker) -> None:
        """End the session, if it is one of this user."""
        session = self._sessions.get(session_id)
        if session is not None and session.asker.principal == asker.principal:
            self.end(session_id)

    def end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partition_count -= len(session.partitions)
            session.release()

    def _make_room(self, partitions: int, *, is_replica: bool) -> bool:
        """Room for a new session with this many partitions, if there is any or if others must give way."""
        if partitions > self._partitions_max:
            return False
        while len(self._sessions) >= self._slots or self.partition_count + partitions > self._partitions_max:
            displaced = self._displaceable(partitions, is_replica=is_replica)
            if displaced is None:
                return False
            self.end(displaced.id)
            self.evictions += 1
        return True

    def _displaceable(self, partitions: int, *, is_replica: bool) -> FetchSession | None:
        """A session of a replica gives way only to another replica."""
        now = self._clock.monotonic()
        candidates = [
            session for session in self._sessions.values() if is_replica or not session.asker.is_replica
        ]
        if not candidates:
            return None
        if now - candidates[0].last_used >= self._eviction_seconds:
            return candidates[0]
        settled = (
            session
            for session in candidates
            if now - session.created >= self._eviction_seconds and len(session.partitions) < partitions
        )
        return min(settled, key=lambda session: len(session.partitions), default=None)

    def _fresh_id(self) -> int:
        while True:
            session_id = secrets.randbelow(EPOCH_MAX) + 1
            if session_id not in self._sessions:
                return session_id
