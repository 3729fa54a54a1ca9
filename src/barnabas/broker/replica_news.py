"""Which partitions of a replica's fetch session have something new, and the fetch that waits for it.

A follower fetches all partitions of a leader in one session, many times per second. So a fetch looks only at
the partitions that it names, because the follower has got on, and at those that had appends since they were
looked at. All others are looked at twice per second: their high watermark or log start may have changed, and
the leader notes that the follower still has all of them. Owned by the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.later import Later
from barnabas.clock import Clock
from barnabas.replication.partition import Partition

if TYPE_CHECKING:
    from barnabas.broker.fetch_answers import ReadResult
    from barnabas.broker.fetch_reading import Reading
    from barnabas.broker.fetch_sessions import FetchPartition, PartitionKey

FULL_PASS_SECONDS = 0.5


class WaitingFetch(Protocol):
    """A fetch of the session that waits for news."""

    def woken(self) -> None:
        """There is something new."""
        ...

    def timed_out(self) -> None:
        """The time that the follower has given is over."""
        ...

    def supersede(self) -> None:
        """Answer with nothing: the follower has sent another fetch, over another connection, since it has
        more partitions to fetch now. It does not read this answer, but its connection must get free."""
        ...


class ReplicaNews:
    """`changed`: the partitions that the next fetch has to look at."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.changed: dict[PartitionKey, FetchPartition] = {}
        self._full_pass_at = float("-inf")
        self.is_full_pass = False
        # Whether there was an append since `take`, while no fetch waited. The pass that follows `take` can
        # cause it: it may commit a record, for which a coordinator appends others.
        self.has_missed_append = False
        self.waiting: WaitingFetch | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        # How many fetches this session has had.
        self.requests = 0

    def is_full_pass_due(self, now: float) -> bool:
        return now - self._full_pass_at >= FULL_PASS_SECONDS

    def begin(self) -> bool:
        """A fetch of the session begins; whether it has to look at all partitions."""
        self.begin_short()
        now = self._clock.monotonic()
        self.is_full_pass = self.is_full_pass_due(now)
        if self.is_full_pass:
            self._full_pass_at = now
        return self.is_full_pass

    def begin_short(self) -> None:
        """The same for one that takes the short way, because no pass over all partitions is due."""
        self.supersede_waiting()
        self.requests += 1
        self.is_full_pass = False
        self.has_missed_append = False

    def wait(self, fetch: WaitingFetch, seconds: float) -> None:
        """Let this fetch wait. All fetches of the session use one timer, which is moved when it has run out:
        setting one for each of them would cost as much as answering them."""
        loop = asyncio.get_running_loop()
        self.waiting = fetch
        self._deadline = loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_at(self._deadline, self._time_is_over, loop)

    def _time_is_over(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self.waiting is None:
            return
        if loop.time() < self._deadline:
            self._timer = loop.call_at(self._deadline, self._time_is_over, loop)
        else:
            self.waiting.timed_out()

    def supersede_waiting(self) -> None:
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            waiting.supersede()

    def take(self, requested: Mapping[PartitionKey, FetchPartition] | None = None) -> list[FetchPartition]:
        """The partitions to look at: those that changed, and those of a request."""
        if requested:
            self.changed.update(requested)
        changed = list(self.changed.values())
        self.changed.clear()
        self.has_missed_append = False
        return changed

    def looked_at(self, partitions: Iterable[FetchPartition]) -> None:
        """Find out when one of these partitions gets records. One that has something to send already, for
        which there was no room or no hurry, is looked at again the next time."""
        for requested in partitions:
            permit = requested.permit
            partition: Partition | None = None if permit is None else permit.partition
            if partition is None:
                self.changed[requested.key] = requested
                continue
            end = partition.log.log_end_offset
            has_more = end > requested.fetch_offset
            if has_more or partition.high_watermark != requested.last_sent_high_watermark:
                self.changed[requested.key] = requested
            if requested.waiter is None:
                requested.waiter = partition.appended.when(end + 1, partial(self._appended, requested))

    def forget(self, requested: FetchPartition) -> None:
        self.changed.pop(requested.key, None)
        if requested.waiter is not None:
            requested.waiter.cancel()
            requested.waiter = None

    def _appended(self, requested: FetchPartition, _: bool) -> None:
        requested.waiter = None
        self.changed[requested.key] = requested
        if self.waiting is None:
            self.has_missed_append = True
        else:
            self.waiting.woken()


def wait_for_news(reading: Reading, news: ReplicaNews) -> Later:
    """Answer a fetch of a replica when there is something new, or when its time is over."""
    if reading.number != news.requests:
        # It took several turns to look at its partitions, and meanwhile the follower sent another fetch.
        later = Later()
        later.resolve(reading.respond_with_nothing())
        return later
    return _Wait(reading, news).later


class _Wait:
    """Costs the same whatever the number of partitions in the session."""

    def __init__(self, reading: Reading, news: ReplicaNews) -> None:
        self._reading = reading
        self._news = news
        self.later = Later()
        news.looked_at(reading.partitions)
        news.wait(self, reading.wait_seconds)
        reading.connection.when_abandoned = self._end
        if news.has_missed_append or any(map(_has_changed, reading.partitions)):
            self.woken()

    def woken(self) -> None:
        result = self._read()
        if self._reading.is_enough(result):
            self._resolve(result)
        else:
            self._news.looked_at(self._reading.partitions)

    def supersede(self) -> None:
        self._end()
        self.later.resolve(self._reading.respond_with_nothing())

    def timed_out(self) -> None:
        self._resolve(self._read())

    def _read(self) -> ReadResult:
        self._reading.partitions = self._news.take()
        return self._reading.read_all()

    def _resolve(self, result: ReadResult) -> None:
        # The follower first: it is waiting.
        self._news.waiting = None
        self.later.resolve(self._reading.respond(result))

    def _end(self) -> None:
        if self._news.waiting is self:
            self._news.waiting = None


def _has_changed(requested: FetchPartition) -> bool:
    """Whether something has changed since the partition was read for a replica. The pass itself can cause it:
    it may commit a record, for which a coordinator appends others."""
    permit = requested.permit
    partition: Partition | None = None if permit is None else permit.partition
    return partition is None or partition.log.log_end_offset > requested.seen_end
