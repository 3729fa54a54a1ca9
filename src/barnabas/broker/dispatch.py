"""From a frame to its reply: decode, find the API's row, run the handler, encode.

An unknown API or version and a broken frame end that connection and nothing else. Unknown versions
of ApiVersions are answered in version 0, so that newer clients can use an older version."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.call import ELEMENTS_MAX, SHORT_ELEMENTS_MAX, Api, Call, Encoded
from barnabas.broker.deferred_replies import DEFERRED_MAX, DeferredReplies
from barnabas.broker.forwarding import forward, must_forward
from barnabas.broker.handlers.api_versions import unsupported_version
from barnabas.broker.later import Later
from barnabas.broker.long_requests import LongRequests
from barnabas.broker.plain_produces import plain_produces
from barnabas.broker.plain_replica_fetches import PlainReplicaFetches
from barnabas.broker.quotas import WRITE_TXN_MARKERS_KEY, timed
from barnabas.broker.turns import Work, in_turns, run_in_turns
from barnabas.net.chunks import Chunk
from barnabas.net.connection import Connection
from barnabas.wire.codec import (
    Reader,
    RequestHeader,
    TooManyElements,
    WireError,
    decode_request_body,
    decode_request_body_in_portions,
    decode_request_header,
    encode_response,
    encode_response_in_portions,
)
from barnabas.wire.message import Message

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.fetch_reading import Reading

logger = logging.getLogger(__name__)

# Shorter frames are decoded at once: so few elements take less than the turn that they could be spread over.
LONG_FRAME_BYTES = 32 * 1024
PRODUCE_KEY = 0
FETCH_KEY = 1
API_VERSIONS_KEY = 18


class Refusal(Exception):
    """The peer's fault; the connection is closed and the reason is logged. `api_key` is None if the frame
    is too short to have one."""

    def __init__(self, reason: str, api_key: int | None) -> None:
        super().__init__(reason)
        self.api_key = api_key


class Traffic:
    """The requests of one API and the time from their arrival to their answer; read by /metrics.

    `by_bit_length[n]` counts the requests that took at least 2**(n-1) and less than 2**n nanoseconds."""

    __slots__ = ("by_bit_length", "nanoseconds", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.nanoseconds = 0
        self.by_bit_length = [0] * 64

    def record(self, count: int, nanoseconds: int) -> None:
        """`count` requests were answered together after this time."""
        self.requests += count
        self.nanoseconds += count * nanoseconds
        self.by_bit_length[nanoseconds.bit_length()] += count


class Dispatcher:
    def __init__(self, broker: Broker, rows: Mapping[int, Api]) -> None:
        self._broker = broker
        self._rows = rows
        self._tasks: set[asyncio.Task[None]] = set()
        self.long_requests = LongRequests()
        self._replica_fetches = PlainReplicaFetches(broker, self)
        self.traffic = {key: Traffic() for key in rows}
        self.failures = 0
        # Set by the server: counts and logs what a peer did wrong.
        self.refused: Callable[[Connection, str, int | None], None]

    def answer_first(self, connection: Connection, arrived: memoryview) -> tuple[int, bytearray]:
        """Carry out the plain Produces at the beginning: how many bytes they are, and the replies, except for
        those that wait for other replicas."""
        started = time.perf_counter_ns()
        short_way = connection.short_way
        if short_way is None:
            short_way = connection.short_way = plain_produces(self._broker, connection.session)
        waiting = short_way.waiting
        if waiting is not None and len(waiting) >= DEFERRED_MAX:
            return 0, bytearray()
        try:
            replies = short_way.answer(arrived, self._broker.clock.now_ms(), bool(waiting))
        except Exception:
            # A defect of ours: the connection is closed, and the loop logs the error.
            self.failures += 1
            raise
        answered = short_way.answered - len(short_way.deferred)
        if answered:
            self.traffic[PRODUCE_KEY].record(answered, time.perf_counter_ns() - started)
        if short_way.deferred:
            if waiting is None:
                waiting = DeferredReplies(connection, self.traffic[PRODUCE_KEY].record)
                short_way.waiting = waiting
            waiting.add(short_way.deferred, started)
        return short_way.bytes_answered, replies

    def serve(self, connection: Connection, frame: memoryview) -> None:
        """Answer one frame now, or start a task that will. Raises Refusal when the peer is at fault."""
        if frame[1] == FETCH_KEY and self._serve_plain_fetch(connection, frame):
            return
        started = time.perf_counter_ns()
        header = None
        try:
            header, reader = decode_request_header(frame, SHORT_ELEMENTS_MAX)
            row = self._rows.get(header.api_key)
            if row is None:
                raise Refusal(f"API key {header.api_key} is not served", header.api_key)
            low, high = row.versions
            if not low <= header.api_version <= high:
                self._refuse_version(connection, header, row)
                return
            is_for_controller = must_forward(self._broker, header.api_key, connection.session)
            is_long = len(frame) > LONG_FRAME_BYTES
            try:
                request = None if is_for_controller or is_long else decode_request_body(header, reader)
            except TooManyElements:
                is_long, reader = True, decode_request_header(frame, SHORT_ELEMENTS_MAX)[1]
        except WireError as error:
            raise Refusal(str(error), None if header is None else header.api_key) from error
        call = Call(self._broker, connection, connection.session, header)
        call.frame_bytes, call.started_ns = len(frame), started
        try:
            answer: Any
            if is_for_controller:
                answer = forward(call, frame, lambda: self._answer_long(call, row, frame, reader))
            elif is_long:
                answer = self._answer_long(call, row, frame, reader)
            else:
                answer = row.handler(call, request)
            self._deliver(call, row, answer, started)
        except Refusal:
            raise
        except Exception:
            self._failed(call, row)

    def _serve_plain_fetch(self, connection: Connection, frame: memoryview) -> bool:
        try:
            return self._replica_fetches.serve(connection, frame)
        except Exception:
            self.fetch_failed(connection)
            return True

    def serve_reading(self, call: Call, reading: Reading, started: int) -> None:
        """A fetch of a follower has to leave the short way (plain_replica_fetches.py)."""
        row = self._rows[FETCH_KEY]
        try:
            self._deliver(call, row, reading.answer(), started)
        except Exception:
            self._failed(call, row)

    def record_fetch(self, nanoseconds: int) -> None:
        self.traffic[FETCH_KEY].record(1, nanoseconds)

    def fetch_failed(self, connection: Connection) -> None:
        self.failures += 1
        logger.exception("a fetch of a replica from %s failed", connection.peer_host)
        connection.close()

    def _deliver(self, call: Call, row: Api, answer: Any, started: int) -> None:
        are_quotas_set = self._broker.quotas.are_set
        if isinstance(answer, GeneratorType):
            answer = in_turns(timed(answer, call) if are_quotas_set else answer)
        if are_quotas_set and not call.handler_ns and isinstance(answer, Later | CoroutineType):
            call.handler_ns = time.perf_counter_ns() - started
        if isinstance(answer, Later):
            answer.then(lambda response: self._reply_guarded(call, row, response, started))
        elif isinstance(answer, CoroutineType):
            task = asyncio.get_running_loop().create_task(self._serve_later(call, row, answer, started))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._reply(call, row, answer, started)

    def _answer_long(self, call: Call, row: Api, frame: memoryview, reader: Reader) -> Work[Any]:
        """Answer a frame that is too long to be decoded at once."""
        try:
            request = yield from _decoded(call, reader)
        except TooManyElements as error:
            if error.elements > ELEMENTS_MAX:
                raise _too_many_elements(row) from error
        else:
            answer = row.handler(call, request)
            del request
            return (yield from answer) if isinstance(answer, GeneratorType) else answer
        return (yield from self._answer_alone(call, row, frame))

    def _answer_alone(self, call: Call, row: Api, frame: memoryview) -> Work[Any]:
        """Wait until no other long request is being answered, then decode, handle and encode this one.

        A handler that has to wait for something, such as a commit, returns an awaitable. The next long
        request does not wait for that: it may be what the first one needs."""
        place = self.long_requests.enter()
        try:
            if not place.done():
                # It is cancelled if the peer goes away.
                call.connection.when_abandoned = place.cancel
                yield place
                call.connection.when_abandoned = None
            _, reader = decode_request_header(frame, ELEMENTS_MAX)
            try:
                request = yield from _decoded(call, reader)
            except TooManyElements as error:
                raise _too_many_elements(row) from error
            answer = row.handler(call, request)
            del request
            if isinstance(answer, GeneratorType):
                answer = yield from answer
            if isinstance(answer, Message):
                self._charge(call, row, answer)
                answer = yield from _encoded(call, answer)
            return answer
        finally:
            self.long_requests.leave(place)

    async def drain(self) -> None:
        """Cancel what still waits, at shutdown."""
        # A task that is cancelled before its first step would never await its handler.
        await asyncio.sleep(0)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _refuse_version(self, connection: Connection, header: RequestHeader, row: Api) -> None:
        if header.api_key != API_VERSIONS_KEY:
            raise Refusal(f"{row.name} version {header.api_version} is not served", row.key)
        answer = unsupported_version(self._rows)
        connection.reply(_encode(API_VERSIONS_KEY, 0, header.correlation_id, answer))

    async def _serve_later(self, call: Call, row: Api, answer: Awaitable[Any], started: int) -> None:
        try:
            response = await answer
            if isinstance(response, Message):
                self._charge(call, row, response)
                # What was not answered at once may be long.
                response = await run_in_turns(_encoded(call, response))
            self._reply(call, row, response, started)
        except Refusal as refusal:
            self.refused(call.connection, str(refusal), refusal.api_key)
            call.connection.close()
        except Exception:
            self._failed(call, row)

    def _reply_guarded(self, call: Call, row: Api, response: Any, started: int) -> None:
        """Reply inside another client's request: an error here must not fail that request."""
        try:
            self._reply(call, row, response, started)
        except Exception:
            self._failed(call, row)

    def _reply(self, call: Call, row: Api, response: Any, started: int) -> None:
        header = call.header
        if self._broker.quotas.are_set:
            throttle_ms = self._charge(call, row, response)
            if throttle_ms:
                call.connection.mute_until(asyncio.get_running_loop().time() + throttle_ms / 1000)
        if response is None:
            call.connection.reply(None)
        elif type(response) is Encoded:
            call.connection.reply(cast(list[Chunk], response.chunks))
        else:
            call.connection.reply(
                _encode(header.api_key, header.api_version, header.correlation_id, response)
            )
        self.traffic[header.api_key].record(1, time.perf_counter_ns() - started)

    def _charge(self, call: Call, row: Api, response: object) -> int:
        """How long the client is throttled for this request; the answer says so."""
        quotas = self._broker.quotas
        is_exempt = row.between_brokers or row.key == WRITE_TXN_MARKERS_KEY
        return quotas.charge(call, response, is_exempt=is_exempt) if quotas.are_set else 0

    def _failed(self, call: Call, row: Api) -> None:
        """A defect of ours: close the connection, so that the client retries, and log the error."""
        self.failures += 1
        logger.exception("%s v%d from %s failed", row.name, call.version, call.connection.peer_host)
        call.connection.close()


def _too_many_elements(row: Api) -> Refusal:
    return Refusal(f"a {row.name} request with more than {ELEMENTS_MAX} array elements", row.key)


def _decoded(call: Call, reader: Reader) -> Work[Any]:
    try:
        return (yield from decode_request_body_in_portions(call.header, reader))
    except TooManyElements:
        raise
    except WireError as error:
        raise Refusal(str(error), call.header.api_key) from error


def _encoded(call: Call, response: Message) -> Work[Encoded]:
    key, version, correlation_id, _ = call.header
    return Encoded((yield from encode_response_in_portions(key, version, correlation_id, response)))


def _encode(key: int, version: int, correlation_id: int, response: Message) -> list[Chunk]:
    # What a handler puts into a records field is bytes or a log slice, and a log slice is a file range.
    return cast(list[Chunk], encode_response(key, version, correlation_id, response))
