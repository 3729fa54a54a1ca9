"""The short way of a fetcher: one fetch after the other, each sent in the same turn of the loop in which the
answer to the last one was written to the log.

A fetch of the short way names at most one partition, and its answer has records of at most one: that is what
happens while a partition is written to. kernels/replica_frames.py writes and reads these frames. If anything
else comes, the cycle ends, and the fetcher goes on in the ordinary way (fetcher.py) with that answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.errors import KafkaTimeoutError
from barnabas.kernels.replica_frames import FetchedFrame, write_replica_fetch
from barnabas.replication.following.followed import Followed, Outcome
from barnabas.replication.following.ports import PlainChannel
from barnabas.wire.codec import WireError, decode_response
from barnabas.wire.messages.fetch import API_KEY, FetchResponse

if TYPE_CHECKING:
    from barnabas.replication.following.fetcher import Fetcher


class PlainCycle:
    """`ended` gets the answer that the fetcher has to take, None if there is none, or an error."""

    def __init__(self, fetcher: Fetcher, channel: PlainChannel) -> None:
        self._fetcher = fetcher
        self._channel = channel
        self._answer = FetchedFrame()
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[FetchResponse | None] = self._loop.create_future()
        self._is_given_up = False
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, followed: Followed | None) -> FetchResponse | None:
        """Begin with a fetch that names this partition; end with the first answer that is not plain."""
        try:
            self._send(followed)
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)
            return await self.ended
        finally:
            self._is_given_up = True
            if self._timer is not None:
                self._timer.cancel()

    def give_up(self) -> None:
        """Do not wait for the answer any longer: the fetcher has more to ask for."""
        self._is_given_up = True
        if not self.ended.done():
            self.ended.set_result(None)

    def _send(self, followed: Followed | None) -> None:
        self._deadline = self._loop.time() + self._channel.timeout_seconds
        self._channel.exchange(lambda correlation_id: self._written(correlation_id, followed), self._answered)
        self._fetcher.session.sent()

    def _written(self, correlation_id: int, followed: Followed | None) -> bytearray:
        fetcher, channel = self._fetcher, self._channel
        settings, session = fetcher.settings, fetcher.session
        topic_id, index, leader_epoch, offset, last_epoch, log_start = None, 0, 0, 0, 0, 0
        if followed is not None:
            (topic_id, index), leader_epoch = followed.key, followed.leader_epoch
            log = followed.partition.log
            offset, last_epoch, log_start = log.log_end_offset, log.leader_epochs.latest, log.log_start_offset
        return write_replica_fetch(
            channel.fetch_version,
            correlation_id,
            channel.client_id,
            settings.broker_id,
            fetcher.transport.broker_epoch,
            settings.wait_ms_max,
            settings.bytes_min,
            settings.response_bytes_max,
            session.id,
            session.epoch,
            topic_id,
            index,
            leader_epoch,
            offset,
            last_epoch,
            log_start,
            settings.partition_bytes_max,
        )

    def _answered(self, frame: bytes | bytearray | Exception) -> None:
        if self._is_given_up:
            self._fetcher.late_answer(frame)
            return
        if isinstance(frame, Exception):
            self.ended.set_exception(frame)
            return
        try:
            self._take(frame)
        except Exception as error:
            # The fetcher, not the connection, has to deal with it.
            if not self.ended.done():
                self.ended.set_exception(error)

    def _take(self, frame: bytes | bytearray) -> None:
        answer, fetcher = self._answer, self._fetcher
        if not answer.read(frame) or answer.session_id != fetcher.session.id:
            self.ended.set_result(decoded_answer(self._channel.fetch_version, frame))
            return
        named: Followed | None = None
        if answer.topic_id is not None:
            followed = fetcher.partitions.get((answer.topic_id, answer.partition))
            # Otherwise it has got another leader or epoch meanwhile.
            if followed is not None and fetcher.may_take(followed):
                records = memoryview(frame)[answer.start : answer.start + answer.size]
                outcome = followed.take_records(
                    records, answer.high_watermark, answer.log_start_offset, fetcher.clock
                )
                fetcher.took(followed, outcome, answer.size)
                named = followed if outcome is Outcome.MOVED else None
        if fetcher.takes_the_short_way(named):
            fetcher.named(named)
            self._send(named)
        else:
            self.ended.set_result(None)

    def _check_deadline(self) -> None:
        """One timer for all fetches: it is moved when it has run out, not with each fetch."""
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._check_deadline)
            return
        seconds = self._channel.timeout_seconds
        if not self.ended.done():
            self.ended.set_exception(KafkaTimeoutError(f"got no answer from the leader within {seconds:g} s"))
        self._is_given_up = True
        self._channel.close(f"no answer within {seconds:g} s")


def decoded_answer(version: int, frame: bytes | bytearray) -> FetchResponse:
    try:
        response: FetchResponse = decode_response(API_KEY, version, frame)[1]
    except (WireError, UnicodeDecodeError) as error:
        raise OSError(f"the answer of the leader cannot be decoded: {error}") from error
    return response
