"""Reading for a Fetch: a pass over its partitions, waiting for more, and the answer.

Who may read what is decided by the gate (replication/gate.py). The partitions of a session keep the permits
that they got."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

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
from barnabas.broker.turns import SLICE, Work, in_slices, run_in_turns
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import Uuid
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
ENDPOINTS_VERSION_MIN = 16
NOT_A_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
# A fetch that waits for more partitions than this is answered by a task, in turns. With fewer the append that
# feeds it answers it, in the same turn.
MANY_PARTITIONS = 2000


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


class FetchAnswer:
    """An answer while it is being put together, topic by topic."""

    __slots__ = ("leaders", "response", "topics")

    def __init__(self, response: FetchResponse) -> None:
        self.response = response
        self.topics: dict[str | Uuid, FetchableTopicResponse] = {}
        self.leaders: set[int] = set()


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
        self.is_short = len(partitions) <= SLICE

    def answer(self) -> FetchResponse | Encoded | Later:
        """Read, and answer now or wait; for few partitions."""
        result = self._read_all()
        if self.is_enough(result):
            return self.respond(result)
        return self._wait()

    def answer_in_turns(self) -> Work[Any]:
        """The same for many partitions."""
        result = ReadResult()
        yield from in_slices(partial(self.read, result), len(self._partitions))
        if self.is_enough(result):
            return (yield from self.respond_in_turns(result))
        return self._wait_for_many() if len(self._partitions) > MANY_PARTITIONS else self._wait()

    # ---- reading

    def read(self, result: ReadResult, start: int, end: int) -> None:
        """Read the partitions from `start` to `end`."""
        for wanted in self._partitions[start:end]:
            if self._is_full or not self._is_quiet(wanted):
                result.reads.append(self._read_guarded(wanted, result))

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

    def _wait(self) -> Later:
        """Answer when there is enough to read, or when the client's time is over."""
        later = Later()

        def end() -> None:
            timer.cancel()
            self._unpark()

        def timed_out() -> None:
            self._unpark()
            later.resolve(self.respond(self._read_all()))

        def woken(_: bool) -> None:
            self._unpark()
            result = self._read_all()
            if self.is_enough(result):
                # The client first: it is waiting.
                later.resolve(self.respond(result))
                timer.cancel()
            else:
                self._park(woken, 0, len(self._partitions))

        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._request.max_wait_ms / 1000, timed_out)
        self._park(woken, 0, len(self._partitions))
        self._call.connection.when_abandoned = end
        return later

    def _read_all(self) -> ReadResult:
        result = ReadResult()
        self.read(result, 0, len(self._partitions))
        return result

    async def _wait_for_many(self) -> FetchResponse | Encoded:
        """The same for very many partitions: every pass over them gives the loop back in between."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._call.connection.when_abandoned = task.cancel
        end = loop.time() + self._request.max_wait_ms / 1000
        count = len(self._partitions)
        try:
            while True:
                woken = asyncio.Event()
                await run_in_turns(in_slices(partial(self._park, _setter(woken)), count))
                is_over = not await _is_set_before(woken, end)
                await run_in_turns(in_slices(lambda *_: self._unpark(SLICE), count))
                result = ReadResult()
                await run_in_turns(in_slices(partial(self.read, result), count))
                if is_over or self.is_enough(result):
                    return await run_in_turns(self.respond_in_turns(result))
        finally:
            self._unpark()

    def _park(self, woken: Callback, start: int, end: int) -> None:
        """Have `woken` called as soon as one of these partitions has more than the last pass has seen."""
        for wanted in self._partitions[start:end]:
            permit = wanted.permit
            partition: Partition | None = None if permit is None else permit.partition
            beyond = max(wanted.fetch_offset, wanted.seen_end) + 1
            if partition is None or partition.high_watermark >= beyond:
                # Something has changed since the partition was read.
                woken(True)
            else:
                self._waiters.append(partition.committed.when(beyond, woken))

    def _unpark(self, count: int | None = None) -> None:
        """Give up the waits, or this many of them."""
        waiters = self._waiters if count is None else self._waiters[-count:]
        for waiter in waiters:
            waiter.cancel()
        del self._waiters[-len(waiters) :]

    # ---- answering

    def respond(self, result: ReadResult) -> FetchResponse | Encoded:
        self._count(result)
        if len(self._partitions) == 1 and self._is_plain(result):
            return self._plain_response(result.reads[0])
        answer = FetchAnswer(FetchResponse(session_id=self._session_id))
        self._add_to(answer, result, 0, len(result.reads))
        return self._completed(answer, result)

    def respond_in_turns(self, result: ReadResult) -> Work[FetchResponse | Encoded]:
        self._count(result)
        answer = FetchAnswer(FetchResponse(session_id=self._session_id))
        yield from in_slices(partial(self._add_to, answer, result), len(result.reads))
        return self._completed(answer, result)

    @property
    def _session_id(self) -> int:
        return NO_SESSION if self._session is None else self._session.id

    def _add_to(self, answer: FetchAnswer, result: ReadResult, start: int, end: int) -> None:
        for read in result.reads[start:end]:
            if not self._is_full and not read.has_news:
                continue
            wanted = read.wanted
            key = wanted.key[0]
            topic = answer.topics.get(key)
            if topic is None:
                topic = FetchableTopicResponse(topic=wanted.topic, topic_id=wanted.topic_id, partitions=[])
                answer.topics[key] = topic
                answer.response.responses.append(topic)
            data = self._partition_data(read)
            answer.leaders.add(data.current_leader.leader_id)
            topic.partitions.append(data)
            wanted.last_sent_high_watermark = read.high_watermark
            wanted.last_sent_log_start = read.log_start_offset

    def _completed(self, answer: FetchAnswer, result: ReadResult) -> FetchResponse:
        if self._session is not None:
            self._session.served(read.wanted.key for read in result.reads if read.records is not None)
        answer.leaders.discard(-1)
        if answer.leaders and self._call.version >= ENDPOINTS_VERSION_MIN:
            answer.response.node_endpoints = [
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in endpoints_of(self._call, answer.leaders)
            ]
        return answer.response

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
            self._session_id,
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


def _setter(event: asyncio.Event) -> Callback:
    return lambda _: event.set()


async def _is_set_before(event: asyncio.Event, end: float) -> bool:
    try:
        async with asyncio.timeout_at(end):
            await event.wait()
    except TimeoutError:
        return False
    return True
