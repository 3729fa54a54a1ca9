"""Our clients in asyncio: they send, read, commit and rebalance without blocking the loop."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.clients.broker_process import BrokerProcess
from tests.clients.conftest import MakeTopic
from tests.clients.test_own_consumer import PROTOCOLS, fill

from barnabas import AsyncAdmin, AsyncConsumer, AsyncProducer, OffsetAndMetadata, TopicPartition
from barnabas.client.admin import AdminError, NewTopic
from barnabas.client.consumer import ConsumerRecord
from barnabas.client.errors import (
    ClosedError,
    ConcurrentAccessError,
    ErrorCode,
    KafkaError,
    KafkaTimeoutError,
    ProducerFencedError,
    WakeupError,
)

PATIENCE_SECONDS = 30.0


async def read(consumer: AsyncConsumer, count: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(records) < count:
            records += await consumer.poll(1.0)
    return records


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not await condition():
        assert time.monotonic() < deadline
        await asyncio.gather(asyncio.sleep(0.02))


def test_what_was_sent_is_read(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic(partitions=2)
    outcomes: list[tuple[Any, Any, int]] = []

    async def scene() -> None:
        thread = threading.get_ident()
        async with AsyncProducer(bootstrap_servers=quick_bootstrap, linger_ms=5) as producer:
            futures = [
                await producer.send(
                    topic,
                    b"%d" % number,
                    partition=number % 2,
                    on_delivery=lambda metadata, error: outcomes.append(
                        (metadata, error, threading.get_ident())
                    ),
                )
                for number in range(100)
            ]
            assert (await futures[0]).offset == 0
            assert [each.offset for each in await asyncio.gather(*futures)] == [n // 2 for n in range(100)]
            last = await producer.send_and_wait(topic, b"last", key=b"k", headers={"h": b"1"})
            assert last.serialized_key_size == 1
            assert len(await producer.partitions_for(topic)) == 2
            assert producer.metrics()["record-send-total"] == 101
        assert len(outcomes) == 100
        assert {(error, ident) for _, error, ident in outcomes} == {(None, thread)}
        async with AsyncConsumer(bootstrap_servers=quick_bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
            records = await read(consumer, 101)
            assert {each.value for each in records} == {b"%d" % number for number in range(100)} | {b"last"}
            ends = await consumer.end_offsets(consumer.assignment())
            assert sum(ends.values()) == 101
            consumer.seek(TopicPartition(topic, 0), 40)
            assert await consumer.position(TopicPartition(topic, 0)) == 40
            assert topic in await consumer.list_topics()
            assert await consumer.poll() is not None

    asyncio.run(scene())


def test_a_partition_that_is_added_later_is_found(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic(partitions=1)

    async def scene() -> None:
        async with (
            AsyncAdmin(bootstrap_servers=quick_bootstrap) as admin,
            AsyncProducer(bootstrap_servers=quick_bootstrap) as producer,
        ):
            await producer.send_and_wait(topic, b"before", partition=0)
            await admin.create_partitions({topic: 2})
            assert (await producer.send_and_wait(topic, b"after", partition=1)).partition == 1
        async with AsyncProducer(bootstrap_servers=quick_bootstrap, max_block_ms=2000) as producer:
            await producer.send_and_wait(topic, b"known", partition=0)
            with pytest.raises(KafkaTimeoutError, match=r"has 2 partitions; there is no partition 7"):
                await producer.send(topic, b"", partition=7)

    asyncio.run(scene())


def test_tables_are_sent_and_read(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic(partitions=2)
    count = 20_000
    table = pa.table({"value": [b"%06d" % number for number in range(count)]})
    outcomes: list[tuple[Any, Any, int]] = []

    async def scene() -> None:
        # Much less memory than the table needs, so that send_batch has to wait.
        how: dict[str, Any] = {"batch_size": 4000, "buffer_memory": 40_000, "linger_ms": 0}
        async with AsyncProducer(bootstrap_servers=quick_bootstrap, **how) as producer:
            sending = asyncio.create_task(
                producer.send_batch(
                    topic, table, lambda *facts: outcomes.append((*facts, threading.get_ident()))
                )
            )
            turns = 0
            while not sending.done():
                turns += 1
                await asyncio.sleep(0)
            result = await (await sending)
            assert result.count == count
            assert {partition.partition for partition in result.partitions} == {0, 1}
            assert turns > 10
            pairs = await (await producer.send_batch(topic, [(b"k", b"pair")]))
            assert pairs.count == 1
            nothing = await (await producer.send_batch(topic, table.slice(0, 0)))
            assert nothing.count == 0
            with pytest.raises(KafkaError) as caught:
                await producer.send_batch(topic, [(None, b"x" * 50_000)])
            assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert outcomes == [(result, None, threading.get_ident())]
        async with AsyncConsumer(bootstrap_servers=quick_bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
            values: list[bytes] = []
            async with asyncio.timeout(PATIENCE_SECONDS):
                while len(values) <= count:
                    values += (await consumer.poll_arrow(1.0)).column("value").to_pylist()
        assert sorted(values) == [*table.column("value").to_pylist(), b"pair"]

    asyncio.run(scene())


@PROTOCOLS
def test_iterating_commits_only_the_records_returned_so_far(
    quick_bootstrap: str, make_quick_topic: MakeTopic, protocol: str
) -> None:
    topic = make_quick_topic()
    fill(quick_bootstrap, topic, 300)
    how = {
        "bootstrap_servers": quick_bootstrap,
        "group_id": f"of-{topic}",
        "group_protocol": protocol,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    partition = TopicPartition(topic, 0)

    async def take(count: int) -> list[bytes]:
        values: list[bytes] = []
        async with AsyncConsumer(**how) as consumer, asyncio.timeout(PATIENCE_SECONDS):
            consumer.subscribe([topic])
            async for record in consumer:
                values.append(record.value)
                if len(values) == count:
                    break
            await consumer.commit_sync()
            committed = (await consumer.committed([partition]))[partition]
            assert committed is not None and committed.offset == record.offset + 1
            # The next loop continues where the first one was left.
            assert (await anext(aiter(consumer))).offset == record.offset + 1
        return values

    async def scene() -> None:
        assert await take(10) == [b"%d" % number for number in range(10)]
        assert await take(30) == [b"%d" % number for number in range(10, 40)]

    asyncio.run(scene())


def test_a_cancelled_poll_loses_no_records(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic()

    async def scene() -> None:
        async with (
            AsyncProducer(bootstrap_servers=quick_bootstrap) as producer,
            AsyncConsumer(
                bootstrap_servers=quick_bootstrap, group_id=f"of-{topic}", auto_offset_reset="earliest"
            ) as consumer,
            asyncio.timeout(PATIENCE_SECONDS),
        ):
            consumer.subscribe([topic])
            values: list[int] = []
            cancelled = 0
            sent = 0
            while len(values) < 200:
                polling = asyncio.create_task(consumer.poll(5.0))
                if sent < 200:
                    await producer.send(topic, b"%d" % sent)
                    sent += 1
                # Cancelled at every stage: while joining, while waiting, and when records have just come.
                await asyncio.sleep(0.001 * (sent % 7))
                polling.cancel()
                try:
                    values += [int(each.value) for each in await polling]
                except asyncio.CancelledError:
                    cancelled += 1
            assert values == list(range(200))
            assert cancelled > 10

    asyncio.run(scene())


class Listener:
    """Both kinds of methods are called, in the loop."""

    def __init__(self, consumer: AsyncConsumer) -> None:
        self._consumer = consumer
        self._thread = threading.get_ident()
        self.calls: list[tuple[str, int]] = []

    async def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        await asyncio.sleep(0.01)
        self._record("assigned", partitions)

    async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        await self._consumer.commit_sync()
        self._record("revoked", partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self._record("lost", partitions)

    def _record(self, what: str, partitions: list[TopicPartition]) -> None:
        assert threading.get_ident() == self._thread
        self.calls.append((what, len(partitions)))


@PROTOCOLS
def test_members_rebalance_without_blocking_the_loop(
    quick_bootstrap: str, make_quick_topic: MakeTopic, protocol: str
) -> None:
    topic = make_quick_topic(partitions=4)
    how = {
        "bootstrap_servers": quick_bootstrap,
        "group_id": f"of-{topic}",
        "group_protocol": protocol,
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 100,
        "enable_auto_commit": False,
    }

    async def scene() -> None:
        # Both run in one loop: a member that blocked it would wait for the other forever.
        async with AsyncConsumer(**how) as first:
            listener = Listener(first)
            first.subscribe([topic], listener)

            async def owns_all() -> bool:
                await first.poll(0.05)
                return len(first.assignment()) == 4

            await until(owns_all)
            for index in range(4):
                await asyncio.to_thread(fill, quick_bootstrap, topic, 10, index)
            assert len(await read(first, 40)) == 40
            async with AsyncConsumer(**how) as second:
                second.subscribe([topic])

                async def shared() -> bool:
                    await asyncio.gather(first.poll(0.05), second.poll(0.05))
                    return len(first.assignment()) == len(second.assignment()) == 2

                await until(shared)
                committed = await second.committed([TopicPartition(topic, index) for index in range(4)])
                assert [each and each.offset for each in committed.values()] == [10] * 4
            await until(owns_all)
            assert first.group_metadata().member_id
        assert ("assigned", 4) in listener.calls
        assert "revoked" in {what for what, _ in listener.calls}
        assert "lost" not in {what for what, _ in listener.calls}

    asyncio.run(scene())


def test_a_full_buffer_is_awaited_without_blocking_the_loop(
    own_broker: BrokerProcess, topic_name: str
) -> None:
    async def scene() -> None:
        async with AsyncProducer(
            bootstrap_servers=own_broker.bootstrap,
            buffer_memory=40_000,
            batch_size=4000,
            max_block_ms=300_000,
        ) as producer:
            await producer.send_and_wait(topic_name, b"first")
            await asyncio.to_thread(own_broker.stop)

            async def send_many() -> list[Any]:
                return [await producer.send(topic_name, b"x" * 1000, partition=0) for _ in range(200)]

            sending = asyncio.create_task(send_many())

            async def is_full() -> bool:
                return producer.metrics()["waiting-threads"] == 1

            await until(is_full)
            # A send that is cancelled has sent nothing.
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await producer.send(topic_name, b"given up")
            assert producer.metrics()["waiting-threads"] == 1
            assert not sending.done()
            await asyncio.to_thread(own_broker.start)
            async with asyncio.timeout(PATIENCE_SECONDS):
                outcomes = await asyncio.gather(*await sending)
            assert [each.offset for each in outcomes] == list(range(1, 201))

    asyncio.run(scene())


def test_no_memory_and_no_metadata_within_max_block_ms(own_broker: BrokerProcess, topic_name: str) -> None:
    async def scene() -> None:
        async with AsyncProducer(bootstrap_servers=own_broker.bootstrap) as producer:
            await producer.send_and_wait(topic_name, b"first")
        how: dict[str, Any] = {"batch_size": 4000, "buffer_memory": 20_000, "max_block_ms": 300}
        async with AsyncProducer(bootstrap_servers=own_broker.bootstrap, **how) as producer:

            async def has_metadata() -> bool:
                try:
                    return bool(await producer.partitions_for(topic_name))
                except KafkaTimeoutError:
                    return False

            await until(has_metadata)
            await asyncio.to_thread(own_broker.stop)
            with pytest.raises(KafkaTimeoutError, match=r"no metadata of topic .* within max\.block\.ms"):
                await producer.send("another", b"")
            with pytest.raises(KafkaTimeoutError, match=r"buffer\.memory is full"):
                for _ in range(30):
                    await producer.send(topic_name, b"x" * 1000)
            with pytest.raises(KafkaTimeoutError, match="not all records"):
                await producer.flush(0.05)
            await producer.close(timeout=0.1)
        with pytest.raises(ClosedError):
            await producer.send(topic_name, b"")

    asyncio.run(scene())


def test_transactions(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic()

    async def scene() -> None:
        how = {"bootstrap_servers": quick_bootstrap, "transactional_id": f"of-{topic}"}
        async with (
            AsyncProducer(**how) as old,
            AsyncProducer(**how) as new,
            AsyncConsumer(
                bootstrap_servers=quick_bootstrap,
                group_id=f"of-{topic}",
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                enable_auto_commit=False,
            ) as consumer,
        ):
            await old.init_transactions()
            old.begin_transaction()
            await old.send(topic, b"undone")
            await old.abort_transaction()
            old.begin_transaction()
            await old.send(topic, b"committed")
            await old.commit_transaction()
            consumer.subscribe([topic])
            (record,) = await read(consumer, 1)
            assert record.value == b"committed"
            await new.init_transactions()
            new.begin_transaction()
            place = OffsetAndMetadata(await consumer.position(TopicPartition(topic, 0)))
            await new.send_offsets_to_transaction(
                {TopicPartition(topic, 0): place}, consumer.group_metadata()
            )
            await new.commit_transaction()
            committed = await consumer.committed([TopicPartition(topic, 0)])
            stored = committed[TopicPartition(topic, 0)]
            assert stored is not None and stored.offset == place.offset
            old.begin_transaction()
            with pytest.raises(ProducerFencedError):
                await old.send(topic, b"too late")
                await old.commit_transaction()

    asyncio.run(scene())


def test_two_tasks_a_wakeup_and_the_end(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic()

    async def scene() -> None:
        consumer = AsyncConsumer(bootstrap_servers=quick_bootstrap, group_id=f"of-{topic}")
        with pytest.raises(RuntimeError, match="subscribe to topics or assign"):
            await consumer.poll()
        consumer.subscribe([topic])
        with pytest.raises(ValueError, match="list of topics is empty"):
            consumer.subscribe([])
        polling = asyncio.create_task(consumer.poll(PATIENCE_SECONDS))
        await asyncio.sleep(0)
        with pytest.raises(ConcurrentAccessError):
            await consumer.poll()
        await asyncio.to_thread(consumer.wakeup)
        with pytest.raises(WakeupError):
            await polling
        await consumer.unsubscribe()
        assert consumer.subscription() == set()
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.close()
        await consumer.close()
        with pytest.raises(ClosedError):
            await consumer.poll()

    asyncio.run(scene())


def test_leaving_does_not_wait_for_a_rebalance_that_others_delay(
    quick_bootstrap: str, make_quick_topic: MakeTopic
) -> None:
    topic = make_quick_topic()
    how = {"bootstrap_servers": quick_bootstrap, "group_id": f"of-{topic}"}

    async def scene() -> None:
        async with AsyncConsumer(**how) as idle:
            idle.subscribe([topic])

            async def is_member() -> bool:
                await idle.poll(0.05)
                return bool(idle.assignment())

            await until(is_member)
            # From here on `idle` does not poll, so the next rebalance lasts until it does.
            async with asyncio.timeout(PATIENCE_SECONDS), AsyncConsumer(**how) as late:
                late.subscribe([topic])
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(late.poll(3600.0), 0.3)

    asyncio.run(scene())


def test_admin(quick_bootstrap: str, topic_name: str) -> None:
    async def scene() -> None:
        async with AsyncAdmin(bootstrap_servers=quick_bootstrap) as admin:
            await admin.create_topics([NewTopic(topic_name, 2)])

            async def is_known() -> bool:
                return topic_name in await admin.list_topics()

            await until(is_known)
            # Concurrent calls do not affect each other.
            topics, cluster, missing = await asyncio.gather(
                admin.describe_topics([topic_name]),
                admin.describe_cluster(),
                admin.describe_topics([f"no-{topic_name}"], timeout=PATIENCE_SECONDS),
                return_exceptions=True,
            )
            assert not isinstance(topics, BaseException) and len(topics[topic_name].partitions) == 2
            assert not isinstance(cluster, BaseException) and len(cluster.nodes) == 1
            assert isinstance(missing, AdminError)
            assert await admin.lag_of(f"no-{topic_name}") == {}
            await admin.delete_topics([topic_name])
        with pytest.raises(ClosedError):
            await admin.list_topics()
        await admin.close()

    asyncio.run(scene())


def test_a_failure_that_nobody_awaits_is_reported(quick_bootstrap: str, make_quick_topic: MakeTopic) -> None:
    topic = make_quick_topic(configs={"max.message.bytes": "1000"})

    async def scene() -> None:
        outcomes: list[Any] = []
        async with AsyncProducer(bootstrap_servers=quick_bootstrap) as producer:
            future = await producer.send(topic, b"x" * 5000)
            await producer.send(topic, b"x" * 5000, on_delivery=lambda *outcome: outcomes.append(outcome))
            cancelled = await producer.send(topic, b"small")
            cancelled.cancel()
            await producer.flush()
            with pytest.raises(KafkaError, match="LARGE"):
                await future
            assert cancelled.cancelled()
            await until(lambda: asyncio.sleep(0, bool(outcomes)))
            assert outcomes[0][0] is None and isinstance(outcomes[0][1], KafkaError)

    asyncio.run(scene())


def test_outside_of_a_loop_there_is_a_clear_error() -> None:
    for kind in (AsyncProducer, AsyncConsumer, AsyncAdmin):
        with pytest.raises(RuntimeError, match="inside a coroutine"):
            kind(bootstrap_servers="127.0.0.1:9")
