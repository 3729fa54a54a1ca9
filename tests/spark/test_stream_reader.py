"""Streaming queries against a broker, without a JVM: batch by batch, as Spark asks for them."""

import json
import random
import time
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows
from tests.spark.reading import Row, rows_of, stream_reader, values
from tests.spark.topics import Topics

import barnabas
from barnabas.client.errors import KafkaError
from barnabas.ids import TopicPartition
from barnabas.spark.fetching import DataLossError
from barnabas.spark.stream import TopicStreamReader

Options = dict[str, str]
EARLIEST = {"startingOffsets": "earliest"}


class Query:
    """What Spark stores of a query: the offsets of its batches, and which batches are done."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.reader: TopicStreamReader = stream_reader(options)
        self.planned: list[Any] = []
        self.done = 0

    def restart(self) -> None:
        self.reader = stream_reader(self.options)

    def plan(self) -> bool:
        """Ask for the end of the next batch; False if there is nothing new."""
        assert self.done == len(self.planned)
        start = self.start()
        end = self.reader.latestOffset(start, self.reader.getDefaultReadLimit())
        if self.planned and end == start:
            return False
        self.planned.append(json.loads(json.dumps(end)))
        return True

    def start(self) -> Any:
        return (
            self.planned[self.done - 1] if self.done else json.loads(json.dumps(self.reader.initialOffset()))
        )

    def run(self) -> list[Row]:
        """Run the batch that was planned last."""
        end = self.planned[self.done]
        rows = rows_of(self.reader, self.reader.partitions(self.start(), end))
        self.done += 1
        return rows

    def step(self) -> list[int]:
        return values(self.run()) if self.plan() else []

    def drain(self) -> list[list[int]]:
        batches = []
        while self.plan():
            batches.append(values(self.run()))
        return batches


def test_batches_follow_each_other(topics: Topics, topic: str, options: Options) -> None:
    topics.numbers(topic, 0, 3)
    query = Query(options | EARLIEST)
    assert query.step() == [0, 1, 2]
    topics.numbers(topic, 3, 5, partition=1)
    assert query.step() == [3, 4]
    assert not query.plan()
    query.restart()
    topics.numbers(topic, 5, 6)
    assert query.step() == [5]


def test_a_new_query_begins_at_the_end(topics: Topics, topic: str, options: Options) -> None:
    topics.numbers(topic, 0, 3)
    query = Query(options)
    assert query.step() == []
    topics.numbers(topic, 3, 5)
    assert query.step() == [3, 4]


def test_a_first_batch_that_failed_is_the_same_after_a_restart(
    topics: Topics, topic: str, options: Options
) -> None:
    topics.numbers(topic, 0, 100)
    query = Query(options)
    initial = query.reader.initialOffset()
    topics.numbers(topic, 100, 110)
    assert query.reader.initialOffset() == initial
    query.plan()
    query.restart()
    topics.numbers(topic, 110, 150)
    assert values(query.run()) == list(range(100, 110)), "begun at the end, and not at the end of today"
    assert query.step() == list(range(110, 150))


def test_a_query_that_was_never_planned_begins_where_it_began(
    topics: Topics, topic: str, options: Options
) -> None:
    group = f"group-{topic}"
    topics.numbers(topic, 0, 100)
    query = Query(options | {"commitOffsets": group})
    query.reader.initialOffset()
    assert topics.committed(group)[TopicPartition(topic, 0)] == 100
    topics.numbers(topic, 100, 110)
    query.restart()
    assert query.step() == list(range(100, 110))
    query.plan()
    new = Query(options | {"commitOffsets": group})
    topics.numbers(topic, 110, 120)
    assert new.step() == [], (
        "a new query of the same group begins at the start option after the first has finished a batch"
    )


def test_with_another_start_option_the_offsets_of_the_group_are_ignored(
    topics: Topics, topic: str, options: Options
) -> None:
    group = {"commitOffsets": f"group-{topic}"}
    topics.numbers(topic, 0, 4)
    Query(options | group).reader.initialOffset()
    assert Query(options | group | EARLIEST).step() == [0, 1, 2, 3]


def test_the_group_learns_what_is_done(topics: Topics, topic: str, options: Options) -> None:
    group = f"group-{topic}"
    query = Query(options | EARLIEST | {"commitOffsets": group, "maxOffsetsPerTrigger": "4"})
    topics.numbers(topic, 0, 10)
    query.step()
    query.plan()
    assert topics.committed(group) == {TopicPartition(topic, 0): 4, TopicPartition(topic, 1): 0}
    query.run()
    assert topics.committed(group)[TopicPartition(topic, 0)] == 4, "a batch is done when the next is planned"
    query.plan()
    assert topics.committed(group)[TopicPartition(topic, 0)] == 8


def test_a_group_that_others_use_is_refused(topics: Topics, topic: str, options: Options) -> None:
    group = f"group-{topic}"
    with barnabas.Consumer(bootstrap_servers=topics.bootstrap, group_id=group) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.2)
        with pytest.raises(KafkaError, match="because the group has members"):
            Query(options | {"commitOffsets": group}).reader.initialOffset()


def test_offsets_per_batch_are_capped(topics: Topics, topic: str, options: Options) -> None:
    topics.numbers(topic, 0, 9)
    topics.numbers(topic, 9, 10, partition=1)
    query = Query(options | EARLIEST | {"maxOffsetsPerTrigger": "5"})
    assert query.reader.getDefaultReadLimit() == ReadMaxRows(5)
    batches = query.drain()
    assert sorted(number for batch in batches for number in batch) == list(range(10))
    assert [len(batch) for batch in batches] == [5, 5]


def test_a_trigger_without_a_limit_reads_everything(topics: Topics, topic: str, options: Options) -> None:
    topics.numbers(topic, 0, 9)
    reader = stream_reader(options | EARLIEST | {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "2"})
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert end[topic] == {"0": 9, "1": 0}


def test_bytes_per_batch_are_capped(topics: Topics, topic: str, options: Options) -> None:
    for _ in range(10):
        topics.put(topic, [b"7" * 1000] * 10)
    query = Query(options | EARLIEST | {"maxBytesPerTrigger": "25k"})
    assert query.reader.getDefaultReadLimit() == ReadMaxBytes(25 * 1024)
    sizes = [len(batch) for batch in query.drain()]
    assert sum(sizes) == 100
    assert all(20 <= size <= 26 for size in sizes[:-1])


def test_a_batch_waits_for_enough_records_but_not_forever(
    topics: Topics, topic: str, options: Options
) -> None:
    wait = {"minOffsetsPerTrigger": "5", "maxTriggerDelay": "1h"}
    query = Query(options | EARLIEST | wait)
    assert query.reader.getDefaultReadLimit() == ReadMinRows(5)
    assert query.step() == []
    topics.numbers(topic, 0, 3)
    assert not query.plan()
    topics.numbers(topic, 3, 6)
    assert query.step() == list(range(6))
    hasty = Query(options | EARLIEST | wait | {"maxTriggerDelay": "1ms"})
    time.sleep(0.01)
    assert hasty.step() == list(range(6))


def test_available_now_stops_where_the_topics_ended_at_its_start(
    topics: Topics, topic: str, options: Options
) -> None:
    topics.numbers(topic, 0, 6)
    query = Query(options | EARLIEST | {"maxOffsetsPerTrigger": "4", "minOffsetsPerTrigger": "3"})
    query.reader.prepareForTriggerAvailableNow()
    topics.numbers(topic, 6, 9)
    assert query.drain() == [[0, 1, 2, 3], [4, 5]]
    assert query.reader.reportLatestOffset() == {topic: {"0": 6, "1": 0}}
    query.restart()
    assert query.step() == [6, 7, 8]


def test_the_latest_offsets_are_reported(topics: Topics, topic: str, options: Options) -> None:
    query = Query(options | EARLIEST | {"maxOffsetsPerTrigger": "2"})
    assert query.reader.reportLatestOffset() is None
    topics.numbers(topic, 0, 9)
    query.plan()
    assert query.reader.reportLatestOffset() == {topic: {"0": 9, "1": 0}}


def test_new_partitions_are_read_from_their_first_record(
    topics: Topics, topic: str, options: Options
) -> None:
    query = Query(options)
    query.step()
    cached = Query(options | {"partition.metadata.cache.ttl.ms": "3600000"})
    cached.step()
    topics.grow(topic, 3)
    topics.numbers(topic, 0, 4, partition=2)
    assert query.step() == [0, 1, 2, 3]
    assert cached.step() == []


def test_a_new_topic_that_matches_is_read(topics: Topics, topic: str, options: Options) -> None:
    servers = {"kafka.bootstrap.servers": options["kafka.bootstrap.servers"]}
    query = Query(servers | {"subscribePattern": f"{topic}-new.*"})
    assert query.step() == []
    made = topics.make(f"{topic}-new", 1)
    topics.numbers(made, 0, 3)
    assert query.step() == [0, 1, 2]


def test_retention_that_overtakes_a_query(topics: Topics, topic: str, options: Options) -> None:
    strict = Query(options | EARLIEST | {"maxOffsetsPerTrigger": "2"})
    lenient = Query(strict.options | {"failOnDataLoss": "false", "maxOffsetsPerTrigger": "100"})
    topics.numbers(topic, 0, 10)
    assert strict.step() == [0, 1]
    assert lenient.plan()
    topics.cut(topic, 7)
    strict.plan()
    with pytest.raises(DataLossError, match=rf"The records of {topic}-0 from offset 2 to") as caught:
        strict.run()
    assert "failOnDataLoss=false" in str(caught.value)
    assert values(lenient.run()) == [7, 8, 9]


def test_a_topic_that_is_deleted(topics: Topics, topic: str, options: Options) -> None:
    strict = Query(options | EARLIEST)
    lenient = Query(options | EARLIEST | {"failOnDataLoss": "false"})
    topics.numbers(topic, 0, 3)
    assert strict.step() == lenient.step() == [0, 1, 2]
    topics.admin.delete_topics([topic])
    with pytest.raises(DataLossError, match=rf"{topic}-0, {topic}-1 does not exist any more"):
        strict.plan()
    assert lenient.step() == []
    topics.make(topic)
    topics.numbers(topic, 3, 5)
    assert lenient.step() == [3, 4]


def test_a_topic_that_was_created_again_has_its_own_error(
    topics: Topics, topic: str, options: Options
) -> None:
    query = Query(options | EARLIEST | {"fetchOffset.numRetries": "1"})
    topics.numbers(topic, 0, 9)
    query.step()
    topics.admin.delete_topics([topic])
    topics.make(topic)
    topics.numbers(topic, 0, 2)
    query.plan()
    with pytest.raises(DataLossError, match="ends at offset 2, before offset 9"):
        query.run()


@pytest.mark.parametrize("seed", [1, 2])
def test_random_crashes_lose_and_repeat_nothing(
    topics: Topics, topic: str, options: Options, seed: int
) -> None:
    """Records come, batches are planned and run, partitions are added, the query is killed at any time."""
    chance = random.Random(seed)
    limits = {"maxOffsetsPerTrigger": "7", "maxRecordsPerPartition": "3", "commitOffsets": f"group-{topic}"}
    limits["maxPartitions"] = str(seed)
    topics.numbers(topic, 0, 3)
    query = Query(options | limits | {"startingOffsets": "-2"})
    query.reader.initialOffset()
    written, partitions, read = 3, 2, []
    for _ in range(60):
        action = chance.choice(("write", "write", "plan", "run", "run", "crash", "grow"))
        if action == "write":
            count = chance.randrange(6)
            topics.numbers(topic, written, written + count, partition=chance.randrange(partitions))
            written += count
        elif action == "plan" and query.done == len(query.planned):
            query.plan()
        elif action == "run" and query.done < len(query.planned):
            planned = query.reader.partitions(query.start(), query.planned[query.done])
            if chance.random() < 0.5:
                # Killed when everything was read, but before Spark stored that.
                lost = values(rows_of(query.reader, planned))
                query.restart()
                assert values(rows_of(query.reader, planned)) == lost
            read += values(query.run())
        elif action == "crash":
            query.restart()
        elif action == "grow" and partitions < 4:
            partitions += 1
            topics.grow(topic, partitions)
    if query.done < len(query.planned):
        read += values(query.run())
    read += [number for batch in query.drain() for number in batch]
    assert sorted(read) == list(range(1, written)), "from the second record on, as -2 said at the beginning"
