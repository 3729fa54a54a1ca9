"""The answer to a Fetch: from what was read to the response, in the form of the request's version."""

from __future__ import annotations

from functools import partial

from barnabas.broker.call import Call, Encoded
from barnabas.broker.fetch_sessions import NO_SESSION, FetchPartition, FetchSession
from barnabas.broker.leaders import endpoints_of, leader_of
from barnabas.broker.turns import Work, in_slices
from barnabas.errors import ErrorCode
from barnabas.ids import Uuid
from barnabas.kernels.plain_frames import FETCHED_TAIL, write_fetched
from barnabas.log.leader_epochs import EpochEntry
from barnabas.log.reading import LogSlice
from barnabas.replication.partition import Partition
from barnabas.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

FLEXIBLE_VERSION_MIN = 12
TOPIC_ID_VERSION_MIN = 13
ENDPOINTS_VERSION_MIN = 16
NOT_A_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
NO_REPLICA = -1
# What an answer has besides records, altogether and for each partition.
ANSWER_BYTES = 24
ANSWER_PARTITION_BYTES = 40


class PartitionRead:
    """What was read from one partition. Without a partition in `partition` nothing could be read.

    `preferred_replica`: the broker that the client should read from instead, or -1."""

    __slots__ = (
        "aborted",
        "diverging",
        "error",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "partition",
        "preferred_replica",
        "records",
        "requested",
    )

    def __init__(self, requested: FetchPartition) -> None:
        self.requested = requested
        self.partition: Partition | None = None
        self.error: ErrorCode = ErrorCode.NONE
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1
        self.records: LogSlice | None = None
        self.aborted: list[AbortedTransaction] | None = None
        self.diverging: EpochEntry | None = None
        self.preferred_replica = NO_REPLICA

    @property
    def has_news(self) -> bool:
        """Whether an incremental answer has to name this partition."""
        return (
            self.records is not None
            or self.error != ErrorCode.NONE
            or self.diverging is not None
            or self.preferred_replica != NO_REPLICA
            or self.high_watermark != self.requested.last_sent_high_watermark
            or self.log_start_offset != self.requested.last_sent_log_start
        )


class ReadResult:
    """One pass over partitions of a request. `is_urgent`: something in it must be answered at once."""

    __slots__ = ("bytes_read", "is_urgent", "reads")

    def __init__(self) -> None:
        self.reads: list[PartitionRead] = []
        self.bytes_read = 0
        self.is_urgent = False

    @property
    def answer_bytes(self) -> int:
        """About the size of the answer, for quotas: that of the records, and what is around them."""
        return self.bytes_read + ANSWER_BYTES + ANSWER_PARTITION_BYTES * len(self.reads)


class _Draft:
    """An answer while it is being put together, topic by topic."""

    __slots__ = ("leaders", "response", "topics")

    def __init__(self, response: FetchResponse) -> None:
        self.response = response
        self.topics: dict[str | Uuid, FetchableTopicResponse] = {}
        # Brokers whose addresses the answer gives.
        self.leaders: set[int] = set()


