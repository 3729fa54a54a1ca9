"""Reading for a Fetch: a pass over its partitions, waiting for more, and the answer.

Who may read what is decided by the gate (replication/gate.py). The partitions of a session keep the permits
that they got."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import Any

from barnabas.broker.call import Call, Encoded
from barnabas.broker.fetch_answers import FetchAnswers, PartitionRead, ReadResult, topic_name
from barnabas.broker.fetch_sessions import (
    EPOCH_FINAL,
    EPOCH_INITIAL,
    NO_SESSION,
    FetchPartition,
    FetchSession,
)
from barnabas.broker.later import Later
from barnabas.broker.nearest_replica import nearest_replica
from barnabas.broker.replica_news import wait_for_news
from barnabas.broker.turns import SLICE, Work, in_slices, run_in_turns
from barnabas.errors import ErrorCode, KafkaError
from barnabas.kernels.log_end import Permit
from barnabas.log.leader_epochs import EpochEntry
from barnabas.log.reading import LogSlice
from barnabas.replication.gate import Asker
from barnabas.replication.partition import Partition
from barnabas.replication.waiters import Callback, Waiter
from barnabas.wire.messages.fetch import AbortedTransaction, FetchRequest, FetchResponse

READ_COMMITTED = 1
# A fetch that waits for more partitions than this is answered by a task, in turns. With fewer the append that
# feeds it answers it, in the same turn.
MANY_PARTITIONS = 2000
# Smaller pieces are new records, which are in memory.
READ_AHEAD_BYTES_MIN = 256 * 1024
# Not every system can be told.
CAN_READ_AHEAD = hasattr(os, "posix_fadvise")


class Reading:
    """A fetch while it is being answered: read now, wait, read again when something arrived.

    A replica reads up to the end of the log and waits for that; a client reads up to the high watermark."""

    def __init__(
        self,
        call: Call,
        asker: Asker,
        request: FetchRequest,
        session: FetchSession | None,
        partitions: list[FetchPartition],
        *,
        is_recorded: bool = False,
    ) -> None:
        self._call = call
        self.connection = call.connection
        self._gate = call.broker.gate
        self._asker = asker
        self._request = request
        self.partitions = partitions
        self._is_full = request.session_epoch in (EPOCH_INITIAL, EPOCH_FINAL)
        self._committed_only = request.isolation_level == READ_COMMITTED and not asker.is_replica
        # In the session of a replica: finds the partitions that have something to send.
        self._news = None if session is None or self._is_full else session.news
        # A request of a replica says once, in the first pass, how far the replica has come.
        self._is_first_pass = not is_recorded
        self._answers = FetchAnswers(
            call, session, is_full=self._is_full, committed_only=self._committed_only
        )
        self._bytes_max = min(request.max_bytes, call.broker.config["fetch.max.bytes"])
        # None: the fetch is not limited. A replica has the throttle of replication.
        self._quotas = call.broker.quotas if call.broker.quotas.are_set and not asker.is_replica else None
        if self._quotas is not None:
            self._bytes_max = int(min(self._bytes_max, self._quotas.fetch_bytes_max(call)))
        else:
            call.throttle_ms = 0
        self._bytes_min = min(request.min_bytes, self._bytes_max)
        self._waiters: list[Waiter] = []
        self.is_short = len(partitions) <= SLICE
        # The number of the request in the session of a replica.
        self.number = 0 if self._news is None else self._news.requests

    def answer(self) -> FetchResponse | Encoded | Later:
        """Read, and answer now or wait; for few partitions."""
        result = self.read_all()
        self._is_first_pass = False
        if self.is_enough(result):
            return self.respond(result)
        return _Wait(self).later if self._news is None else wait_for_news(self, self._news)

    def answer_in_turns(self) -> Work[Any]:
        """The same for many partitions."""
        result = ReadResult()
        yield from in_slices(partial(self.read, result), len(self.partitions))
        self._is_first_pass = False
        if self.is_enough(result):
            return (yield from self.respond_in_turns(result))
        if self._news is not None:
            return wait_for_news(self, self._news)
        return self._wait_for_many() if len(self.partitions) > MANY_PARTITIONS else _Wait(self).later

    # ---- reading

    def read(self, result: ReadResult, start: int, end: int) -> None:
        """Read the partitions from `start` to `end`."""
        for requested in self.partitions[start:end]:
            if self._is_full or not self._is_quiet(requested):
                result.reads.append(self._read_guarded(requested, result))

    def _is_quiet(self, requested: FetchPartition) -> bool:
        """Whether an incremental answer need not name this partition: a client that waits at the end of a
        thousand partitions pays only for those that changed."""
        try:
            permit = self._permit(requested)
            partition: Partition = permit.partition
            self._gate.check_read(self._asker, permit, requested.current_leader_epoch)
            self._gate.check_offset(self._asker, permit, requested.fetch_offset)
            requested.seen_end = self._end(partition)
            if (
                requested.fetch_offset != requested.seen_end
                or partition.high_watermark != requested.last_sent_high_watermark
                or partition.log.log_start_offset != requested.last_sent_log_start
                or requested.last_fetched_epoch not in (-1, permit.leader_epoch)
            ):
                return False
            self._record(partition, requested)
        except KafkaError:
            return False
        return partition.high_watermark == requested.last_sent_high_watermark

    def _read_guarded(self, requested: FetchPartition, result: ReadResult) -> PartitionRead:
        """Here, and nowhere else in this file, the KafkaError of a partition becomes an error code."""
        read = PartitionRead(requested)
        try:
            self._read_one(requested, read, result)
        except KafkaError as error:
            result.is_urgent = True
            read.error = error.code
        if self._news is not None and self._news.is_full_pass and read.has_news:
            # The follower learns the high watermark of a quiet partition now, not with its next records.
            result.is_urgent = True
        return read

    def _read_one(self, requested: FetchPartition, read: PartitionRead, result: ReadResult) -> None:
        permit = self._permit(requested)
        partition: Partition = permit.partition
        read.partition = partition
        self._gate.check_read(self._asker, permit, requested.current_leader_epoch)
        if requested.last_fetched_epoch >= 0:
            last = self._gate.epoch_end(partition, requested.last_fetched_epoch)
            read.diverging = _divergence(partition, requested, last)
        if read.diverging is None:
            self._gate.check_offset(self._asker, permit, requested.fetch_offset)
            self._record(partition, requested)
        log = partition.log
        read.high_watermark, read.last_stable_offset = partition.high_watermark, partition.last_stable_offset
        read.log_start_offset = log.log_start_offset
        requested.seen_end = self._end(partition)
        if self._committed_only:
            read.aborted = []
        if read.diverging is not None or self._is_nearer_elsewhere(read, partition):
            result.is_urgent = True
            return
        end = self._gate.read_end(self._asker, partition, self._committed_only)
        room = self._bytes_max - result.bytes_read
        if requested.fetch_offset >= end or (room <= 0 and result.bytes_read):
            return
        leading = partition.leading if self._asker.is_replica else None
        if leading is not None and leading.must_wait(self._asker.replica_id):
            return
        records = log.read(
            requested.fetch_offset,
            max(0, min(requested.partition_bytes_max, room)),
            upper_offset=end,
            at_least_one=result.bytes_read == 0,
        )
        if not records.size:
            return
        read.records = records
        result.bytes_read += records.size
        if leading is not None:
            leading.sent(records.size)
            read_ahead(records)
        if self._committed_only:
            read.aborted = [
                AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in log.aborted_transactions(
                    requested.fetch_offset, min(end, log.upper_bound_of(records))
                )
            ]

    def _record(self, partition: Partition, requested: FetchPartition) -> None:
        """A replica that fetches from an offset has everything below it."""
        if self._is_first_pass and self._asker.is_replica:
            partition.record_fetch(
                self._asker.replica_id,
                self._asker.broker_epoch,
                requested.fetch_offset,
                requested.replica_log_start,
            )

    def _is_nearer_elsewhere(self, read: PartitionRead, partition: Partition) -> bool:
        """Whether the client is sent to a replica in its own rack."""
        if not self._request.rack_id or self._asker.is_replica:
            return False
        replica = nearest_replica(self._call, partition, self._request.rack_id, read.requested.fetch_offset)
        if replica is not None:
            read.preferred_replica = replica
        return replica is not None

    def _end(self, partition: Partition) -> int:
        """The offset that this reader waits for to move."""
        return partition.log.log_end_offset if self._asker.is_replica else partition.high_watermark

    def _permit(self, requested: FetchPartition) -> Permit:
        """The permit that the partition has from an earlier request of this session, or one from the gate."""
        permit = requested.permit
        if permit is None or permit.partition is None:
            requested.permit = None
            permit = self._gate.to_read(
                self._asker, topic_name(self._call, requested), requested.topic_id, requested.index
            )
            requested.permit = permit
        return permit

    # ---- waiting

    def is_enough(self, result: ReadResult) -> bool:
        return (
            result.is_urgent
            or result.bytes_read >= self._bytes_min
            or self._request.max_wait_ms <= 0
            or not (self.partitions or self._news)
            # A replica learns the id of its new session at once. While it waited, it could neither add
            # partitions to the session nor end it.
            or (self._is_full and self._asker.is_replica and self._answers.has_session)
        )

    def read_all(self) -> ReadResult:
        result = ReadResult()
        self.read(result, 0, len(self.partitions))
        return result

    @property
    def wait_seconds(self) -> float:
        return self._request.max_wait_ms / 1000

    async def _wait_for_many(self) -> FetchResponse | Encoded:
        """The same for very many partitions: every pass over them gives the loop back in between."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self.connection.when_abandoned = task.cancel
        end = loop.time() + self.wait_seconds
        count = len(self.partitions)
        try:
            while True:
                woken = asyncio.Event()
                await run_in_turns(in_slices(partial(self.park, _setter(woken)), count))
                is_over = not await _is_set_before(woken, end)
                await run_in_turns(in_slices(lambda *_: self.unpark(SLICE), count))
                result = ReadResult()
                await run_in_turns(in_slices(partial(self.read, result), count))
                if is_over or self.is_enough(result):
                    return await run_in_turns(self.respond_in_turns(result))
        finally:
            self.unpark()

    def park(self, woken: Callback, start: int, end: int) -> None:
        """Have `woken` called as soon as one of these partitions has more than the last pass has seen."""
        for requested in self.partitions[start:end]:
            permit = requested.permit
            partition: Partition | None = None if permit is None else permit.partition
            beyond = max(requested.fetch_offset, requested.seen_end) + 1
            if partition is None or self._end(partition) >= beyond:
                # Something has changed since the partition was read.
                woken(True)
                return
            waiters = partition.appended if self._asker.is_replica else partition.committed
            self._waiters.append(waiters.when(beyond, woken))

    def unpark(self, count: int | None = None) -> None:
        """Give up the waits, or this many of them."""
        waiters = self._waiters if count is None else self._waiters[-count:]
        for waiter in waiters:
            waiter.cancel()
        del self._waiters[-len(waiters) :]

    # ---- answering

    def respond_with_nothing(self) -> FetchResponse:
        return FetchResponse(session_id=self._answers.session_id)

    def respond(self, result: ReadResult) -> FetchResponse | Encoded:
        if self._quotas is not None and self._quotas.charge_fetch(self._call, result.answer_bytes):
            return self._respond_throttled(result)
        self._count(result)
        answer = self._answers.respond(result, len(self.partitions))
        if self._news is not None:
            self._news.looked_at(self.partitions)
        return answer

    def _respond_throttled(self, result: ReadResult) -> FetchResponse:
        """An answer without records. A new session ends with it: the client does not learn its id."""
        for read in result.reads:
            if read.records is not None:
                read.records.release()
        session_id = self._answers.session_id
        if self._is_full:
            # As in Kafka, the client asks for a session again.
            self._call.broker.fetch_sessions.end(session_id)
            session_id = NO_SESSION
        return FetchResponse(throttle_time_ms=self._call.throttle_ms or 0, session_id=session_id)

    def respond_in_turns(self, result: ReadResult) -> Work[FetchResponse | Encoded]:
        if self._quotas is not None and self._quotas.charge_fetch(self._call, result.answer_bytes):
            return self._respond_throttled(result)
        self._count(result)
        answer = yield from self._answers.respond_in_turns(result)
        if self._news is not None:
            self._news.looked_at(self.partitions)
        return answer

    def _count(self, result: ReadResult) -> None:
        """The fetches of replicas are not counted as those of clients."""
        if self._asker.is_replica:
            return
        broker = self._call.broker
        for read in result.reads:
            counts = broker.unknown_requests if read.partition is None else read.partition.requests
            counts.fetches += 1
            if read.error != ErrorCode.NONE:
                counts.failed_fetches += 1
            elif read.records is not None:
                counts.bytes_out += read.records.size


