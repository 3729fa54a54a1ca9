"""Incremental fetch sessions: the broker remembers what a client fetches, and answers only what changed.

A session is named by an id and an epoch that both sides count up with each request; a client that is
out of step gets an error and starts over with a full fetch. Sessions are kept in a bounded cache: a new
one displaces the least recently used if that one has been quiet long enough."""

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import ZERO_UUID, Uuid

NO_SESSION = 0
EPOCH_INITIAL = 0
EPOCH_FINAL = -1
EPOCH_MAX = 2**31 - 1


@dataclass(slots=True)
class FetchPartition:
    """One partition that a client fetches, and what it was last told about it."""

    topic: str
    topic_id: Uuid
    index: int
    fetch_offset: int
    partition_bytes_max: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    last_sent_high_watermark: int = -1
    last_sent_log_start: int = -1

    @property
    def key(self) -> tuple[str | Uuid, int]:
        return (self.topic if self.topic_id == ZERO_UUID else self.topic_id, self.index)

    def renew(self, newer: "FetchPartition") -> None:
        self.fetch_offset = newer.fetch_offset
        self.partition_bytes_max = newer.partition_bytes_max
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch


class FetchSession:
    def __init__(self, session_id: int, uses_topic_ids: bool, partitions: Iterable[FetchPartition]) -> None:
        self.id = session_id
        self.epoch = 1
        self.uses_topic_ids = uses_topic_ids
        self.partitions = {wanted.key: wanted for wanted in partitions}
        self.last_used = 0.0

    def update(self, changed: Iterable[FetchPartition], forgotten: Iterable[tuple[str | Uuid, int]]) -> None:
        for wanted in changed:
            known = self.partitions.get(wanted.key)
            if known is None:
                self.partitions[wanted.key] = wanted
            else:
                known.renew(wanted)
        for key in forgotten:
            self.partitions.pop(key, None)

    def served(self, keys: Iterable[tuple[str | Uuid, int]]) -> None:
        """Partitions that just had data go to the end, so that a limit on bytes starves none."""
        for key in keys:
            wanted = self.partitions.pop(key, None)
            if wanted is not None:
                self.partitions[key] = wanted


class FetchSessions:
    def __init__(self, clock: Clock, slots: int, eviction_seconds: float) -> None:
        self._clock = clock
        self._slots = slots
        self._eviction_seconds = eviction_seconds
        # In the order of use, the least recently used first.
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions(self) -> Iterator[FetchPartition]:
        for session in self._sessions.values():
            yield from session.partitions.values()

    def start(self, uses_topic_ids: bool, partitions: list[FetchPartition]) -> FetchSession | None:
        """A new session over these partitions; None when there is no room or nothing to remember."""
        if not partitions or not self._make_room():
            return None
        session = FetchSession(self._fresh_id(), uses_topic_ids, partitions)
        self._touch(session)
        return session

    def resume(self, session_id: int, epoch: int, uses_topic_ids: bool) -> FetchSession:
        """The session a client names, moved on to its next epoch."""
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        self._touch(session)
        return session

    def end(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def _make_room(self) -> bool:
        if len(self._sessions) < self._slots:
            return True
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or self._clock.monotonic() - oldest.last_used < self._eviction_seconds:
            return False
        self.end(oldest.id)
        self.evictions += 1
        return True

    def _touch(self, session: FetchSession) -> None:
        session.last_used = self._clock.monotonic()
        self._sessions.pop(session.id, None)
        self._sessions[session.id] = session

    def _fresh_id(self) -> int:
        while True:
            session_id = secrets.randbelow(EPOCH_MAX) + 1
            if session_id not in self._sessions:
                return session_id
