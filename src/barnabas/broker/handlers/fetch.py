"""Fetch, key 1, versions 4-18: hand out ranges of the log, and wait for them when there is nothing yet.

Behaviour: the batch that holds the requested offset is returned whole, the first batch even when it is
over the limits; without data the request waits for min_bytes or max_wait_ms; read_committed ends at
the last stable offset and lists aborted transactions; records are empty, never null.
Versions:  v7 sessions · v9 leader epochs · v10 zstd · v12 diverging epoch · v13 topic ids ·
v16 endpoints of new leaders.
Not done:  fetches of replicas (replica_id >= 0), which come with replication; racks.

Who may read what is decided by the gate (replication/gate.py). The partitions of a session keep the permits
that they got. A request over very many partitions is answered in turns (broker/turns.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeAlias

from barnabas.broker.call import Call, Encoded
from barnabas.broker.fetch_sessions import (
    EPOCH_FINAL,
    EPOCH_INITIAL,
    NO_SESSION,
    FetchPartition,
    FetchSession,
    PartitionKey,
)
from barnabas.broker.later import Later
from barnabas.broker.leaders import endpoints_of, leader_of
from barnabas.broker.turns import Work, finish, in_turns, run_in_turns
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import ZERO_UUID, Uuid
from barnabas.kernels.log_end import Permit
from barnabas.kernels.plain_frames import FETCHED_TAIL, write_fetched
from barnabas.log.leader_epochs import EpochEntry
from barnabas.log.reading import LogSlice
from barnabas.replication.partition import Partition
from barnabas.replication.waiters import Callback, Waiter
from barnabas.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

READ_COMMITTED = 1
FLEXIBLE_VERSION_MIN = 12
TOPIC_ID_VERSION_MIN = 13
REPLICA_STATE_VERSION_MIN = 15
ENDPOINTS_VERSION_MIN = 16
NOT_A_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
# Work on this many partitions takes much less than a turn.
PAUSE_PARTITIONS = 64
# A fetch that waits for more partitions than this is answered by a task, in turns. With fewer the append that
# feeds it answers it, in the same turn.
MANY_PARTITIONS = 2000

Answer: TypeAlias = FetchResponse | Encoded | Later | Coroutine[Any, Any, FetchResponse | Encoded]


class PartitionRead:
    """What was read from one partition. Without a partition in `partition` nothing could be read."""

    __slots__ = (
        "aborted",
        "diverging",
        "error",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "partition",
        "records",
        "wanted",
    )

    def __init__(self, wanted: FetchPartition) -> None:
        self.wanted = wanted
        self.partition: Partition | None = None
        self.error: ErrorCode = ErrorCode.NONE
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1
        self.records: LogSlice | None = None
        self.aborted: list[AbortedTransaction] | None = None
        self.diverging: EpochEntry | None = None

    @property
    def has_news(self) -> bool:
        """Whether an incremental answer has to name this partition."""
        return (
            self.records is not None
            or self.error != ErrorCode.NONE
            or self.diverging is not None
            or self.high_watermark != self.wanted.last_sent_high_watermark
            or self.log_start_offset != self.wanted.last_sent_log_start
        )


class ReadResult:
    """One pass over all partitions of a request."""

    __slots__ = ("bytes_read", "has_error", "reads")

    def __init__(self) -> None:
        self.reads: list[PartitionRead] = []
        self.bytes_read = 0
        self.has_error = False


def fetch(call: Call, request: FetchRequest) -> Answer:
    return in_turns(_fetch(call, request))


def _fetch(call: Call, request: FetchRequest) -> Work[Answer]:
    state = request.replica_state
    try:
        call.broker.gate.check_replica(
            state.replica_id if call.version >= REPLICA_STATE_VERSION_MIN else request.replica_id
        )
        session, partitions = yield from _open(call, request)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    reading = Reading(call, request, session, partitions)
    result = yield from reading.read()
    if reading.is_enough(result):
        return (yield from reading.respond(result))
    return reading.wait()


def _open(call: Call, request: FetchRequest) -> Work[tuple[FetchSession | None, list[FetchPartition]]]:
    """The session the request belongs to, if any, and the partitions to read."""
    sessions = call.broker.fetch_sessions
    requested = yield from _requested(request)
    if request.session_epoch in (EPOCH_INITIAL, EPOCH_FINAL):
        if request.session_id != NO_SESSION:
            sessions.end(request.session_id)
        session = None
        if request.session_epoch == EPOCH_INITIAL:
            session = sessions.start(call.asker, requested, uses_topic_ids=_uses_topic_ids(call))
        return session, list(requested.values())
    session = sessions.resume(
        request.session_id, request.session_epoch, call.asker, uses_topic_ids=_uses_topic_ids(call)
    )
    forgotten: list[PartitionKey] = [
        (gone.topic if gone.topic_id == ZERO_UUID else gone.topic_id, index)
        for gone in request.forgotten_topics_data
        for index in gone.partitions
    ]
    sessions.update(session, requested, forgotten)
    if not session.partitions:
        sessions.end(session.id)
        return None, []
    return session, list(session.partitions.values())


def _requested(request: FetchRequest) -> Work[dict[PartitionKey, FetchPartition]]:
    """A partition that is named more than once counts once, as it was named last: Kafka's rule."""
    requested: dict[PartitionKey, FetchPartition] = {}
    for topic in request.topics:
        name: str | Uuid = topic.topic if topic.topic_id == ZERO_UUID else topic.topic_id
        for part in topic.partitions:
            requested[name, part.partition] = FetchPartition(
                topic.topic,
                topic.topic_id,
                part.partition,
                part.fetch_offset,
                part.partition_max_bytes,
                part.current_leader_epoch,
                part.last_fetched_epoch,
            )
            if len(requested) % PAUSE_PARTITIONS == 0:
                yield None
    return requested


