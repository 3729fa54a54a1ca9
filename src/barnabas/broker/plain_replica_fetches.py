"""The short way of the fetches of followers: those that name one partition of their session or none, while at
most one partition of it has news.

That is what happens while a partition is written to, for each record, and acknowledgements wait for it. All
other fetches, and those that would be refused, are left to the ordinary way (handlers/fetch.py), also if this
turns out only after the fetch has waited. Both ways ask the same gate, use the same sessions, and their
answers have the same bytes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, cast

from barnabas.broker.call import Call
from barnabas.broker.fetch_reading import Reading, read_ahead
from barnabas.errors import KafkaError
from barnabas.kernels.plain_frames import FETCHED_TAIL, write_fetched
from barnabas.kernels.replica_frames import ReplicaFetchFrame
from barnabas.log.reading import LogSlice
from barnabas.wire.codec import RequestHeader, encode_response
from barnabas.wire.messages.fetch import API_KEY, FetchRequest, FetchResponse

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.fetch_sessions import FetchPartition, FetchSession
    from barnabas.kernels.log_end import Permit
    from barnabas.net.chunks import Chunk
    from barnabas.net.connection import Connection
    from barnabas.replication.gate import Asker
    from barnabas.replication.partition import Partition


class FetchServer(Protocol):
    """What the short way needs of the dispatcher."""

    def serve_reading(self, call: Call, reading: Reading, started: int) -> None:
        """Answer a fetch in the ordinary way."""
        ...

    def record_fetch(self, nanoseconds: int) -> None:
        """A fetch was answered after this time."""
        ...

    def fetch_failed(self, connection: Connection) -> None:
        """Log the defect that is being handled, and close the connection."""
        ...


class PlainReplicaFetches:
    def __init__(self, broker: Broker, server: FetchServer) -> None:
        self.broker = broker
        self.server = server
        self._request = ReplicaFetchFrame()

    def serve(self, connection: Connection, frame: memoryview) -> bool:
        """Answer the frame now or later; False if it belongs to the ordinary way, and nothing has changed."""
        request = self._request
        if not request.read(frame):
            return False
        session = self.broker.fetch_sessions.get(request.session_id)
        if session is None or session.news is None or not _continues(session, request, connection):
            return False
        news = session.news
        if news.is_full_pass_due(self.broker.clock.monotonic()):
            return False
        named: FetchPartition | None = None
        if request.topic_id is not None:
            named = session.partitions.get((request.topic_id, request.partition))
            if named is None:
                return False
        others = [each for each in news.changed.values() if each is not named]
        if not self._may(session.asker, request, named, others):
            return False
        self.broker.fetch_sessions.move_on(session)
        news.begin_short()
        PlainFetch(self, session, connection, request).begin(named, request)
        return True

    def _may(
        self,
        asker: Asker,
        request: ReplicaFetchFrame,
        named: FetchPartition | None,
        others: list[FetchPartition],
    ) -> bool:
        """Whether at most one partition has news, and the gate lets the replica fetch it."""
        if len(others) > (named is None):
            return False
        try:
            self.broker.gate.check_replica(asker)
            if named is not None:
                return self._may_read(
                    asker, named.permit, request.leader_epoch, request.last_epoch, request.fetch_offset
                )
            return all(
                self._may_read(
                    asker,
                    each.permit,
                    each.current_leader_epoch,
                    each.last_fetched_epoch,
                    each.fetch_offset,
                )
                for each in others
            )
        except KafkaError:
            return False

    def _may_read(
        self, asker: Asker, permit: Permit | None, leader_epoch: int, last_epoch: int, offset: int
    ) -> bool:
        """What the follower has is a part of this log if it was written under the same leader epoch."""
        if permit is None or permit.partition is None or last_epoch != permit.leader_epoch:
            return False
        gate = self.broker.gate
        gate.check_read(asker, permit, leader_epoch)
        gate.check_offset(asker, permit, offset)
        return True


def _continues(session: FetchSession, request: ReplicaFetchFrame, connection: Connection) -> bool:
    """Whether this is the next request of the one who has the session."""
    asker = session.asker
    return (
        request.session_epoch == session.epoch
        and request.version == asker.version
        and request.replica_id == asker.replica_id
        and request.broker_epoch == asker.broker_epoch
        and request.client_id == session.client_id
        and connection.session.listener.name == asker.listener
        and connection.session.principal == asker.principal
        and connection.session.host == asker.host
    )


class PlainFetch:
    """One fetch of the short way, while it is answered or waits (the port WaitingFetch)."""

    __slots__ = (
        "_bytes_max",
        "_bytes_min",
        "_connection",
        "_correlation_id",
        "_news",
        "_owner",
        "_session",
        "_started",
        "_version",
        "_wait_ms",
    )

    def __init__(
        self,
        owner: PlainReplicaFetches,
        session: FetchSession,
        connection: Connection,
        request: ReplicaFetchFrame,
    ) -> None:
        assert session.news is not None
        self._owner = owner
        self._session = session
        self._news = session.news
        self._connection = connection
        self._version = request.version
        self._correlation_id = request.correlation_id
        self._wait_ms = request.wait_ms
        self._bytes_min = request.bytes_min
        self._bytes_max = min(request.bytes_max, owner.broker.config["fetch.max.bytes"])
        self._started = time.perf_counter_ns()

    def begin(self, named: FetchPartition | None, request: ReplicaFetchFrame) -> None:
        news = self._news
        if named is not None:
            named.fetch_offset = request.fetch_offset
            named.partition_bytes_max = request.partition_bytes_max
            named.current_leader_epoch = request.leader_epoch
            named.last_fetched_epoch = request.last_epoch
            named.replica_log_start = request.log_start_offset
            news.changed[named.key] = named
        # It is at most one. Without a name, the replica asks for the same records again, which counts.
        for requested in tuple(news.changed.values()):
            if not self._record(requested):
                self._go_on_in_the_ordinary_way(is_recorded=False)
                return
        self._answer_or_wait()

    def _record(self, requested: FetchPartition) -> bool:
        """The replica has everything before the offset that it fetches from. This may commit records."""
        permit, asker = requested.permit, self._session.asker
        assert permit is not None
        try:
            permit.partition.record_fetch(
                asker.replica_id, asker.broker_epoch, requested.fetch_offset, requested.replica_log_start
            )
        except KafkaError:
            return False
        return True

    def _answer_or_wait(self) -> None:
        """At most one partition has news, unless the fetch itself was the reason for more."""
        news = self._news
        if len(news.changed) > 1:
            self._go_on_in_the_ordinary_way()
            return
        requested = next(iter(news.changed.values()), None)
        if requested is not None:
            partition: Partition | None = None if requested.permit is None else requested.permit.partition
            if partition is None:
                self._go_on_in_the_ordinary_way()
                return
            if partition.log.log_end_offset > requested.fetch_offset:
                self._answer(requested, partition)
                return
            news.changed.clear()
            news.looked_at((requested,))
        self._wait()

    def _wait(self) -> None:
        if self._news.waiting is not self:
            self._news.wait(self, self._wait_ms / 1000)
            self._connection.when_abandoned = self._end

    def _answer(self, requested: FetchPartition, partition: Partition) -> None:
        """Send the records of the only partition that has some."""
        log = partition.log
        records: LogSlice | None = None
        if not self._owner.broker.replicas.surroundings.throttle.is_set:
            try:
                records = log.read(
                    requested.fetch_offset,
                    min(requested.partition_bytes_max, self._bytes_max),
                    upper_offset=log.log_end_offset,
                    at_least_one=True,
                )
            except KafkaError:
                records = None
        if records is None or records.size < max(1, self._bytes_min):
            self._go_on_in_the_ordinary_way()
            return
        self._end()
        read_ahead(records)
        requested.last_sent_high_watermark = log.high_watermark
        requested.last_sent_log_start = log.log_start_offset
        head = write_fetched(
            self._version,
            self._correlation_id,
            self._session.id,
            requested.topic_id,
            requested.index,
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
            records.size,
        )
        self._connection.reply(cast("list[Chunk]", [head, records, FETCHED_TAIL]))
        self._news.looked_at((requested,))
        self._owner.server.record_fetch(time.perf_counter_ns() - self._started)

    # ---- the port WaitingFetch. A defect here must not fail the request of somebody else, who called.

    def woken(self) -> None:
        try:
            self._answer_or_wait()
        except Exception:
            self._owner.server.fetch_failed(self._connection)

    def supersede(self) -> None:
        self._end()
        nothing = FetchResponse(session_id=self._session.id)
        chunks = encode_response(API_KEY, self._version, self._correlation_id, nothing)
        self._connection.reply(cast("list[Chunk]", chunks))

    def timed_out(self) -> None:
        try:
            self._go_on_in_the_ordinary_way()
        except Exception:
            self._owner.server.fetch_failed(self._connection)

    def _end(self) -> None:
        if self._news.waiting is self:
            self._news.waiting = None

    def _go_on_in_the_ordinary_way(self, *, is_recorded: bool = True) -> None:
        """Answer, or wait on, as if the fetch had come the ordinary way."""
        self._end()
        session = self._session
        asker = session.asker
        header = RequestHeader(API_KEY, self._version, self._correlation_id, asker.client_id)
        call = Call(self._owner.broker, self._connection, self._connection.session, header)
        request = FetchRequest(
            max_wait_ms=self._wait_ms_left(),
            min_bytes=self._bytes_min,
            max_bytes=self._bytes_max,
            session_id=session.id,
            session_epoch=session.epoch,
        )
        reading = Reading(call, asker, request, session, self._news.take(), is_recorded=is_recorded)
        self._owner.server.serve_reading(call, reading, self._started)

    def _wait_ms_left(self) -> int:
        waited_ms = (time.perf_counter_ns() - self._started) // 1_000_000
        return max(0, self._wait_ms - waited_ms)