class FetchAnswers:
    """Makes the answer of one request. A full answer names all partitions, an incremental one those with
    news."""

    def __init__(
        self, call: Call, session: FetchSession | None, *, is_full: bool, committed_only: bool
    ) -> None:
        self._call = call
        self._session = session
        self._is_full = is_full
        self._committed_only = committed_only

    def respond(self, result: ReadResult, partition_count: int) -> FetchResponse | Encoded:
        if partition_count == 1 and self._is_plain(result):
            return self._plain_response(result.reads[0])
        draft = _Draft(FetchResponse(session_id=self.session_id))
        self._add_to(draft, result, 0, len(result.reads))
        return self._completed(draft, result)

    def respond_in_turns(self, result: ReadResult) -> Work[FetchResponse | Encoded]:
        draft = _Draft(FetchResponse(session_id=self.session_id))
        yield from in_slices(partial(self._add_to, draft, result), len(result.reads))
        return self._completed(draft, result)

    @property
    def has_session(self) -> bool:
        return self._session is not None

    @property
    def session_id(self) -> int:
        return NO_SESSION if self._session is None else self._session.id

    def _add_to(self, draft: _Draft, result: ReadResult, start: int, end: int) -> None:
        for read in result.reads[start:end]:
            if not self._is_full and not read.has_news:
                continue
            requested = read.requested
            key = requested.key[0]
            topic = draft.topics.get(key)
            if topic is None:
                topic = FetchableTopicResponse(
                    topic=requested.topic, topic_id=requested.topic_id, partitions=[]
                )
                draft.topics[key] = topic
                draft.response.responses.append(topic)
            data = self._partition_data(read)
            draft.leaders.add(data.current_leader.leader_id)
            topic.partitions.append(data)
            # Who learns that its log diverges looks at nothing else in the answer.
            is_complete = read.diverging is None
            requested.last_sent_high_watermark = read.high_watermark if is_complete else -1
            requested.last_sent_log_start = read.log_start_offset if is_complete else -1

    def _completed(self, draft: _Draft, result: ReadResult) -> FetchResponse:
        if self._session is not None:
            self._session.served(read.requested.key for read in result.reads if read.records is not None)
        draft.leaders.discard(-1)
        if draft.leaders and self._call.version >= ENDPOINTS_VERSION_MIN:
            draft.response.node_endpoints = [
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in endpoints_of(self._call, draft.leaders)
            ]
        return draft.response

    def _partition_data(self, read: PartitionRead) -> PartitionData:
        data = _unread(read) if read.partition is None else _read(read)
        if read.diverging is not None:
            data.diverging_epoch = EpochEndOffset(
                epoch=read.diverging.epoch, end_offset=read.diverging.start_offset
            )
        if read.error in NOT_A_LEADER:
            leader, epoch = leader_of(
                self._call, topic_name(self._call, read.requested) or "", read.requested.index
            )
            data.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        return data

    def _is_plain(self, result: ReadResult) -> bool:
        """Whether the answer is the records of the one partition and nothing else."""
        return (
            len(result.reads) == 1
            and result.reads[0].records is not None
            and not result.is_urgent
            and not self._committed_only
        )

    def _plain_response(self, read: PartitionRead) -> Encoded:
        """The short way for most answers: a kernel writes the same bytes as the codec."""
        requested, records, version = read.requested, read.records, self._call.version
        assert records is not None
        requested.last_sent_high_watermark = read.high_watermark
        requested.last_sent_log_start = read.log_start_offset
        head = write_fetched(
            version,
            self._call.header.correlation_id,
            self.session_id,
            requested.topic.encode() if version < TOPIC_ID_VERSION_MIN else requested.topic_id,
            requested.index,
            read.high_watermark,
            read.last_stable_offset,
            read.log_start_offset,
            records.size,
        )
        return Encoded([head, records, FETCHED_TAIL] if version >= FLEXIBLE_VERSION_MIN else [head, records])


def topic_name(call: Call, requested: FetchPartition) -> str | None:
    """The name of the topic; None if no topic has the id of the request."""
    if call.version < TOPIC_ID_VERSION_MIN:
        return requested.topic
    topic = call.broker.image.topic_by_id(requested.topic_id)
    return None if topic is None else topic.name


def _read(read: PartitionRead) -> PartitionData:
    return PartitionData(
        partition_index=read.requested.index,
        error_code=read.error,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=read.aborted,
        preferred_read_replica=read.preferred_replica,
        records=b"" if read.records is None else read.records,
    )


def _unread(read: PartitionRead) -> PartitionData:
    """The same without the fields that have their default, which would take memory: a request may have very
    many partitions that do not exist."""
    return PartitionData(
        partition_index=read.requested.index,
        error_code=read.error,
        high_watermark=read.high_watermark,
        aborted_transactions=read.aborted,
        records=b"",
    )
