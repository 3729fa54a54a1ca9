"""The consumer for asyncio: the same engine, groups and assignors; waiting is awaiting.

    async with AsyncConsumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            await charge(record.key, record.value)

It belongs to one event loop, and one task polls at a time. A poll that is cancelled loses nothing: records
are taken in the moment they are returned. A rebalance that has begun goes on when the poll is cancelled, in a
task of its own, and the next poll waits for it; methods of the listener may be coroutines."""

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Self, TypeVar

from barnabas.client.aio.bridge import Bell, run_on, running_loop, stop
from barnabas.client.consumer.commits import Offsets
from barnabas.client.consumer.core import NAP_SECONDS, ConsumerCore, Topics
from barnabas.client.consumer.iterating import hand_out
from barnabas.client.consumer.lookups import committed_offsets, offsets_by_time, partitions_of_all, persist
from barnabas.client.consumer.records import ConsumerRecord, ConsumerRecords
from barnabas.client.consumer.state import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.client.consumer.steps import Ask, Step, Steps, Wait
from barnabas.client.errors import ConcurrentAccessError, KafkaTimeoutError
from barnabas.client.types import OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo, TopicPartition

_T = TypeVar("_T")
Answer = Coroutine[Any, Any, _T]


class AsyncConsumer(ConsumerCore):
    """Reads records, in one event loop. Settings are Kafka's, with underscores, or a dict with dots."""

    def __init__(self, settings: Mapping[str, Any] | None = None, **keywords: Any) -> None:
        self._loop = running_loop("consumer")
        super().__init__(settings, **keywords)
        self._is_polled = False
        self._taking_part: asyncio.Task[None] | None = None
        self._is_leaving = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ---- what to read

    def subscribe(self, topics: Topics, listener: Any = None) -> None:
        """Read these topics, or all whose whole name matches the pattern, as a member of the group.

        The listener has the methods of RebalanceListener, as functions or as coroutines."""
        with self._access:
            topics = list(topics) if isinstance(topics, list | tuple | set | frozenset) else topics
            if topics == []:
                raise ValueError("there is no topic to subscribe to: await unsubscribe() reads nothing")
            self._subscribe(topics, listener)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a group's help."""
        with self._access:
            self._check_assignable()
            consumed = self._engine.consumed()
            if self._commits_itself and consumed:
                self._commit_in_background(consumed, None)
            self._assign(partitions)

    async def unsubscribe(self) -> None:
        """Read nothing and leave the group."""
        await self._settle_membership()
        await self._perform(self._unsubscribe())

    # ---- reading

    def poll(self, timeout: float = 0.0) -> Answer[ConsumerRecords]:
        """The next records, at most max.poll.records; waits up to `timeout` seconds for the first."""
        return self._poll_records(timeout)

    def poll_arrow(self, timeout: float = 0.0, records_max: int = 100_000) -> Answer[Any]:
        """As poll, as a pyarrow.Table: topic, partition, offset, timestamp, key, value, headers."""
        return self._poll_arrow(timeout, records_max)

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Records without an end: `async for record in consumer`; ends when the consumer is closed. The
        position follows each record: commit_sync() in the loop covers what was handed out, no more."""
        return self._all_records()

    async def _all_records(self) -> AsyncIterator[ConsumerRecord]:
        while not self._access.is_closed:
            with contextlib.closing(
                hand_out(self._engine.assignments, await self.poll(NAP_SECONDS))
            ) as records:
                for record in records:
                    yield record

    async def _poll_records(self, seconds: float) -> ConsumerRecords:
        found: ConsumerRecords | None = await self._poll(self._take_records, seconds)
        return ConsumerRecords() if found is None else found

    async def _poll_arrow(self, seconds: float, records_max: int) -> Any:
        from barnabas.client.consumer.arrow import table_of

        return table_of(await self._poll(lambda: self._taking.columns(records_max), seconds))

    async def _poll(self, take: Callable[[], Any], seconds: float) -> Any:
        if self._is_polled:
            raise ConcurrentAccessError("a consumer is not for polling by two tasks at once")
        self._is_polled = True
        try:
            return await self._poll_until(take, time.monotonic() + seconds)
        finally:
            self._is_polled = False

    async def _poll_until(self, take: Callable[[], Any], deadline: float) -> Any:
        engine = self._engine
        # Where records are always there, other tasks have their turn between two polls.
        await asyncio.sleep(0)
        while True:
            with self._access:
                now = self._begin_turn()
            if engine.membership is not None:
                await self._take_part(deadline)
            with self._access:
                self._commit_if_due(now)
                engine.assignments.raise_error()
                found = take()
            if found is not None or time.monotonic() >= deadline:
                return found
            await self._wait(self._has_work, min(deadline, time.monotonic() + NAP_SECONDS))

    async def _take_part(self, deadline: float) -> None:
        """What the group wants of this member; it goes on when the poll is cancelled meanwhile."""
        if self._taking_part is None:
            membership = self._engine.membership
            if membership is None or not membership.has_work:
                return
            self._taking_part = self._loop.create_task(self._perform(membership.poll(deadline)))
        task = self._taking_part
        await asyncio.wait({task}, timeout=max(0.0, deadline - time.monotonic()))
        if task.done():
            self._taking_part = None
            task.result()

    async def _settle_membership(self) -> None:
        """Before the group is left: what is being done for it comes to its end; a round is not waited for."""
        task, self._taking_part = self._taking_part, None
        if task is not None:
            self._is_leaving = True
            self._engine.notify()
            await asyncio.wait({task})
            self._is_leaving = False

    # ---- waiting

    async def _perform(self, steps: Steps[_T]) -> _T:
        """As BlockingSteps does, in this loop."""
        resume: Callable[[Any], Step] = steps.send
        given: Any = None
        while True:
            try:
                step = resume(given)
            except StopIteration as end:
                result: _T = end.value
                return result
            try:
                resume, given = steps.send, await self._do(step)
            except BaseException as error:
                resume, given = steps.throw, error

    async def _do(self, step: Step) -> Any:
        if isinstance(step, Wait):
            await self._wait(lambda: self._is_leaving or step.is_done(), step.deadline)
            return bool(step.is_done())
        if isinstance(step, Ask):
            return await run_on(self._engine.io, step.question(), step.timeout)
        told = step.listen(step.partitions)
        return await told if inspect.isawaitable(told) else told

    async def _wait(self, is_done: Callable[[], object], deadline: float) -> bool:
        """Until something is done that the I/O thread notifies of; a wakeup ends it with WakeupError."""
        bell = Bell(self._loop)
        signal = self._engine.assignments.signal
        signal.listeners.append(bell.ring)
        try:
            while True:
                self._access.check_wakeup()
                if is_done():
                    return True
                if time.monotonic() >= deadline:
                    return False
                await bell.wait(deadline)
        finally:
            signal.listeners.remove(bell.ring)

    async def _ask(self, question: Callable[[], Awaitable[_T]], seconds: float | None) -> _T:
        limit = self._api_seconds if seconds is None else seconds
        return await run_on(self._engine.io, persist(self._engine.network, question, limit))

    # ---- committing

    def commit_sync(self, offsets: Offsets | None = None, timeout: float | None = None) -> Answer[None]:
        """Commit these offsets, or where this consumer stands; over when the group has them."""
        with self._access:
            self._need_group()
            wanted = self._engine.consumed() if offsets is None else dict(offsets)
        return self._commit(wanted, timeout)

    async def _commit(self, offsets: Offsets, seconds: float | None) -> None:
        if offsets:
            await self._ask(lambda: self._engine.commits.commit(offsets), seconds)
        with self._access:
            self._run_callbacks()
            self._tell_committed(offsets)

    # ---- offsets and topics

    def position(self, partition: TopicPartition, timeout: float | None = None) -> Answer[int]:
        """The offset of the next record that poll hands out."""
        return self._position(partition, self._api_seconds if timeout is None else timeout)

    async def _position(self, partition: TopicPartition, seconds: float) -> int:
        state, errors = self._state(partition), self._engine.assignments.errors
        deadline = time.monotonic() + seconds
        self._engine.assignments.wake()
        while state.offset is None:
            self._engine.assignments.raise_error()
            if not await self._wait(lambda: state.offset is not None or errors, deadline):
                raise KafkaTimeoutError(f"the position in {partition} could not be found in time")
        return state.offset

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> Answer[dict[TopicPartition, OffsetAndMetadata | None]]:
        """What the group has committed for each; None where nothing."""
        return self._committed(list(partitions), timeout)

    async def _committed(
        self, partitions: list[TopicPartition], seconds: float | None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        network, identity = self._engine.network, self._engine.identity()
        found = await self._ask(lambda: committed_offsets(network, partitions, identity), seconds)
        return {each: found.get(each) for each in partitions}

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> Answer[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """The first record at or after each timestamp (ms); None where there is none."""
        if any(timestamp < 0 for timestamp in times.values()):
            raise ValueError("a timestamp is not negative")
        return self._offsets_for_times(times, timeout)

    async def _offsets_for_times(
        self, times: Mapping[TopicPartition, int], seconds: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        found = await self._offsets(times, seconds)
        return {each: found.get(each) for each in times}

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> Answer[dict[TopicPartition, int]]:
        """The first offset of each partition that can still be read."""
        return self._ends(dict.fromkeys(partitions, EARLIEST_TIMESTAMP), timeout)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> Answer[dict[TopicPartition, int]]:
        """Behind the last record that a consumer with this isolation.level can read."""
        return self._ends(dict.fromkeys(partitions, LATEST_TIMESTAMP), timeout)

    async def _ends(
        self, times: Mapping[TopicPartition, int], seconds: float | None
    ) -> dict[TopicPartition, int]:
        return {each: place.offset for each, place in (await self._offsets(times, seconds)).items()}

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
        """Commit if that is on, leave the group, end the connections. Once is enough, twice does no harm."""
        return self._close(timeout)

    async def _close(self, seconds: float) -> None:
        if self._access.is_closed:
            return
        await self._settle_membership()
        # Entered, so that the listener may still commit.
        with self._access:
            self._access.is_closed = True
            try:
                await self._perform(self._closing_steps(seconds))
            finally:
                await run_on(self._engine.io, self._engine.end())
                await stop(self._engine.io)
                self._close_interceptors()
