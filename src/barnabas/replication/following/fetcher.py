"""One fetcher: a loop that fetches some of the partitions of one leader over one connection.

There is at most one request under way. The offsets in it tell the leader what this broker has, so the next
request is sent as soon as an answer is written to the logs. A partition that fails leaves the session and is
tried again later, without delaying the others.

A request waits at the leader until there are records. A partition that is added meanwhile, as after an
election, must not wait that long: the request is given up, and the next one, which adds the partitions to
the same session, goes over a second connection. The leader then answers the first one with nothing, so that
its connection is free for the next time.

While only one partition has records at a time, the short way (plain_cycle.py) exchanges the requests."""

import asyncio
import logging
import math
from collections.abc import Callable
from contextlib import suppress

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.kernels.replica_frames import FetchedFrame
from barnabas.replication.following.followed import NEVER, Followed, Outcome, PartitionKey
from barnabas.replication.following.plain_cycle import PlainCycle
from barnabas.replication.following.ports import FollowingSettings, LeaderTransport
from barnabas.replication.following.session import FollowerSession
from barnabas.replication.throttling import RateLimit, names_replica
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData, ReplicaState

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.05
# After so many bytes the loop serves others before the next partition.
BYTES_IN_A_TURN = 1 << 20
THROTTLED_PAUSE_SECONDS = 0.1

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class Fetcher:
    def __init__(
        self,
        leader_id: int,
        fetcher_id: int,
        transport: LeaderTransport,
        settings: FollowingSettings,
        clock: Clock,
        throttle: RateLimit,
    ) -> None:
        self.leader_id = leader_id
        self.fetcher_id = fetcher_id
        self.partitions: dict[PartitionKey, Followed] = {}
        # Whether the last request failed, such as when the leader is not there.
        self.is_failing = False
        self.bytes_fetched = 0
        self.transport = transport
        self.settings = settings
        self.clock = clock
        self._throttle = throttle
        self.session = FollowerSession()
        # Partitions that the next request has to name.
        self._changed: dict[PartitionKey, Followed] = {}
        # Partitions that are not fetched now.
        self._set_aside: dict[PartitionKey, Followed] = {}
        # Partitions that the next request takes out of the session.
        self._forgotten: set[PartitionKey] = set()
        self._wakeup = asyncio.Event()
        self._pause_seconds = FIRST_PAUSE_SECONDS
        # Ends the wait for the answer to a request that can be given up.
        self._give_up: Callable[[], None] | None = None
        # Whether the last request has partitions that the leader does not have in the session.
        self._adds_partitions = False
        # Whether an answer got lost that the leader counts as sent.
        self._has_missed_answer = False
        self._interrupt_timer: asyncio.TimerHandle | None = None
        self._connections = [f"fetch-{fetcher_id}", f"fetch-{fetcher_id}-second"]

    def __repr__(self) -> str:
        return f"Fetcher({self.leader_id}-{self.fetcher_id}, {len(self.partitions)} partitions)"

    # ---- which partitions

    def add(self, followed: Followed) -> None:
        self.partitions[followed.key] = followed
        self._set_aside.pop(followed.key, None)
        self._change(followed)
        self._wakeup.set()
        if self._give_up is not None and self._interrupt_timer is None:
            seconds = self.settings.interrupt_seconds
            self._interrupt_timer = asyncio.get_running_loop().call_later(seconds, self._interrupt)

    def remove(self, key: PartitionKey) -> None:
        self.partitions.pop(key, None)
        self._set_aside.pop(key, None)
        self._leave_out(key)
        self._wakeup.set()

    def _change(self, followed: Followed) -> None:
        """Name the partition in the next request."""
        self._changed[followed.key] = followed
        self._forgotten.discard(followed.key)

    def _leave_out(self, key: PartitionKey) -> None:
        """Take the partition out of the next request and of the session."""
        self._changed.pop(key, None)
        if key in self.session.partitions:
            self._forgotten.add(key)

    def _put_aside(self, followed: Followed) -> None:
        self._set_aside[followed.key] = followed
        self._leave_out(followed.key)

    # ---- the loop

    async def run(self) -> None:
        """Fetch until there are no partitions left."""
        while self.partitions:
            self._wakeup.clear()
            try:
                response = await self._fetch_once()
            except (KafkaError, OSError) as error:
                await self._failed(error)
                continue
            if response is not None:
                self.is_failing, self._pause_seconds = False, FIRST_PAUSE_SECONDS
                await self.take(response)

    async def _fetch_once(self) -> FetchResponse | None:
        """The next answer to take. None if there is none now: a request was given up for a new one, or there
        is nothing to fetch, and the time or the partitions have changed."""
        followed = next(iter(self._changed.values()), None)
        if self.takes_the_short_way(followed):
            channel = self.transport.plain_channel(self.leader_id, self._connections[0])
            if channel is not None:
                self.named(followed)
                return await self._cycle(PlainCycle(self, channel), followed)
        request = self.next_request()
        if request is None:
            await self._sleep(self._seconds_to_next_retry())
            return None
        return await self._exchange(request)

    async def _cycle(self, cycle: PlainCycle, followed: Followed | None) -> FetchResponse | None:
        self._give_up = cycle.give_up
        try:
            return await cycle.run(followed)
        finally:
            self._stop_waiting()

    async def _exchange(self, request: FetchRequest) -> FetchResponse | None:
        """The answer of the leader; None if the request was given up for a new one."""
        loop = asyncio.get_running_loop()
        fetch = self.transport.fetch(self.leader_id, self._connections[0], request)
        answer: asyncio.Future[FetchResponse] = loop.create_task(fetch)
        given_up: asyncio.Future[None] = loop.create_future()
        if not self._adds_partitions:
            # Otherwise the answer comes soon, and tells something about each new partition.
            self._give_up = lambda: None if given_up.done() else given_up.set_result(None)
        try:
            await asyncio.wait((answer, given_up), return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
        except asyncio.CancelledError:
            answer.cancel()
            raise
        finally:
            given_up.cancel()
            self._stop_waiting()
        answer.add_done_callback(self._late)
        return None

    def _stop_waiting(self) -> None:
        self._give_up = None
        if self._interrupt_timer is not None:
            self._interrupt_timer.cancel()
            self._interrupt_timer = None

    def _interrupt(self) -> None:
        """The leader still waits for records, and there are partitions that it does not know of."""
        self._interrupt_timer = None
        if self._give_up is not None and self._changed:
            self._connections.reverse()
            self._give_up()

    def late_answer(self, answer: FetchResponse | bytes | bytearray | BaseException) -> None:
        """The answer to a request that was given up. The leader sends one with nothing; otherwise it has sent
        this one before it got the next request, and does not repeat what is in it."""
        if isinstance(answer, FetchResponse):
            has_nothing = not answer.error_code and not answer.responses
        elif isinstance(answer, bytes | bytearray):
            plain = FetchedFrame()
            has_nothing = plain.read(answer) and plain.topic_id is None
        else:
            # What it was is not known.
            has_nothing = False
        self._has_missed_answer |= not has_nothing

    def _late(self, answer: asyncio.Future[FetchResponse]) -> None:
        error = asyncio.CancelledError() if answer.cancelled() else answer.exception()
        self.late_answer(answer.result() if error is None else error)

    # ---- the short way

    def takes_the_short_way(self, followed: Followed | None) -> bool:
        """Whether the next fetch says nothing but that this partition, if any, has got on."""
        if self._set_aside or self._forgotten or self._has_missed_answer or self._throttle.is_set:
            return False
        if self.session.is_new or (followed is not None and followed.key not in self.session.partitions):
            return False
        others = len(self._changed) - (followed is not None and followed.key in self._changed)
        return not others and (followed is not None or bool(self.session.partitions))

    def named(self, followed: Followed | None) -> None:
        """The short way sends a fetch that names the partition."""
        if followed is not None:
            self._changed.pop(followed.key, None)
            followed.is_requested = True

    def may_take(self, followed: Followed) -> bool:
        return followed.is_requested and followed.key not in self._set_aside

    def took(self, followed: Followed, outcome: Outcome, size: int) -> None:
        """An answer of this size was taken."""
        self._continue(followed, outcome)
        self.bytes_fetched += size
        if self._throttle.is_set and self._is_throttled(followed):
            self._throttle.record(size)

    async def _failed(self, error: Exception) -> None:
        """The leader has not answered."""
        self.session.restart()
        if not self.is_failing:
            logger.warning("cannot fetch from broker %d: %s", self.leader_id, error)
        self.is_failing = True
        pause, limit = self._pause_seconds, self.settings.backoff_seconds_max
        self._pause_seconds = min(2 * pause, limit)
        await asyncio.sleep(min(pause, limit))

    async def _sleep(self, seconds: float) -> None:
        """Sleep until a partition is added or removed, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(None if seconds == NEVER else seconds):
                await self._wakeup.wait()

    def _seconds_to_next_retry(self) -> float:
        earliest = min((followed.retry_at for followed in self._set_aside.values()), default=NEVER)
        return max(0.0, earliest - self.clock.monotonic()) if earliest < NEVER else NEVER

    # ---- requests

    def next_request(self) -> FetchRequest | None:
        """The next request, or None if there is nothing to fetch now."""
        now = self.clock.monotonic()
        self._resume(now)
        if self._throttle.is_exceeded():
            self._hold_throttled(now)
        session = self.session
        if self._has_missed_answer:
            self._has_missed_answer = False
            session.restart()
        if session.is_new:
            changed = [each for key, each in self.partitions.items() if key not in self._set_aside]
            self._forgotten.clear()
        else:
            changed = list(self._changed.values())
        if not changed and len(session.partitions) == len(self._forgotten):
            return None
        settings = self.settings
        request = FetchRequest(
            replica_state=ReplicaState(
                replica_id=settings.broker_id, replica_epoch=self.transport.broker_epoch
            ),
            replica_id=settings.broker_id,
            max_wait_ms=self._wait_ms(),
            min_bytes=settings.bytes_min,
            max_bytes=settings.response_bytes_max,
        )
        self._adds_partitions = any(followed.key not in session.partitions for followed in changed)
        session.write_to(request, changed, self._forgotten, settings.partition_bytes_max)
        session.sent()
        self._changed.clear()
        self._forgotten.clear()
        return request

    def _wait_ms(self) -> int:
        """How long the leader may wait for records: not longer than until a partition is tried again."""
        seconds = self._seconds_to_next_retry()
        wait_ms_max = self.settings.wait_ms_max
        return wait_ms_max if seconds == NEVER else min(wait_ms_max, math.ceil(seconds * 1000))

    def _resume(self, now: float) -> None:
        """Fetch partitions again whose pause is over."""
        for key, followed in list(self._set_aside.items()):
            if followed.retry_at <= now:
                del self._set_aside[key]
                self._change(followed)

    def _hold_throttled(self, now: float) -> None:
        """Leave out throttled replicas, except those that have caught up: they do not cost much, and they
        must stay in sync."""
        for key, followed in self.partitions.items():
            if followed.lag and key not in self._set_aside and self._is_throttled(followed):
                followed.retry_at = now + THROTTLED_PAUSE_SECONDS
                self._put_aside(followed)

    def _is_throttled(self, followed: Followed) -> bool:
        replicas = followed.partition.log.config.follower_replication_throttled_replicas
        return names_replica(replicas, followed.key[1], self.settings.broker_id)

    # ---- answers

    async def take(self, response: FetchResponse) -> None:
        """Write what the leader sent, partition by partition; others are served in between."""
        if response.error_code != ErrorCode.NONE:
            self._refused(error_of(response.error_code))
            return
        self.session.take(response.session_id)
        out_of_range: list[Followed] = []
        size = 0
        for topic in response.responses:
            for answer in topic.partitions:
                followed = self.partitions.get((topic.topic_id, answer.partition_index))
                if followed is None or not self.may_take(followed):
                    # Meanwhile it got another leader or epoch.
                    continue
                if self._take_one(followed, answer) is Outcome.OUT_OF_RANGE:
                    out_of_range.append(followed)
                size += len(answer.records) if isinstance(answer.records, memoryview | bytes) else 0
                if size >= BYTES_IN_A_TURN:
                    size = 0
                    await asyncio.sleep(0)
        for followed in out_of_range:
            await self._find_bounds(followed)

    def _take_one(self, followed: Followed, answer: PartitionData) -> Outcome:
        outcome = followed.take(answer, self.clock.monotonic())
        records = answer.records
        self.took(followed, outcome, len(records) if isinstance(records, memoryview | bytes) else 0)
        return outcome

    def _continue(self, followed: Followed, outcome: Outcome) -> None:
        if outcome is Outcome.MOVED:
            self._change(followed)
        elif outcome is not Outcome.UNCHANGED:
            self._put_aside(followed)

    async def _find_bounds(self, followed: Followed) -> None:
        partition = followed.partition.topic_partition
        try:
            bounds = await self.transport.log_bounds(self.leader_id, partition, followed.leader_epoch)
        except (KafkaError, OSError) as error:
            followed.set_aside(f"cannot get the bounds of the leader's log: {error}", self.clock.monotonic())
            return
        is_current = self.partitions.get(followed.key) is followed
        if is_current and followed.take_bounds(bounds, self.clock.monotonic()) is Outcome.MOVED:
            followed.retry_at = 0.0

    def _refused(self, code: ErrorCode) -> None:
        """The leader refused the whole request."""
        if code in SESSION_ERRORS:
            logger.info("fetch session with broker %d: %s; starting a new one", self.leader_id, code.name)
            self.session.forget()
            return
        self.session.restart()
        now = self.clock.monotonic()
        for followed in self.partitions.values():
            if followed.key not in self._set_aside:
                followed.set_aside(f"the leader answered {code.name}", now)
                self._put_aside(followed)