def _uses_topic_ids(call: Call) -> bool:
    return call.version >= TOPIC_ID_VERSION_MIN


class Reading:
    """A fetch while it is being answered: read now, wait, read again when something arrived."""

    def __init__(
        self,
        call: Call,
        request: FetchRequest,
        session: FetchSession | None,
        partitions: list[FetchPartition],
    ) -> None:
        self._call = call
        self._gate = call.broker.gate
        self._asker = call.asker
        self._request = request
        self._session = session
        self._partitions = partitions
        self._is_full = request.session_epoch in (EPOCH_INITIAL, EPOCH_FINAL)
        self._committed_only = request.isolation_level == READ_COMMITTED
        self._bytes_max = min(request.max_bytes, call.broker.config["fetch.max.bytes"])
        self._waiters: list[Waiter] = []

    # ---- reading

    def read(self) -> Work[ReadResult]:
        result = ReadResult()
        for count, wanted in enumerate(self._partitions):
            if count % PAUSE_PARTITIONS == PAUSE_PARTITIONS - 1:
                yield None
            if self._is_full or not self._is_quiet(wanted):
                result.reads.append(self._read_guarded(wanted, result))
        return result

    def _is_quiet(self, wanted: FetchPartition) -> bool:
        """Whether an incremental answer need not name this partition: a client that waits at the end of a
        thousand partitions pays only for those that changed."""
        try:
            permit = self._permit(wanted)
            self._gate.check_read(self._asker, permit, wanted.current_leader_epoch, wanted.fetch_offset)
        except KafkaError:
            return False
        partition: Partition = permit.partition
        wanted.seen_end = partition.high_watermark
        return (
            wanted.fetch_offset == partition.high_watermark == wanted.last_sent_high_watermark
            and partition.log.log_start_offset == wanted.last_sent_log_start
            and wanted.last_fetched_epoch in (-1, permit.leader_epoch)
        )

    def _read_guarded(self, wanted: FetchPartition, result: ReadResult) -> PartitionRead:
        """Here, and nowhere else in this file, the KafkaError of a partition becomes an error code."""
        read = PartitionRead(wanted)
        try:
            self._read_one(wanted, read, result)
        except KafkaError as error:
            result.has_error = True
            read.error = error.code
        return read

    def _read_one(self, wanted: FetchPartition, read: PartitionRead, result: ReadResult) -> None:
        permit = self._permit(wanted)
        partition: Partition = permit.partition
        read.partition = partition
        self._gate.check_read(self._asker, permit, wanted.current_leader_epoch, wanted.fetch_offset)
        log = partition.log
        read.high_watermark, read.last_stable_offset = partition.high_watermark, partition.last_stable_offset
        read.log_start_offset = log.log_start_offset
        wanted.seen_end = read.high_watermark
        if self._committed_only:
            read.aborted = []
        if wanted.last_fetched_epoch >= 0:
            read.diverging = _divergence(partition, wanted)
            if read.diverging is not None:
                result.has_error = True
                return
        end = self._gate.read_end(permit, self._committed_only)
        room = self._bytes_max - result.bytes_read
        if wanted.fetch_offset >= end or (room <= 0 and result.bytes_read):
            return
        records = log.read(
            wanted.fetch_offset,
            max(0, min(wanted.partition_bytes_max, room)),
            upper_offset=end,
            at_least_one=result.bytes_read == 0,
        )
        if not records.size:
            return
        read.records = records
        result.bytes_read += records.size
        if self._committed_only:
            read.aborted = [
                AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in log.aborted_transactions(
                    wanted.fetch_offset, min(end, log.upper_bound_of(records))
                )
            ]

    def _permit(self, wanted: FetchPartition) -> Permit:
        """The permit that the partition has from an earlier request of this session, or one from the gate."""
        permit = wanted.permit
        if permit is None or permit.partition is None:
            wanted.permit = None
            permit = self._gate.to_read(self._asker, self._name(wanted), wanted.topic_id, wanted.index)
            wanted.permit = permit
        return permit

    def _name(self, wanted: FetchPartition) -> str | None:
        if self._call.version < TOPIC_ID_VERSION_MIN:
            return wanted.topic
        topic = self._call.broker.image.topic_by_id(wanted.topic_id)
        return None if topic is None else topic.name

    # ---- waiting

    def is_enough(self, result: ReadResult) -> bool:
        return (
            result.has_error
            or result.bytes_read >= self._request.min_bytes
            or self._request.max_wait_ms <= 0
            or not self._partitions
        )

    def wait(self) -> Later | Coroutine[Any, Any, FetchResponse | Encoded]:
        """Answer when there is enough to read, or when the client's time is over."""
        if len(self._partitions) > MANY_PARTITIONS:
            return self._wait_for_many()
        later = Later()

        def end() -> None:
            timer.cancel()
            self._unpark()

        def timed_out() -> None:
            self._unpark()
            later.resolve(finish(self.respond(finish(self.read()))))

        def woken(_: bool) -> None:
            self._unpark()
            result = finish(self.read())
            if self.is_enough(result):
                # The client first: it is waiting.
                later.resolve(finish(self.respond(result)))
                timer.cancel()
            else:
                finish(self._park(woken))

        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._request.max_wait_ms / 1000, timed_out)
        finish(self._park(woken))
        self._call.connection.when_abandoned = end
        return later

    async def _wait_for_many(self) -> FetchResponse | Encoded:
        """The same for very many partitions: every pass over them gives the loop back in between."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._call.connection.when_abandoned = task.cancel
        end = loop.time() + self._request.max_wait_ms / 1000
        try:
            while True:
                woken = asyncio.Event()
                await run_in_turns(self._park(lambda _, woken=woken: woken.set()))  # type: ignore[misc]
                is_over = not await _is_set_before(woken, end)
                await run_in_turns(self._unpark_in_turns())
                result = await run_in_turns(self.read())
                if is_over or self.is_enough(result):
                    answer: FetchResponse | Encoded = await run_in_turns(self.respond(result))
                    return answer
        finally:
            self._unpark()

    def _park(self, woken: Callback) -> Work[None]:
        """Have `woken` called as soon as one of the partitions has more than the last pass has seen."""
        replicas = self._call.broker.replicas
        for count, wanted in enumerate(self._partitions):
            if count % PAUSE_PARTITIONS == PAUSE_PARTITIONS - 1:
                yield None
            permit = wanted.permit
            partition = None if permit is None else permit.partition
            if partition is None:
                partition = replicas.get(self._name(wanted) or "", wanted.index)
            if partition is None:
                continue
            beyond = max(wanted.fetch_offset, wanted.seen_end) + 1
            if partition.high_watermark >= beyond:
                woken(True)
                return
            self._waiters.append(partition.committed.when(beyond, woken))

    def _unpark(self) -> None:
        for waiter in self._waiters:
            waiter.cancel()
        self._waiters.clear()

    def _unpark_in_turns(self) -> Work[None]:
        while self._waiters:
            self._waiters.pop().cancel()
            if len(self._waiters) % PAUSE_PARTITIONS == 0:
                yield None

    # ---- answering

    def respond(self, result: ReadResult) -> Work[FetchResponse | Encoded]:
        self._count(result)
        if len(self._partitions) == 1 and self._is_plain(result):
            return self._plain_response(result.reads[0])
        response = FetchResponse(session_id=NO_SESSION if self._session is None else self._session.id)
        leaders: set[int] = set()
        topics: dict[str | Uuid, FetchableTopicResponse] = {}
        for count, read in enumerate(result.reads):
            if count % PAUSE_PARTITIONS == PAUSE_PARTITIONS - 1:
                yield None
            if not self._is_full and not read.has_news:
                continue
            wanted = read.wanted
            key = wanted.key[0]
            topic = topics.get(key)
            if topic is None:
                topic = FetchableTopicResponse(topic=wanted.topic, topic_id=wanted.topic_id, partitions=[])
                topics[key] = topic
                response.responses.append(topic)
            data = self._partition_data(read)
            leaders.add(data.current_leader.leader_id)
            topic.partitions.append(data)
            wanted.last_sent_high_watermark = read.high_watermark
            wanted.last_sent_log_start = read.log_start_offset
        if self._session is not None:
            self._session.served(read.wanted.key for read in result.reads if read.records is not None)
        leaders.discard(-1)
        if leaders and self._call.version >= ENDPOINTS_VERSION_MIN:
            response.node_endpoints = [
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in endpoints_of(self._call, leaders)
            ]
        return response

    def _partition_data(self, read: PartitionRead) -> PartitionData:
        data = PartitionData(
            partition_index=read.wanted.index,
            error_code=read.error,
            high_watermark=read.high_watermark,
            last_stable_offset=read.last_stable_offset,
            log_start_offset=read.log_start_offset,
            aborted_transactions=read.aborted,
            preferred_read_replica=-1,
            records=b"" if read.records is None else read.records,
        )
        if read.diverging is not None:
            data.diverging_epoch = EpochEndOffset(
                epoch=read.diverging.epoch, end_offset=read.diverging.start_offset
            )
        if read.error in NOT_A_LEADER:
            leader, epoch = leader_of(self._call, self._name(read.wanted) or "", read.wanted.index)
            data.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        return data

    def _is_plain(self, result: ReadResult) -> bool:
        """Whether the answer is the records of the one partition and nothing else."""
        return (
            len(result.reads) == 1
            and result.reads[0].records is not None
            and not result.has_error
            and not self._committed_only
        )

    def _plain_response(self, read: PartitionRead) -> Encoded:
        """The short way for most answers: a kernel writes the same bytes as the codec."""
        wanted, records, version = read.wanted, read.records, self._call.version
        assert records is not None
        wanted.last_sent_high_watermark = read.high_watermark
        wanted.last_sent_log_start = read.log_start_offset
        head = write_fetched(
            version,
            self._call.header.correlation_id,
            NO_SESSION if self._session is None else self._session.id,
            wanted.topic.encode() if version < TOPIC_ID_VERSION_MIN else wanted.topic_id,
            wanted.index,
            read.high_watermark,
            read.last_stable_offset,
            read.log_start_offset,
            records.size,
        )
        return Encoded([head, records, FETCHED_TAIL] if version >= FLEXIBLE_VERSION_MIN else [head, records])

    def _count(self, result: ReadResult) -> None:
        broker = self._call.broker
        for read in result.reads:
            counts = broker.unknown_requests if read.partition is None else read.partition.requests
            counts.fetches += 1
            if read.error != ErrorCode.NONE:
                counts.failed_fetches += 1
            elif read.records is not None:
                counts.bytes_out += read.records.size


def _divergence(partition: Partition, wanted: FetchPartition) -> EpochEntry | None:
    """Where the client's history ends in ours, if it has read records, under an older epoch, that this log
    does not have."""
    last = partition.log.end_offset_for_epoch(wanted.last_fetched_epoch)
    if last.start_offset < 0 or last.epoch < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if last.epoch >= wanted.last_fetched_epoch and last.start_offset >= wanted.fetch_offset:
        return None
    return last


async def _is_set_before(event: asyncio.Event, end: float) -> bool:
    try:
        async with asyncio.timeout_at(end):
            await event.wait()
    except TimeoutError:
        return False
    return True
