"""Which partitions of a replica's fetch session have something new.

A follower fetches all partitions of a leader in one session, many times per second. So a fetch looks only at
the partitions that it names, because the follower has got on, and at those that had appends since they were
looked at. All others are looked at twice per second: their high watermark or log start may have changed, and
the leader notes that the follower still has all of them. Owned by the event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from barnabas.clock import Clock
from barnabas.replication.partition import Partition

if TYPE_CHECKING:
    from barnabas.broker.fetch_sessions import FetchPartition, PartitionKey

FULL_PASS_SECONDS = 0.5


class ReplicaNews:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed: dict[PartitionKey, FetchPartition] = {}
        self._full_pass_at = float("-inf")
        self.is_full_pass = False
        # Whether there was an append since `take`, while no fetch waited. The pass that follows `take` can
        # cause it: it may commit a record, for which a coordinator appends others.
        self.has_missed_append = False
        # The fetch that waits for news.
        self.wake: Callable[[], None] | None = None

    def is_full_pass_due(self) -> bool:
        """Whether the fetch that begins has to look at all partitions of the session."""
        now = self._clock.monotonic()
        self.is_full_pass = now - self._full_pass_at >= FULL_PASS_SECONDS
        if self.is_full_pass:
            self._full_pass_at = now
        return self.is_full_pass

    def take(self, requested: Mapping[PartitionKey, FetchPartition] | None = None) -> list[FetchPartition]:
        """The partitions to look at: those that changed, and those of a request."""
        if requested:
            self._changed.update(requested)
        changed = list(self._changed.values())
        self._changed.clear()
        self.has_missed_append = False
        return changed

    def looked_at(self, partitions: Iterable[FetchPartition]) -> None:
        """Find out when one of these partitions gets records. One that has something to send already, for
        which there was no room or no hurry, is looked at again the next time."""
        for requested in partitions:
            permit = requested.permit
            partition: Partition | None = None if permit is None else permit.partition
            if partition is None:
                self._changed[requested.key] = requested
                continue
            end = partition.log.log_end_offset
            has_more = end > requested.fetch_offset
            if has_more or partition.high_watermark != requested.last_sent_high_watermark:
                self._changed[requested.key] = requested
            if requested.waiter is None:
                requested.waiter = partition.appended.when(end + 1, partial(self._appended, requested))

    def forget(self, requested: FetchPartition) -> None:
        self._changed.pop(requested.key, None)
        if requested.waiter is not None:
            requested.waiter.cancel()
            requested.waiter = None

    def _appended(self, requested: FetchPartition, _: bool) -> None:
        requested.waiter = None
        self._changed[requested.key] = requested
        if self.wake is None:
            self.has_missed_append = True
        else:
            self.wake()
