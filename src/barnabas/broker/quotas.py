"""Quotas of clients at one broker: who has used how much, and for how long they are throttled.

A throttled client gets its answer at once, with the throttle time in it, and its connection is muted for that
time (KIP-219): it cannot go faster by not waiting. Only a fetch that is over its quota is answered without
records. Quotas hold for one broker, as in Kafka: a client of three brokers may use three times as much.

Exempt are brokers: replica fetches, the APIs between brokers, and what a broker asks its controller for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.security.quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuotas,
    Limit,
)
from barnabas.security.rates import Rate, TokenBucket, Windows
from barnabas.wire.message import Message

if TYPE_CHECKING:
    from barnabas.broker.call import Call
    from barnabas.clock import Clock
    from barnabas.config.values import BrokerConfig
    from barnabas.metadata.image import MetadataImage

PRODUCE_KEY = 0
FETCH_KEY = 1
WRITE_TXN_MARKERS_KEY = 27
# Percent of one second, from nanoseconds.
PERCENT_PER_NANOSECOND = 100 / 1_000_000_000
# When there are more meters, those that nobody used lately are dropped, at most once a second.
METERS_MAX = 10_000
# A meter that was not used for an hour is not shown any more.
IDLE_MS_MAX = 3_600_000


class Meter:
    """What those who share one limit have used, and how often and how long they were throttled."""

    __slots__ = ("bucket", "key", "last_ms", "limit", "rate", "throttled_count", "throttled_ms")

    def __init__(self, key: str, limit: Limit, windows: Windows, mutation_windows: Windows) -> None:
        self.key = key
        self.limit = limit
        self.rate = Rate(windows)
        self.bucket = TokenBucket(mutation_windows) if key == CONTROLLER_MUTATION_RATE else None
        self.throttled_count = 0
        self.throttled_ms = 0
        self.last_ms = 0

    def throttled(self, throttle_ms: int) -> None:
        if throttle_ms > 0:
            self.throttled_count += 1
            self.throttled_ms += throttle_ms


class Quotas:
    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._clock = clock
        self._windows = Windows(config["quota.window.num"], config["quota.window.size.seconds"])
        self._mutation_windows = Windows(
            config["controller.quota.window.num"], config["controller.quota.window.size.seconds"]
        )
        self.table = ClientQuotas({})
        # Whether any user or client id has a quota. If not, requests need not look further.
        self.are_set = False
        self._meters: dict[tuple[str, str, str], Meter] = {}
        # The meters of the time before the last change, for those who still have a quota.
        self._older: dict[tuple[str, str, str], Meter] = {}
        self._found: dict[tuple[str, str, str | None], Meter | None] = {}
        self._dropped_ms = 0

    def follow(self, image: MetadataImage) -> None:
        """Take the quotas of an image. What was used so far still counts."""
        self.table = ClientQuotas(image.client_quotas)
        self.are_set = self.table.has_clients
        self._found.clear()
        known = {**self._older, **self._meters} if self.are_set else {}
        now_ms = self.now_ms
        self._older = {place: meter for place, meter in known.items() if now_ms - meter.last_ms < IDLE_MS_MAX}
        self._meters = {}

    @property
    def now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    def meters(self) -> Iterator[Meter]:
        """The meters that were used lately."""
        now_ms = self.now_ms
        return (meter for meter in list(self._meters.values()) if now_ms - meter.last_ms < IDLE_MS_MAX)

    def meter(self, call: Call, key: str) -> Meter | None:
        """What the client of this call is measured by; None if it has no such quota."""
        return self._meter(key, call.session.principal.name, call.header.client_id)

    def limits_produces(self, user: str, client_id: str | None) -> bool:
        return any(
            self.table.limit(key, user, client_id) is not None
            for key in (PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE)
        )

    def _meter(self, key: str, user: str, client_id: str | None) -> Meter | None:
        asked = (key, user, client_id)
        if asked in self._found:
            return self._found[asked]
        if len(self._found) >= METERS_MAX:
            self._found.clear()
            self._drop_idle()
        limit = self.table.limit(key, user, client_id)
        meter = None
        if limit is not None:
            place = (key, limit.user, limit.client_id)
            meter = self._meters.get(place) or self._older.pop(place, None)
            if meter is None:
                meter = Meter(key, limit, self._windows, self._mutation_windows)
            meter.limit = limit
            self._meters[place] = meter
        self._found[asked] = meter
        return meter

    def _drop_idle(self) -> None:
        """Forget those who have used nothing in the last windows: nothing is lost but what /metrics shows."""
        now_ms = self.now_ms
        if now_ms - self._dropped_ms < 1000:
            return
        self._dropped_ms = now_ms
        windows = max(self._windows, self._mutation_windows, key=lambda each: each.count * each.milliseconds)
        idle_ms = windows.count * windows.milliseconds
        self._older.clear()
        for place, meter in list(self._meters.items()):
            if now_ms - meter.last_ms > idle_ms and (meter.bucket is None or not self._owes(meter)):
                del self._meters[place]

    def _owes(self, meter: Meter) -> bool:
        return meter.bucket is not None and meter.bucket.throttle_ms(meter.limit.bound, self.now_ms) > 0

    # ---- requests

    def charge(self, call: Call, response: object, *, is_exempt: bool) -> int:
        """Charge a request that is about to be answered; how long its connection is to be muted. The answer
        gets the throttle time, unless its bytes are written already."""
        if call.throttle_ms is None:
            call.throttle_ms = 0 if is_exempt or is_of_broker(call) else self._charged(call, response)
            if call.throttle_ms and isinstance(response, Message) and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = call.throttle_ms
        return call.throttle_ms

    def _charged(self, call: Call, response: object) -> int:
        # What a handler has decided, for changes of the metadata.
        throttle_ms: int = getattr(response, "throttle_time_ms", 0)
        if call.header.api_key == PRODUCE_KEY:
            throttle_ms = self._used(self.meter(call, PRODUCER_BYTE_RATE), call.frame_bytes)
            if response is None:
                # With acks=0 the time of the request does not count.
                return throttle_ms
        return max(throttle_ms, self._request_time(call))

    def _request_time(self, call: Call) -> int:
        if not self.table.has(REQUEST_PERCENTAGE):
            return 0
        meter = self.meter(call, REQUEST_PERCENTAGE)
        if meter is None:
            return 0
        nanoseconds = call.handler_ns or time.perf_counter_ns() - call.started_ns
        throttle_ms = self._used(meter, nanoseconds * PERCENT_PER_NANOSECOND, self._windows.milliseconds)
        return throttle_ms

    def _used(self, meter: Meter | None, value: float, longest_ms: int | None = None) -> int:
        if meter is None:
            return 0
        now_ms = meter.last_ms = self.now_ms
        meter.rate.record(value, now_ms)
        throttle_ms = meter.rate.throttle_ms(meter.limit.bound, now_ms)
        if longest_ms is not None:
            throttle_ms = min(throttle_ms, longest_ms)
        meter.throttled(throttle_ms)
        return throttle_ms

    # ---- fetches of clients

    def fetch_bytes_max(self, call: Call) -> float:
        """With more than this a fetch would be throttled even after a long rest."""
        meter = self.meter(call, CONSUMER_BYTE_RATE)
        if meter is None:
            return float("inf")
        return meter.limit.bound * (self._windows.count - 1) * self._windows.milliseconds / 1000

    def charge_fetch(self, call: Call, size: int) -> int:
        """Charge a fetch whose answer would have this size. If it is throttled, it is answered without
        records, so its size is not charged."""
        meter = self.meter(call, CONSUMER_BYTE_RATE)
        throttle_ms = max(self._used(meter, size), self._request_time(call))
        if meter is not None and throttle_ms:
            meter.rate.record(-size, self.now_ms)
        call.throttle_ms = throttle_ms
        return throttle_ms

    # ---- changes of the metadata

    def mutations(self, call: Call, *, is_strict: bool) -> Mutations:
        """What a request that creates or deletes partitions is charged with."""
        meter = None
        if self.are_set and not is_of_broker(call):
            meter = self.meter(call, CONTROLLER_MUTATION_RATE)
        return Mutations(meter, self, is_strict=is_strict)


class Mutations:
    """The quota of one request for changes of the metadata (KIP-599): each topic costs its partitions.

    In strict versions a topic is refused while tokens are owed. Clients of older versions do not know that
    error: their changes are made, and they are throttled afterwards."""

    def __init__(self, meter: Meter | None, quotas: Quotas, *, is_strict: bool) -> None:
        self._meter = meter
        self._quotas = quotas
        self._is_strict = is_strict
        # Whether each topic was allowed: a decision that is made again is not charged again.
        self._allowed: dict[object, bool] = {}
        self._throttle_ms = self._decided_ms = 0

    def charge(self, topic: object, partitions: int) -> None:
        """THROTTLING_QUOTA_EXCEEDED if the change must not be made."""
        if self._meter is None or self._meter.bucket is None:
            return
        if topic not in self._allowed:
            self._allowed[topic] = self._charged(self._meter, self._meter.bucket, partitions)
        if not self._allowed[topic]:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def _charged(self, meter: Meter, bucket: TokenBucket, partitions: int) -> bool:
        now_ms = meter.last_ms = self._quotas.now_ms
        bound = meter.limit.bound
        throttle_ms = bucket.throttle_ms(bound, now_ms)
        if self._is_strict and throttle_ms:
            self._throttle_ms, self._decided_ms = throttle_ms, now_ms
            return False
        bucket.record(partitions, bound, now_ms)
        meter.rate.record(partitions, now_ms)
        if not self._is_strict:
            self._throttle_ms, self._decided_ms = bucket.throttle_ms(bound, now_ms), now_ms
        return True

    def throttle_ms(self) -> int:
        """How long the client has to wait from now on; to be asked once, for the answer."""
        left_ms = max(0, self._throttle_ms - (self._quotas.now_ms - self._decided_ms))
        if self._meter is not None:
            self._meter.throttled(left_ms)
        return left_ms


def is_of_broker(call: Call) -> bool:
    """Whether a broker asks for itself: this one, or another one that asks its controller."""
    if call.is_forwarded:
        return call.session is call.connection.session
    return call.session.is_trusted


def timed(work: Work[Any], call: Call) -> Work[Any]:
    """The same work; the time in which it runs, not that in which it waits, is noted in the call."""
    value: Any = None
    error: BaseException | None = None
    try:
        while True:
            began = time.perf_counter_ns()
            try:
                pause = work.send(value) if error is None else work.throw(error)
            except StopIteration as done:
                return done.value
            finally:
                call.handler_ns += time.perf_counter_ns() - began
            value = error = None
            try:
                value = yield pause
            except Exception as raised:
                error = raised
    finally:
        work.close()
