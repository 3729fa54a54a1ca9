"""Queues of records for worker threads, which also count how far each partition is finished without a gap.

A lane is a queue of records that must be processed in order: those of a partition, or of one key of it. A
worker takes a lane, processes one record and puts the lane back, so two workers never have the same lane. The
polling thread and the workers share one lock."""

import threading
import time
from collections import deque
from collections.abc import Collection, Hashable, Iterable
from typing import Any

from barnabas.client.consumer.records import ConsumerRecord
from barnabas.client.types import OffsetAndMetadata, TopicPartition

Lane = tuple[TopicPartition, object]


class Progress:
    """One partition: the offsets given to workers, and how far they are finished without a gap."""

    def __init__(self) -> None:
        self.pending: deque[tuple[int, int]] = deque()
        self.running = 0
        self.begun_max = -1
        self.position: OffsetAndMetadata | None = None
        self.committed: OffsetAndMetadata | None = None
        self._done: set[int] = set()

    def finish(self, offset: int) -> None:
        self._done.add(offset)
        while self.pending and self.pending[0][0] in self._done:
            first, epoch = self.pending.popleft()
            self._done.remove(first)
            self.position = OffsetAndMetadata(first + 1, "", epoch)


class Lanes:
    def __init__(self, *, by_key: bool) -> None:
        self.changed = threading.Condition()
        self.failure: BaseException | None = None
        self._by_key = by_key
        self._lanes: dict[Lane, deque[ConsumerRecord[Any, Any]]] = {}
        self._ready: deque[Lane] = deque()
        self._progress: dict[TopicPartition, Progress] = {}
        self._takes_more = True

    # ---- the polling thread

    def put(self, records: Iterable[ConsumerRecord[Any, Any]]) -> None:
        with self.changed:
            for record in records:
                partition = TopicPartition(record.topic, record.partition)
                epoch = -1 if record.leader_epoch is None else record.leader_epoch
                self._progress.setdefault(partition, Progress()).pending.append((record.offset, epoch))
                lane = (partition, self._order_of(record))
                waiting = self._lanes.get(lane)
                if waiting is None:
                    self._lanes[lane] = deque([record])
                    self._ready.append(lane)
                else:
                    waiting.append(record)
            self.changed.notify_all()

    def _order_of(self, record: ConsumerRecord[Any, Any]) -> object:
        if not self._by_key:
            return None
        # Records without a key may be processed in any order.
        if record.key is None:
            return ("no key", record.offset)
        # A deserializer may return keys that are not hashable: then the whole partition is one lane.
        return record.key if isinstance(record.key, Hashable) else None

    def counts(self) -> dict[TopicPartition, int]:
        """Per partition, the number of records that are not finished, or that follow an unfinished one."""
        with self.changed:
            return {each: len(progress.pending) for each, progress in self._progress.items()}

    def uncommitted(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions up to which everything is finished, for partitions where that is not committed
        yet."""
        with self.changed:
            return {
                each: progress.position
                for each, progress in self._progress.items()
                if (partitions is None or each in partitions)
                and progress.position is not None
                and progress.position != progress.committed
            }

    def committed(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        with self.changed:
            for each, position in offsets.items():
                if each in self._progress:
                    self._progress[each].committed = position

    def drop_unneeded(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the records of these partitions after the last one that was started: the next consumer reads
        them. Earlier records are still processed: otherwise those finished after them would be repeated."""
        with self.changed:
            for lane in [each for each in self._lanes if each[0] in partitions]:
                begun_max = self._progress[lane[0]].begun_max if lane[0] in self._progress else -1
                kept = [record for record in self._lanes[lane] if record.offset <= begun_max]
                self._lanes[lane] = deque(kept)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """These partitions are lost: drop the waiting records, and ignore the outcome of running ones."""
        with self.changed:
            for each in partitions:
                self._progress.pop(each, None)
            for lane in [each for each in self._lanes if each[0] in partitions]:
                self._lanes[lane].clear()

    def wait_idle(self, partitions: Collection[TopicPartition], deadline: float) -> bool:
        """Wait until no record of these partitions waits or runs. Returns whether that happened in time."""
        with self.changed:
            return self.changed.wait_for(
                lambda: not any(self._is_busy(each) for each in partitions),
                max(0.0, deadline - time.monotonic()),
            )

    def _is_busy(self, partition: TopicPartition) -> bool:
        if partition in self._progress and self._progress[partition].running:
            return True
        # When workers take no more records, waiting ones will not be processed.
        return self._takes_more and any(lane[0] == partition and held for lane, held in self._lanes.items())

    def wait_empty(self, deadline: float) -> bool:
        """Wait until no record waits or runs, or a worker has failed."""
        with self.changed:
            return self.changed.wait_for(
                lambda: self.failure is not None or not self._lanes, max(0.0, deadline - time.monotonic())
            )

    def end(self) -> None:
        """Give workers no more records: `take` returns None."""
        with self.changed:
            self._takes_more = False
            self.changed.notify_all()

    # ---- the workers

    def take(self) -> tuple[Lane, ConsumerRecord[Any, Any], Progress] | None:
        """The next record; None when there will be no more."""
        with self.changed:
            while True:
                self.changed.wait_for(lambda: self._ready or not self._takes_more)
                if not self._takes_more:
                    return None
                lane = self._ready.popleft()
                waiting = self._lanes[lane]
                if not waiting:
                    # Its records were dropped.
                    del self._lanes[lane]
                    self.changed.notify_all()
                    continue
                progress = self._progress[lane[0]]
                record = waiting.popleft()
                progress.running += 1
                progress.begun_max = max(progress.begun_max, record.offset)
                return lane, record, progress

    def done(self, lane: Lane, record: ConsumerRecord[Any, Any], progress: Progress) -> None:
        with self.changed:
            progress.finish(record.offset)
            self._give_back(lane, progress)

    def failed(self, lane: Lane, progress: Progress, error: BaseException) -> None:
        """The record stays unfinished, so no offset after it is committed. The first error is kept."""
        with self.changed:
            self.failure = self.failure or error
            self._takes_more = False
            self._give_back(lane, progress)

    def _give_back(self, lane: Lane, progress: Progress) -> None:
        progress.running -= 1
        if self._lanes[lane]:
            self._ready.append(lane)
        else:
            del self._lanes[lane]
        self.changed.notify_all()
