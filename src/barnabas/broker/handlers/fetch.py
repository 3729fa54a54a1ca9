"""Fetch, key 1, versions 4-18: hand out ranges of the log, and wait for them when there is nothing yet.

Behaviour: the batch that holds the asked offset is returned whole, the first batch even when it is
over the limits; without data the request waits for min_bytes or max_wait_ms; read_committed ends at
the last stable offset and lists aborted transactions; records are empty, never null.
Versions:  v7 sessions · v9 leader epochs · v10 zstd · v12 diverging epoch · v13 topic ids ·
v16 endpoints of new leaders.
Not done:  fetches of replicas (replica_id >= 0), which come with replication; racks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.broker.call import Call, Encoded
from barnabas.broker.fetch_sessions import (
    EPOCH_FINAL,
    EPOCH_INITIAL,
    NO_SESSION,
    FetchPartition,
    FetchSession,
)
from barnabas.broker.later import Later
from barnabas.broker.leaders import endpoints_of, leader_of
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import ZERO_UUID, Uuid
from barnabas.kernels.plain_frames import FETCHED_TAIL, write_fetched
from barnabas.log.reading import LogSlice
from barnabas.replication.partition import Partition
from barnabas.replication.waiters import Waiter
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
ZSTD_VERSION_MIN = 10
FLEXIBLE_VERSION_MIN = 12
TOPIC_ID_VERSION_MIN = 13
ENDPOINTS_VERSION_MIN = 16
NOT_A_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


@dataclass(slots=True)
class ReadResult:
    """One pass over all wanted partitions."""

    answers: list[tuple[FetchPartition, PartitionData]] = field(default_factory=list)
    bytes_read: int = 0
    has_error: bool = False


def fetch(call: Call, request: FetchRequest) -> FetchResponse | Encoded | Later:
    replica_id = request.replica_state.replica_id if call.version >= 15 else request.replica_id
    if replica_id >= 0:
        # A client that poses as a replica could move the high watermark; there are no replicas yet.
        return FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    try:
        session, partitions = _open(call, request)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    reading = Reading(call, request, session, partitions)
    plain = reading.answer_plainly()
    if plain is not None:
        return plain
    first = reading.read()
    if reading.is_enough(first):
        return reading.respond(first)
    return reading.park()


def _open(call: Call, request: FetchRequest) -> tuple[FetchSession | None, list[FetchPartition]]:
    """The session the request belongs to, if any, and what it partitions."""
    sessions = call.broker.fetch_sessions
    uses_topic_ids = call.version >= TOPIC_ID_VERSION_MIN
    asked = [
        FetchPartition(
            topic.topic,
            topic.topic_id,
            part.partition,
            part.fetch_offset,
            part.partition_max_bytes,
            part.current_leader_epoch,
            part.last_fetched_epoch,
        )
        for topic in request.topics
        for part in topic.partitions
    ]
    if len(asked) > 1:
        # A partition asked for more than once counts once, as the last time: Kafka's rule, and cheap.
        asked = list({wanted.key: wanted for wanted in asked}.values())
    if request.session_epoch in (EPOCH_INITIAL, EPOCH_FINAL):
        if request.session_id != NO_SESSION:
            sessions.end(request.session_id)
        if request.session_epoch == EPOCH_FINAL:
            return None, asked
        return sessions.start(uses_topic_ids, asked), asked
    session = sessions.resume(request.session_id, request.session_epoch, uses_topic_ids)
    forgotten: list[tuple[str | Uuid, int]] = [
        (gone.topic if gone.topic_id == ZERO_UUID else gone.topic_id, index)
        for gone in request.forgotten_topics_data
        for index in gone.partitions
    ]
    session.update(asked, forgotten)
    if not session.partitions:
        sessions.end(session.id)
        return None, []
    return session, list(session.partitions.values())


class Reading:
    """A fetch while it is being answered: read now, park, read again when something arrived."""

    def __init__(
        self,
        call: Call,
        request: FetchRequest,
        session: FetchSession | None,
        partitions: list[FetchPartition],
    ) -> None:
        self._call = call
        self._request = request
        self._session = session
        self._partitions = partitions
        self._is_full = request.session_epoch in (EPOCH_INITIAL, EPOCH_FINAL)
        self._bytes_max = min(request.max_bytes, call.broker.config["fetch.max.bytes"])
        self._waiters: list[Waiter] = []

    # ---- reading

    def read(self) -> ReadResult:
        this = ReadResult()
        for wanted in self._partitions if self._is_full else self._partitions_with_news():
            data = PartitionData(
                partition_index=wanted.index,
                high_watermark=-1,
                last_stable_offset=-1,
                log_start_offset=-1,
                aborted_transactions=None,
                preferred_read_replica=-1,
                records=b"",
            )
            try:
                self._read_one(wanted, data, this)
            except KafkaError as error:
                this.has_error = True
                data.error_code = error.code
                if error.code in NOT_A_LEADER:
                    leader, epoch = leader_of(self._call, self._name(wanted) or "", wanted.index)
                    data.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
            this.answers.append((wanted, data))
        return this

    def _partitions_with_news(self) -> list[FetchPartition]:
        """The partitions of a session that an answer may have to name. A client that waits at the end of a
        thousand partitions pays only for those that changed."""
        replicas = self._call.broker.replicas
        by_name = self._call.version < TOPIC_ID_VERSION_MIN
        found = []
        for wanted in self._partitions:
            name = wanted.topic if by_name else self._name(wanted)
            partition = None if name is None else replicas.get(name, wanted.index)
            if partition is None or not self._is_quiet(wanted, partition):
                found.append(wanted)
        return found

    def _is_quiet(self, wanted: FetchPartition, partition: Partition) -> bool:
        log = partition.log
        end = partition.high_watermark
        return (
            wanted.fetch_offset == end == wanted.last_sent_high_watermark
            and log.log_start_offset == wanted.last_sent_log_start
            and partition.is_leader
            and not log.offline
            and wanted.current_leader_epoch in (-1, partition.leader_epoch)
            and wanted.last_fetched_epoch in (-1, partition.leader_epoch)
            and (wanted.topic_id == ZERO_UUID or wanted.topic_id == partition.topic_id)
            and (self._call.version >= ZSTD_VERSION_MIN or log.config.compression_type != "zstd")
        )

    def _read_one(self, wanted: FetchPartition, data: PartitionData, this: ReadResult) -> None:
        partition = self._partition(wanted)
        partition.check_epoch(wanted.current_leader_epoch)
        if partition.log.config.compression_type == "zstd" and self._call.version < ZSTD_VERSION_MIN:
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        committed_only = self._request.isolation_level == READ_COMMITTED
        stable = partition.last_stable_offset
        upper = stable if committed_only else partition.high_watermark
        if not partition.log.log_start_offset <= wanted.fetch_offset <= partition.log.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        data.high_watermark, data.last_stable_offset = partition.high_watermark, stable
        data.log_start_offset = partition.log.log_start_offset
        if committed_only:
            data.aborted_transactions = []
        if wanted.last_fetched_epoch >= 0 and self._diverges(partition, wanted, data):
            this.has_error = True
            return
        room = self._bytes_max - this.bytes_read
        if wanted.fetch_offset >= upper or (room <= 0 and this.bytes_read):
            return
        found = partition.log.read(
            wanted.fetch_offset,
            max(0, min(wanted.partition_bytes_max, room)),
            upper_offset=upper,
            at_least_one=this.bytes_read == 0,
        )
        if not found.size:
            return
        data.records = found
        this.bytes_read += found.size
        if committed_only:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in partition.log.aborted_transactions(
                    wanted.fetch_offset, min(upper, partition.log.upper_bound_of(found))
                )
            ]

    def _diverges(self, partition: Partition, wanted: FetchPartition, data: PartitionData) -> bool:
        """Whether the client has read records, under an older epoch, that this log does not have."""
        epoch, end_offset = partition.log.end_offset_for_epoch(wanted.last_fetched_epoch)
        if end_offset < 0 or epoch < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch >= wanted.last_fetched_epoch and end_offset >= wanted.fetch_offset:
            return False
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return True

    def _partition(self, wanted: FetchPartition) -> Partition:
        name = self._name(wanted)
        if name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self._call.broker.replicas.leader(name, wanted.index)
        if wanted.topic_id not in (ZERO_UUID, partition.topic_id):
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        return partition

    def _name(self, wanted: FetchPartition) -> str | None:
        if self._call.version < TOPIC_ID_VERSION_MIN:
            return wanted.topic
        topic = self._call.broker.image.topic_by_id(wanted.topic_id)
        return None if topic is None else topic.name

    # ---- the short way

    def answer_plainly(self) -> Encoded | None:
        """Most fetches are for one partition, and most answers are its records and nothing else. None says
        nothing: then `read` has to look, which knows all that an answer can be."""
        if len(self._partitions) != 1 or self._request.isolation_level == READ_COMMITTED:
            return None
        wanted = self._partitions[0]
        name = self._name(wanted)
        partition = None if name is None else self._call.broker.replicas.get(name, wanted.index)
        if partition is None or not self._is_plain(wanted, partition):
            return None
        try:
            found = partition.log.read(
                wanted.fetch_offset,
                min(wanted.partition_bytes_max, self._bytes_max),
                upper_offset=partition.high_watermark,
                at_least_one=True,
            )
        except KafkaError:
            return None
        if not found.size or found.size < self._request.min_bytes:
            return None
        return self._plain_answer(wanted, partition, found)

    def _is_plain(self, wanted: FetchPartition, partition: Partition) -> bool:
        """Whether there is data for a client that is up to date, and no reason to look any closer."""
        log = partition.log
        return (
            partition.is_leader
            and log.log_start_offset <= wanted.fetch_offset < partition.high_watermark
            and wanted.current_leader_epoch in (-1, partition.leader_epoch)
            and wanted.last_fetched_epoch in (-1, partition.leader_epoch)
            and (wanted.topic_id == ZERO_UUID or wanted.topic_id == partition.topic_id)
            and (self._call.version >= ZSTD_VERSION_MIN or log.config.compression_type != "zstd")
            and wanted.partition_bytes_max >= 0
        )

    def _plain_answer(self, wanted: FetchPartition, partition: Partition, found: LogSlice) -> Encoded:
        version = self._call.version
        session_id = NO_SESSION
        if self._session is not None:
            session_id = self._session.id
            wanted.last_sent_high_watermark = partition.high_watermark
            wanted.last_sent_log_start = partition.log.log_start_offset
        topic = wanted.topic.encode() if version < TOPIC_ID_VERSION_MIN else wanted.topic_id
        head = write_fetched(
            version,
            (self._call.header.correlation_id, session_id),
            (topic, wanted.index),
            (partition.high_watermark, partition.last_stable_offset, partition.log.log_start_offset),
            found.size,
        )
        partition.requests.fetches += 1
        partition.requests.bytes_out += found.size
        return Encoded([head, found, FETCHED_TAIL] if version >= FLEXIBLE_VERSION_MIN else [head, found])

    # ---- waiting

    def is_enough(self, this: ReadResult) -> bool:
        return (
            this.has_error
            or this.bytes_read >= self._request.min_bytes
            or self._request.max_wait_ms <= 0
            or not self._partitions
        )

    def park(self) -> Later:
        later = Later()
        loop = asyncio.get_running_loop()

        def answer(response: FetchResponse | Encoded) -> None:
            give_up()
            later.resolve(response)

        def woken() -> None:
            self._unpark()
            plain = self.answer_plainly()
            if plain is not None:
                # The client first: it is waiting.
                later.resolve(plain)
                timer.cancel()
                return
            this = self.read()
            if self.is_enough(this):
                answer(self.respond(this))
            else:
                self._wait_for_more(woken)

        def give_up() -> None:
            timer.cancel()
            self._unpark()

        timer = loop.call_later(self._request.max_wait_ms / 1000, lambda: answer(self.respond(self.read())))
        self._wait_for_more(woken)
        self._call.connection.when_abandoned = give_up
        return later

    def _wait_for_more(self, woken: Callable[[], None]) -> None:
        for wanted in self._partitions:
            name = self._name(wanted)
            partition = None if name is None else self._call.broker.replicas.get(name, wanted.index)
            if partition is not None:
                # Past what this round has seen, or as far as the client already is.
                beyond = max(wanted.fetch_offset, partition.high_watermark) + 1
                self._waiters.append(partition.committed.when(beyond, woken))

    def _unpark(self) -> None:
        for waiter in self._waiters:
            waiter.cancel()
        self._waiters.clear()

    # ---- answering

    def respond(self, this: ReadResult) -> FetchResponse:
        response = FetchResponse(session_id=NO_SESSION if self._session is None else self._session.id)
        leaders: set[int] = set()
        topics: dict[str | Uuid, FetchableTopicResponse] = {}
        for wanted, data in this.answers:
            leaders.add(data.current_leader.leader_id)
            if not self._is_full and not _is_news(wanted, data):
                continue
            key = wanted.key[0]
            if key not in topics:
                topics[key] = FetchableTopicResponse(
                    topic=wanted.topic, topic_id=wanted.topic_id, partitions=[]
                )
                response.responses.append(topics[key])
            topics[key].partitions.append(data)
            if self._session is not None:
                wanted.last_sent_high_watermark, wanted.last_sent_log_start = (
                    data.high_watermark,
                    data.log_start_offset,
                )
        if self._session is not None:
            self._session.served(wanted.key for wanted, data in this.answers if data.records)
        leaders.discard(-1)
        if leaders and self._call.version >= ENDPOINTS_VERSION_MIN:
            response.node_endpoints = [
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in endpoints_of(self._call, leaders)
            ]
        self._count(this)
        return response

    def _count(self, this: ReadResult) -> None:
        broker = self._call.broker
        for wanted, data in this.answers:
            partition = broker.replicas.get(self._name(wanted) or "", wanted.index)
            counts = broker.unknown_requests if partition is None else partition.requests
            counts.fetches += 1
            if data.error_code:
                counts.failed_fetches += 1
            elif isinstance(data.records, LogSlice):
                counts.bytes_out += data.records.size


def _is_news(wanted: FetchPartition, data: PartitionData) -> bool:
    """Whether an incremental answer has to name this partition."""
    return (
        bool(data.records)
        or data.error_code != 0
        or data.diverging_epoch.epoch != -1
        or data.high_watermark != wanted.last_sent_high_watermark
        or data.log_start_offset != wanted.last_sent_log_start
    )
