"""The consumer for asyncio: the same engine, groups and assignors, but it awaits instead of blocking.

    async with AsyncConsumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            await charge(record.key, record.value)

It belongs to one event loop, and one task at a time may poll. Cancelling a poll loses no records: they are
taken only when they are returned. A rebalance that has begun continues in its own task when the poll is
cancelled, and the next poll waits for it. Methods of the listener may be coroutines."""

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from barnabas.client.aio.bridge import Wakeup, run_on, running_loop, stop
from barnabas.client.consumer.buffer_reader import table_of
from barnabas.client.consumer.commits import Offsets
from barnabas.client.consumer.core import RECHECK_SECONDS, ConsumerCore, Topics
from barnabas.client.consumer.iterating import iterate_records
from barnabas.client.consumer.lookups import (
    committed_offsets,
    offsets_by_time,
    partitions_of_all,
    with_retries,
)
from barnabas.client.consumer.records import ConsumerRecord, ConsumerRecords
from barnabas.client.consumer.state import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.client.consumer.steps import RunOnIoThread, Step, Steps, Wait
from barnabas.client.errors import ConcurrentAccessError
from barnabas.client.generic import K, V
from barnabas.client.habits import NoKeywords, check_keywords
from barnabas.client.settings import ConsumerSettings
from barnabas.client.types import OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo, TopicPartition

if TYPE_CHECKING:
    import pyarrow

_T = TypeVar("_T")
Answer = Coroutine[Any, Any, _T]


