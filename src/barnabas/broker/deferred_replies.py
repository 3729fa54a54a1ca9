"""Answers to Produces of the short way whose batches are not committed yet.

They are sent in the order of the requests, so only the first one waits: when it can be sent, those after it
that are committed by then are sent with it, in one piece. A batch counts as committed only under the leader
epoch that it was appended under. Owned by one connection, on the event loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.errors import ErrorCode
from barnabas.replication.partition import Partition
from barnabas.replication.waiters import Waiter
from barnabas.wire.codec import encode_response
from barnabas.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse

if TYPE_CHECKING:
    from barnabas.kernels.plain_frames import DeferredReply
    from barnabas.net.connection import Connection

PRODUCE_KEY = 0
TOPIC_ID_VERSION_MIN = 13
# A connection that has so many batches under way waits for the first of them.
DEFERRED_MAX = 512


class _Queued(NamedTuple):
    reply: DeferredReply
    # When the request arrived, in the nanoseconds of perf_counter, and when it times out, in the loop's time.
    started: int
    deadline: float


class DeferredReplies:
    """`record(count, nanoseconds)` is told how long requests took."""

    def __init__(self, connection: Connection, record: Callable[[int, int], None]) -> None:
        self._connection = connection
        self._record = record
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Queued] = deque()
        self._waiter: Waiter | None = None
        # Set for the deadline of an answer that was the first in the queue, and not moved when that is sent.
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, replies: list[DeferredReply], started: int) -> None:
        now = self._loop.time()
        was_empty = not self._queue
        for reply in replies:
            self._queue.append(_Queued(reply, started, now + reply.timeout_ms / 1000))
        if was_empty:
            self._connection.defer(self._abandon)
            self._settle()

    def _settle(self) -> None:
        """Send what can be sent, and wait for the next one."""
        finished: list[bytes | bytearray] = []
        while self._queue:
            queued = self._queue[0]
            partition: Partition | None = queued.reply.partition
            if partition is not None:
                code = self._result(queued, partition)
                if code is None:
                    self._wait(queued, partition)
                    break
                if code != ErrorCode.NONE:
                    partition.requests.failed_produces += 1
                    finished.append(_refusal(queued.reply, code))
                    self._done()
                    continue
            finished.append(queued.reply.reply)
            self._done()
        if not self._queue and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if finished:
            self._connection.reply_deferred(b"".join(finished), is_last=not self._queue)

    def _done(self) -> None:
        queued = self._queue.popleft()
        self._record(1, time.perf_counter_ns() - queued.started)

    def _result(self, queued: _Queued, partition: Partition) -> ErrorCode | None:
        """What to answer now; None if there is no answer yet."""
        reply = queued.reply
        if not partition.is_leader or partition.leader_epoch != reply.leader_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if partition.high_watermark >= reply.end_offset:
            is_lost = partition.has_lost_in_sync
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if is_lost else ErrorCode.NONE
        return ErrorCode.REQUEST_TIMED_OUT if self._loop.time() >= queued.deadline else None

    def _wait(self, queued: _Queued, partition: Partition) -> None:
        self._waiter = partition.committed.when(queued.reply.end_offset, self._woken)
        if self._timer is None or self._timer.when() > queued.deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(queued.deadline, self._timed_out)

    def _woken(self, _: bool) -> None:
        self._waiter = None
        self._settle()

    def _timed_out(self) -> None:
        self._timer = None
        if self._waiter is not None:
            self._waiter.cancel()
            self._waiter = None
        self._settle()

    def _abandon(self) -> None:
        """The client is gone."""
        if self._waiter is not None:
            self._waiter.cancel()
            self._waiter = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._queue.clear()


def _refusal(reply: DeferredReply, code: ErrorCode) -> bytes:
    """The answer of a batch that was appended, but may not be committed."""
    part = PartitionProduceResponse(
        index=reply.index,
        error_code=code,
        error_message=code.text,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
    )
    topic = TopicProduceResponse(partition_responses=[part])
    if reply.version >= TOPIC_ID_VERSION_MIN:
        topic.topic_id = reply.topic
    else:
        topic.name = reply.topic.decode()
    response = ProduceResponse(responses=[topic])
    chunks = encode_response(PRODUCE_KEY, reply.version, reply.correlation_id, response)
    return b"".join(bytes(chunk) for chunk in chunks)  # type: ignore[arg-type]