class _Wait:
    """A fetch of a client that is answered when there is enough to read, or when the client's time is over.

    Consumers at the end of a partition wait like this twice per second. So nothing here stays in a circle of
    references after the answer: the garbage collector, which runs rarely, would have to find it."""

    __slots__ = ("_reading", "_timer", "later")

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.later = Later()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(reading.wait_seconds, self._timed_out)
        reading.connection.when_abandoned = self._end
        reading.park(self._woken, 0, len(reading.partitions))

    def _woken(self, _: bool) -> None:
        reading = self._reading
        reading.unpark()
        result = reading.read_all()
        if reading.is_enough(result):
            # The client first: it is waiting.
            self.later.resolve(reading.respond(result))
            self._timer.cancel()
        else:
            reading.park(self._woken, 0, len(reading.partitions))

    def _timed_out(self) -> None:
        reading = self._reading
        reading.unpark()
        self.later.resolve(reading.respond(reading.read_all()))
        # It has run, but it still refers to this object.
        self._timer.cancel()

    def _end(self) -> None:
        """The client is gone."""
        self._timer.cancel()
        self._reading.unpark()


def _divergence(partition: Partition, requested: FetchPartition, last: EpochEntry) -> EpochEntry | None:
    """Where the client's history ends in ours, if it has read records, under an older epoch, that this log
    does not have. `last`: where its last epoch ends here."""
    if last.start_offset < 0 or last.epoch < 0 or requested.fetch_offset < partition.log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if last.epoch >= requested.last_fetched_epoch and last.start_offset >= requested.fetch_offset:
        return None
    return last


def read_ahead(records: LogSlice) -> None:
    """A follower that is far behind fetches one large piece after the other. The system is told to read the
    next one from the disk while this one is sent, so that sending it will not wait for the disk."""
    if CAN_READ_AHEAD and records.size >= READ_AHEAD_BYTES_MIN and records.file is not None:
        begin = records.position + records.size
        os.posix_fadvise(records.file.fileno(), begin, records.size, os.POSIX_FADV_WILLNEED)


def _setter(event: asyncio.Event) -> Callback:
    return lambda _: event.set()


async def _is_set_before(event: asyncio.Event, end: float) -> bool:
    try:
        async with asyncio.timeout_at(end):
            await event.wait()
    except TimeoutError:
        return False
    return True