class AsyncConsumer(ConsumerCore[K, V]):
    """Reads records, in one event loop. The settings are Kafka's: keyword arguments with underscores, or a
    dict with dots."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, **keywords: Unpack[ConsumerSettings[K, V]]
    ) -> None:
        self._loop = running_loop("consumer")
        super().__init__(settings, **keywords)
        self._is_polled = False
        self._rebalance: asyncio.Task[None] | None = None
        self._is_leaving = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ---- what to read

    def subscribe(self, topics: Topics = (), listener: Any = None, **others: Unpack[NoKeywords]) -> None:
        """Read these topics, or all topics whose full name matches the pattern, as a member of the group.

        The listener has the methods of RebalanceListener, as functions or as coroutines."""
        check_keywords("subscribe()", others)
        with self._access:
            topics = list(topics) if isinstance(topics, list | tuple | set | frozenset) else topics
            if topics == []:
                raise ValueError("the list of topics is empty: use `await unsubscribe()` to read nothing")
            self._subscribe(topics, listener)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a group."""
        with self._access:
            self._check_assignable()
            consumed = self._engine.consumed()
            if self._auto_commits and consumed:
                self._commit_in_background(consumed, None)
            self._assign(partitions)

    async def unsubscribe(self) -> None:
        """Read nothing and leave the group."""
        await self._finish_rebalance()
        await self._perform(self._unsubscribe())

    # ---- reading

    def poll(self, timeout: float = 0.0, **others: Unpack[NoKeywords]) -> Answer[ConsumerRecords[K, V]]:
        """The next records, at most max.poll.records; waits up to `timeout` seconds for the first."""
        check_keywords("poll()", others)
        return self._poll_records(timeout)

    def poll_arrow(self, timeout: float = 0.0, records_max: int = 100_000) -> "Answer[pyarrow.Table]":
        """As poll, as a pyarrow.Table: topic, partition, offset, timestamp, key, value, headers."""
        return self._poll_arrow(timeout, records_max)

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        """Iterate with `async for record in consumer` until the consumer is closed. The position moves with
        each record: commit_sync() in the loop commits the records returned so far, and no more."""
        return self._all_records()

    async def _all_records(self) -> AsyncIterator[ConsumerRecord[K, V]]:
        while not self._access.is_closed:
            with contextlib.closing(
                iterate_records(self._engine.assignments, await self.poll(RECHECK_SECONDS))
            ) as records:
                for record in records:
                    yield record

    async def _poll_records(self, seconds: float) -> ConsumerRecords[K, V]:
        records: ConsumerRecords[K, V] | None = await self._poll(self._take_records, seconds)
        return ConsumerRecords() if records is None else records

    async def _poll_arrow(self, seconds: float, records_max: int) -> Any:
        return table_of(await self._poll(lambda: self._buffer_reader.columns(records_max), seconds))

    async def _poll(self, take: Callable[[], Any], seconds: float) -> Any:
        if self._is_polled:
            raise ConcurrentAccessError("a consumer must not be polled by two tasks at the same time")
        self._is_polled = True
        try:
            return await self._poll_until(take, time.monotonic() + seconds)
        finally:
            self._is_polled = False

    async def _poll_until(self, take: Callable[[], Any], deadline: float) -> Any:
        engine = self._engine
        # Let other tasks run between two polls, even if there are always records.
        await asyncio.sleep(0)
        while True:
            with self._access:
                now = self._begin_turn()
            if engine.membership is not None:
                await self._take_part(deadline)
            with self._access:
                self._commit_if_due(now)
                engine.assignments.raise_error()
                taken = take()
            if taken is not None or time.monotonic() >= deadline:
                return taken
            await self._wait(self._has_work, min(deadline, time.monotonic() + RECHECK_SECONDS))

    async def _take_part(self, deadline: float) -> None:
        """Take part in a rebalance. It continues even if the poll is cancelled."""
        if self._rebalance is None:
            membership = self._engine.membership
            if membership is None or not membership.has_work:
                return
            self._rebalance = self._loop.create_task(self._perform(membership.poll(deadline)))
        task = self._rebalance
        await asyncio.wait({task}, timeout=max(0.0, deadline - time.monotonic()))
        if task.done():
            self._rebalance = None
            task.result()

    async def _finish_rebalance(self) -> None:
        """Before leaving the group: finish the current step of a rebalance, but do not wait for a new one."""
        task, self._rebalance = self._rebalance, None
        if task is not None:
            self._is_leaving = True
            self._engine.notify()
            await asyncio.wait({task})
            self._is_leaving = False

    # ---- waiting

    async def _perform(self, steps: Steps[_T]) -> _T:
        """Perform steps as BlockingSteps does, but in this loop."""
        resume: Callable[[Any], Step] = steps.send
        given: Any = None
        while True:
            try:
                step = resume(given)
            except StopIteration as end:
                result: _T = end.value
                return result
            try:
                resume, given = steps.send, await self._perform_one(step)
            except BaseException as error:
                resume, given = steps.throw, error

    async def _perform_one(self, step: Step) -> Any:
        if isinstance(step, Wait):
            await self._wait(lambda: self._is_leaving or step.is_done(), step.deadline)
            return bool(step.is_done())
        if isinstance(step, RunOnIoThread):
            return await run_on(self._engine.io, step.start(), step.timeout)
        result = step.method(step.partitions)
        return await result if inspect.isawaitable(result) else result

    async def _wait(self, is_done: Callable[[], object], deadline: float) -> bool:
        """Wait until `is_done`, checked after each notification of the I/O thread; wakeup() raises
        WakeupError."""
        wakeup = Wakeup(self._loop)
        signal = self._engine.assignments.signal
        signal.listeners.append(wakeup.set)
        try:
            while True:
                self._access.check_wakeup()
                if is_done():
                    return True
                if time.monotonic() >= deadline:
                    return False
                await wakeup.wait(deadline)
        finally:
            signal.listeners.remove(wakeup.set)

    async def _ask(self, question: Callable[[], Awaitable[_T]], seconds: float | None) -> _T:
        limit = self._api_seconds if seconds is None else seconds
        return await run_on(self._engine.io, with_retries(self._engine.network, question, limit))

    # ---- committing

    def commit_sync(self, offsets: Offsets | None = None, timeout: float | None = None) -> Answer[None]:
        """Commit these offsets, or the current positions; done when they are committed."""
        with self._access:
            self._require_group()
            to_commit = self._engine.consumed() if offsets is None else dict(offsets)
        return self._commit(to_commit, timeout)

    async def _commit(self, offsets: Offsets, seconds: float | None) -> None:
        if offsets:
            await self._ask(lambda: self._engine.commits.commit(offsets), seconds)
        with self._access:
            self._run_callbacks()
            self._run_commit_interceptors(offsets)

    # ---- offsets and topics

    def position(self, partition: TopicPartition, timeout: float | None = None) -> Answer[int]:
        """The offset of the next record that poll returns."""
        return self._position(partition, self._api_seconds if timeout is None else timeout)

    async def _position(self, partition: TopicPartition, seconds: float) -> int:
        state, errors = self._state(partition), self._engine.assignments.errors
        deadline = time.monotonic() + seconds
        self._engine.assignments.wake()
        while state.offset is None:
            self._engine.assignments.raise_error()
            if not await self._wait(lambda: state.offset is not None or errors, deadline):
                raise self._position_unknown(partition)
        return state.offset

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> Answer[dict[TopicPartition, OffsetAndMetadata | None]]:
        """The offset that the group has committed for each partition; None if it has committed none."""
        return self._committed(list(partitions), timeout)

    async def _committed(
        self, partitions: list[TopicPartition], seconds: float | None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        network, identity = self._engine.network, self._engine.identity()
        offsets = await self._ask(lambda: committed_offsets(network, partitions, identity), seconds)
        return {each: offsets.get(each) for each in partitions}

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> Answer[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """The first record at or after each timestamp (ms); None if there is none."""
        if any(timestamp < 0 for timestamp in times.values()):
            raise ValueError("a timestamp must not be negative")
        return self._offsets_for_times(times, timeout)

    async def _offsets_for_times(
        self, times: Mapping[TopicPartition, int], seconds: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        offsets = await self._offsets(times, seconds)
        return {each: offsets.get(each) for each in times}

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> Answer[dict[TopicPartition, int]]:
        """The first offset of each partition that can still be read."""
        return self._ends(dict.fromkeys(partitions, EARLIEST_TIMESTAMP), timeout)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> Answer[dict[TopicPartition, int]]:
        """The offset after the last record that a consumer with this isolation.level can read."""
        return self._ends(dict.fromkeys(partitions, LATEST_TIMESTAMP), timeout)

    async def _ends(
        self, times: Mapping[TopicPartition, int], seconds: float | None
    ) -> dict[TopicPartition, int]:
        return {each: position.offset for each, position in (await self._offsets(times, seconds)).items()}

    async def _offsets(
        self, times: Mapping[TopicPartition, int], seconds: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        network, isolation = self._engine.network, self._engine.positions.isolation
        return await self._ask(lambda: offsets_by_time(network, times, isolation), seconds)

    def partitions_for(self, topic: str, timeout: float | None = None) -> Answer[list[PartitionInfo]]:
        """The partitions of a topic with their leaders."""
        return self._partitions_for(topic, timeout)

    async def _partitions_for(self, topic: str, seconds: float | None) -> list[PartitionInfo]:
        cluster = self._engine.cluster
        return list((await self._ask(lambda: cluster.topic(topic), seconds)).partitions)

    def list_topics(self, timeout: float | None = None) -> Answer[dict[str, list[PartitionInfo]]]:
        """All topics that this client may see, with their partitions."""
        return self._list_topics(timeout)

    async def _list_topics(self, seconds: float | None) -> dict[str, list[PartitionInfo]]:
        cluster = self._engine.cluster
        return partitions_of_all(await self._ask(lambda: cluster.fetch_metadata(None), seconds))

    # ---- the end

    def close(self, timeout: float = 30.0) -> Answer[None]:
        """Commit if enable.auto.commit is on, leave the group, close the connections. May be called twice."""
        return self._close(timeout)

    async def _close(self, seconds: float) -> None:
        if self._access.is_closed:
            return
        await self._finish_rebalance()
        # Inside `_access`, so that the listener may still commit.
        with self._access:
            self._access.is_closed = True
            try:
                await self._perform(self._closing_steps(seconds))
            finally:
                await run_on(self._engine.io, self._engine.end())
                await stop(self._engine.io)
                self._close_interceptors()
