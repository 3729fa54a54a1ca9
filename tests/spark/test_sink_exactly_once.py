"""Exactly once, step by step, against a real broker: replays, crashes between the steps, zombies, gaps,
markers of others. The writers are driven as Spark's workers drive them."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.topics import Topics
from tests.spark.writing import HEADERS, Query, committed_records, committed_values, numbers, rows, run_job

from barnabas.client.errors import KafkaError, ProducerFencedError
from barnabas.client.types import OffsetAndMetadata
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.spark.options import OptionError
from barnabas.spark.sink import encoding
from barnabas.spark.sink.encoding import Encoded
from barnabas.spark.sink.markers import MarkerError
from barnabas.spark.sink.publishing import Publisher

ROOT = Path(__file__).parents[2]
STEPS = ("fence", "marker", "begin", "produce", "mark", "end")


class Killed(BaseException):
    """The driver is killed: none of its code runs any more, not even error handlers."""


@pytest.fixture
def exact(topics: Topics, topic: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": topics.bootstrap,
        "topic": topic,
        "delivery": "exactly-once",
        "transactional.id": f"id of {topic}",
    }


@pytest.fixture
def seen(topics: Topics, topic: str) -> Callable[[], list[int]]:
    return lambda: committed_values(topics, topic)


def die(monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool, error: type[BaseException]) -> None:
    """Make the next commit end before or after a step."""
    real = getattr(Publisher, step)

    def step_and_die(self: Publisher, *arguments: Any) -> Any:
        if after:
            real(self, *arguments)
        raise error(f"{'after' if after else 'before'} {step}")

    monkeypatch.setattr(Publisher, step, step_and_die)


def test_batches_are_written_once_however_often_they_are_tried(
    exact: dict[str, str], seen: Callable[[], list[int]], topics: Topics, topic: str
) -> None:
    query = Query(exact)
    query.run(0, [numbers(0, 10)], [numbers(10, 20), numbers(20, 30)])
    assert seen() == list(range(30))
    query.run(0, [numbers(0, 10)], [numbers(10, 30)])
    query.run(1, [numbers(30, 35)], [])
    query.run(1, [numbers(30, 35)], [])
    assert seen() == list(range(35))
    marker = topics.admin.list_consumer_group_offsets(exact["transactional.id"])
    assert {where: committed.offset for where, committed in marker.items()} == {TopicPartition(topic, 0): 2}
    assert '"queryId": "query-1"' in marker[TopicPartition(topic, 0)].metadata


@pytest.mark.parametrize("error", [Killed, RuntimeError])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_a_driver_that_dies_at_any_step_leaves_all_or_nothing(
    step: str,
    after: bool,
    error: type[BaseException],
    exact: dict[str, str],
    seen: Callable[[], list[int]],
) -> None:
    query = Query(exact)
    query.run(0, [numbers(0, 4)])
    messages = query.write([numbers(4, 9)], [numbers(9, 12)], batch=1)
    with pytest.MonkeyPatch.context() as patch:
        die(patch, step, after=after, error=error)
        with pytest.raises(error):
            query.commit(messages, 1)
        query.writer().abort(messages, 1)
    restarted = Query(exact)
    # The tasks may produce other rows now: the first written batch counts.
    restarted.run(1, [numbers(4, 12)])
    restarted.run(2, [numbers(12, 14)])
    assert seen() == list(range(14))


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_driver_that_is_killed_at_any_step_leaves_all_or_nothing(
    step: str, when: str, exact: dict[str, str], seen: Callable[[], list[int]]
) -> None:
    """The same with a real process that ends, with its connections."""
    command = [sys.executable, "-m", "tests.spark.dying_driver"]
    command += [exact["kafka.bootstrap.servers"], exact["topic"], step, when]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    Query(exact).run(1, [numbers(10, 1000)])
    Query(exact).run(2, [numbers(1000, 1005)])
    assert seen() == list(range(1005))


def test_readers_need_not_wait_for_a_transaction_that_failed(
    exact: dict[str, str], seen: Callable[[], list[int]], topics: Topics, topic: str
) -> None:
    query = Query(exact)
    with pytest.MonkeyPatch.context() as patch:
        die(patch, "mark", after=False, error=RuntimeError)
        with pytest.raises(RuntimeError):
            query.run(0, [numbers(0, 9)])
    topics.numbers(topic, 100, 103)
    assert seen() == [100, 101, 102]


def test_of_two_drivers_the_older_one_is_fenced(
    exact: dict[str, str], seen: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older driver stops before each of its steps until the newer one has written the batch."""
    for number, step in enumerate(("begin", "produce", "mark", "end")):
        old, new = Query(exact), Query(exact)
        batch = [numbers(number * 10, number * 10 + 10)]
        messages = old.write(batch, batch=number)
        real = getattr(Publisher, step)

        def overtaken(
            self: Publisher, *arguments: Any, run: Any = (new, number, batch), real: Any = real
        ) -> None:
            monkeypatch.undo()
            run[0].run(run[1], run[2])
            real(self, *arguments)

        monkeypatch.setattr(Publisher, step, overtaken)
        with pytest.raises(ProducerFencedError):
            old.commit(messages, number)
        assert seen() == list(range(number * 10 + 10)), step
        # Started again, the older one finds that all is done.
        old.commit(messages, number)
        assert seen() == list(range(number * 10 + 10)), step


def test_a_zombie_cannot_write_after_the_marker_was_read(
    exact: dict[str, str], seen: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sink fences before it reads the marker: in the other order, both would write."""
    old, new = Query(exact), Query(exact)
    messages = old.write([numbers(0, 10)])
    real = Publisher.fence

    def late(self: Publisher) -> None:
        monkeypatch.undo()
        new.run(0, [numbers(0, 10)])
        real(self)

    monkeypatch.setattr(Publisher, "fence", late)
    old.commit(messages, 0)
    assert seen() == list(range(10))


def test_a_gap_is_an_error_unless_an_option_allows_it(
    exact: dict[str, str], seen: Callable[[], list[int]]
) -> None:
    with pytest.raises(MarkerError, match=r"Batch 3 follows batch 2, but there is no marker .*continue"):
        Query(exact).run(3, [numbers(0, 5)])
    assert seen() == []
    options = {**exact, "onMissingMarker": "continue"}
    Query(options).run(3, [numbers(0, 5)])
    with pytest.raises(MarkerError, match="the marker is for batch 3"):
        Query(exact).run(5, [numbers(5, 9)])
    Query(exact).run(4, [numbers(5, 7)])
    assert seen() == list(range(7))
    Query(options).run(9, [numbers(7, 8)])
    assert seen() == list(range(8))


def test_a_query_with_a_new_checkpoint_is_refused_unless_an_option_allows_it(
    exact: dict[str, str], seen: Callable[[], list[int]]
) -> None:
    Query(exact).run(0, [numbers(0, 5)])
    Query(exact).run(1, [numbers(5, 6)])
    other = Query(exact, name="query-2")
    with pytest.raises(MarkerError, match=r"query-1, for its batch 1; this is the query query-2.*replace"):
        other.run(0, [numbers(6, 9)])
    assert seen() == list(range(6))
    replacing = Query({**exact, "onForeignMarker": "replace"}, name="query-2")
    replacing.run(0, [numbers(6, 9)])
    replacing.run(0, [numbers(6, 9)])
    other.run(1, [numbers(9, 11)])
    assert seen() == list(range(11))
    with pytest.raises(MarkerError):
        Query(exact).run(2, [numbers(11, 12)])


def test_replacing_another_query_does_not_hide_a_missing_batch(
    exact: dict[str, str], seen: Callable[[], list[int]]
) -> None:
    Query(exact).run(0, [numbers(0, 5)])
    with pytest.raises(MarkerError, match="Batch 4 follows batch 3"):
        Query({**exact, "onForeignMarker": "replace"}, name="query-2").run(4, [numbers(5, 6)])
    assert seen() == list(range(5))


def test_a_group_of_a_consumer_is_not_taken_for_a_marker(
    exact: dict[str, str], topics: Topics, topic: str
) -> None:
    where = TopicPartition(topic, 0)
    topics.admin.alter_consumer_group_offsets(exact["transactional.id"], {where: OffsetAndMetadata(7, "")})
    with pytest.raises(MarkerError, match="belongs to a consumer"):
        Query(exact).run(0, [numbers(0, 5)])


def test_batches_without_rows_or_tasks_keep_the_marker_whole(
    exact: dict[str, str], seen: Callable[[], list[int]]
) -> None:
    query = Query(exact)
    query.run(0)
    query.run(1, [numbers(0, 0)], [])
    query.run(2)
    query.run(3, [numbers(0, 3)])
    with pytest.raises(MarkerError):
        Query(exact, name="query-2").run(4, [numbers(3, 4)])
    assert seen() == list(range(3))


def test_rows_name_their_topics_in_one_transaction(
    exact: dict[str, str], topics: Topics, topic: str, seen: Callable[[], list[int]]
) -> None:
    other = topics.make(f"{topic}-other", 1)
    batch = rows(topic=pa.array([other, topic, other]), value=pa.array(["1", "2", "3"]))
    options = {name: text for name, text in exact.items() if name != "topic"} | {"markerTopic": topic}
    query = Query(options, batch.schema)
    for _ in range(2):
        query.run(0, [batch])
    assert (seen(), committed_values(topics, other, 1)) == ([2], [1, 3])


@pytest.mark.parametrize("compression", ["none", "gzip", "lz4", "zstd"])
def test_records_are_whole(exact: dict[str, str], topics: Topics, topic: str, compression: str) -> None:
    batch = rows(
        key=pa.array([b"a", None], pa.binary()),
        value=pa.array([None, "text"], pa.string()),
        headers=pa.array([[("h", b"1"), ("h", None)], None], HEADERS),
        partition=pa.array([1, 1], pa.int32()),
    )
    Query({**exact, "kafka.compression.type": compression}, batch.schema).run(0, [batch])
    first, second = committed_records(topics.bootstrap, topic)
    assert (first.key, first.value, list(first.headers)) == (b"a", None, [("h", b"1"), ("h", None)])
    assert (second.key, second.value, list(second.headers)) == (None, b"text", [])


def test_many_batches_of_a_partition_keep_their_order(
    exact: dict[str, str], topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "PORTION_BYTES", 10_000)
    tasks = [[_at_partition_0(first, first + 500) for first in (start, start + 500)] for start in (0, 1000)]
    Query({**exact, "kafka.batch.size": "1000"}, tasks[0][0].schema).run(0, *tasks)
    assert [int(record.value) for record in committed_records(topics.bootstrap, topic)] == list(range(2000))


def _at_partition_0(first: int, last: int) -> pa.RecordBatch:
    texts = [str(number) for number in range(first, last)]
    return rows(value=pa.array(texts), partition=pa.array([0] * len(texts), pa.int32()))


def test_partitions_and_groups_are_announced_to_clusters_with_old_transactions(
    exact: dict[str, str], seen: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.client.producer.transactions.IMPLICIT_ADD_FROM", 99)
    query = Query(exact)
    query.run(0, [numbers(0, 10)], [numbers(10, 20)])
    for step in ("mark", "end"):
        with pytest.MonkeyPatch.context() as patch:
            die(patch, step, after=False, error=Killed)
            with pytest.raises(Killed):
                query.run(1, [numbers(20, 30)])
    query.run(1, [numbers(20, 30)])
    query.run(1, [numbers(20, 30)])
    run_job(exact, [numbers(30, 35)])
    assert seen() == list(range(35))


def test_a_job_is_one_transaction(exact: dict[str, str], seen: Callable[[], list[int]]) -> None:
    run_job(exact, [numbers(0, 5)], [numbers(5, 9)])
    assert seen() == list(range(9))
    with pytest.MonkeyPatch.context() as patch:
        die(patch, "end", after=False, error=Killed)
        with pytest.raises(Killed):
            run_job(exact, [numbers(9, 12)])
    run_job(exact, [numbers(9, 12)])
    run_job(exact, [numbers(0, 0)])
    assert seen() == list(range(12))


def test_a_batch_that_the_topic_does_not_take_is_an_error_and_nothing_is_seen(
    topics: Topics, exact: dict[str, str]
) -> None:
    small = topics.make(f"small-{exact['topic']}", 2, max_message_bytes="2000")
    query = Query({**exact, "topic": small})
    with pytest.raises(KafkaError, match=r"lower kafka\.batch\.size") as caught:
        query.run(0, [numbers(0, 5000)])
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    Query({**exact, "topic": small, "kafka.batch.size": "1500"}).run(0, [numbers(0, 5000)])
    assert committed_values(topics, small) == list(range(5000))
    with pytest.raises(KafkaError, match=r"max\.request\.size"):
        Query(exact, rows(value=pa.array(["x"])).schema).run(0, [rows(value=pa.array(["x" * 2_000_000]))])


# ---- files


def staged(exact: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {**exact, "stagingBytes": "500", "checkpointLocation": f"file://{tmp_path}/check"}


def files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in tmp_path.rglob("*.records"))


def test_large_results_go_through_files_that_are_removed(
    exact: dict[str, str], seen: Callable[[], list[int]], tmp_path: Path
) -> None:
    query = Query(staged(exact, tmp_path))
    messages = query.write([numbers(0, 3)], [numbers(3, 1000)], batch=0)
    small, large = messages
    assert isinstance(small, Encoded)
    assert isinstance(large, Encoded)
    assert not small.path
    assert large.path.startswith(f"{tmp_path}/check.staging/streams/")
    assert all(part.data is None for part in large.parts)
    # A task that was tried twice has left a file of its own.
    query.write([numbers(3, 1000)], batch=0)
    assert len(files(tmp_path)) == 2
    query.commit(messages, 0)
    assert seen() == list(range(1000))
    assert files(tmp_path) == []


def test_files_of_a_later_batch_are_left_alone(
    exact: dict[str, str], seen: Callable[[], list[int]], tmp_path: Path
) -> None:
    query = Query(staged(exact, tmp_path))
    first = query.write([numbers(0, 500)], batch=0)
    second = query.write([numbers(500, 1000)], batch=1)
    query.commit(first, 0)
    assert len(files(tmp_path)) == 1
    query.commit(second, 1)
    assert seen() == list(range(1000))


def test_a_file_that_the_driver_does_not_see_is_an_error_and_nothing_is_seen(
    exact: dict[str, str], seen: Callable[[], list[int]], tmp_path: Path
) -> None:
    query = Query(staged(exact, tmp_path))
    messages = query.write([numbers(0, 500)], batch=0)
    next(tmp_path.rglob("*.records")).unlink()
    with pytest.raises(FileNotFoundError, match="a directory that tasks and driver share"):
        query.commit(messages, 0)
    messages = query.write([numbers(0, 500)], batch=0)
    path = next(tmp_path.rglob("*.records"))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(EOFError, match="is incomplete"):
        query.commit(messages, 0)
    assert seen() == []


def test_a_checkpoint_that_is_no_directory_asks_for_one(exact: dict[str, str]) -> None:
    query = Query({**exact, "stagingBytes": "500", "checkpointLocation": "s3a://bucket/check"})
    query.run(0, [numbers(0, 5)])
    with pytest.raises(OptionError, match="set stagingDir"):
        query.write([numbers(0, 500)], batch=1)


def test_files_of_jobs_are_removed(
    exact: dict[str, str], seen: Callable[[], list[int]], tmp_path: Path
) -> None:
    options = {**exact, "stagingBytes": "500", "stagingDir": str(tmp_path)}
    run_job(options, [numbers(0, 500)])
    assert seen() == list(range(500))
    assert files(tmp_path) == []
