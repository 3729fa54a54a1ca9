"""Moving replicas between the log directories of a broker, while clients go on writing and reading."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.raw_calls import batch_of, fetch_partition, new_topic, produce_batch
from tests.support.raw_client import RawClient
from tests.support.visible_broker import VisibleBroker, visible_broker

from barnabas.broker.broker import Broker
from barnabas.errors import ErrorCode
from barnabas.ids import TopicPartition
from barnabas.records.batch import iter_headers
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest

ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS = 34, 35
NAME = "moving"
PARTITION = TopicPartition(NAME, 0)


class Stage:
    """A broker with two log directories, and one topic."""

    def __init__(self, root: Path, **overrides: str) -> None:
        self.directories = [root / "one", root / "two"]
        settings = {"log.dirs": ",".join(map(str, self.directories)), "log.segment.bytes": "1048576"}
        self.broker = visible_broker(root, settings | overrides)

    def path_of(self, running: VisibleBroker) -> Path:
        """The directory that has the partition now."""

        def look(broker: Broker) -> Path:
            log = broker.logs.get(PARTITION)
            assert log is not None
            return log.directory.parent

        return running.look(look)

    def other(self, running: VisibleBroker) -> Path:
        here = self.path_of(running)
        return next(path for path in self.directories if path != here)


def move(client: RawClient, path: Path, index: int = 0, topic: str = NAME) -> int:
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=str(path), topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])]
            )
        ]
    )
    answer = client.call(ALTER_REPLICA_LOG_DIRS, 2, request)
    code: int = answer.results[0].partitions[0].error_code
    return code


def described(client: RawClient) -> dict[str, list[tuple[int, bool, int]]]:
    """Index, whether it is a future replica, and lag, by directory."""
    answer = client.call(DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
    return {
        Path(result.log_dir).name: [
            (part.partition_index, part.is_future_key, part.offset_lag)
            for topic in result.topics
            if topic.name == NAME
            for part in topic.partitions
        ]
        for result in answer.results
    }


def wait_until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def offsets_in(client: RawClient, topic: object) -> list[int]:
    offsets: list[int] = []
    while True:
        part = fetch_partition(client, topic, offset=len(offsets))  # type: ignore[arg-type]
        found = [header.base_offset for _, header in iter_headers(part.records)]
        if not found:
            return offsets
        offsets += found


def test_a_replica_moves_while_it_is_written_and_stays_after_a_restart(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    with stage.broker as running, RawClient("127.0.0.1", running.port) as client:
        topic = new_topic(client, name=NAME)
        for _ in range(40):
            produce_batch(client, topic, batch_of(b"x" * 100_000))
        source, target = stage.path_of(running), stage.other(running)
        assert move(client, target) == ErrorCode.NONE
        written = 40
        while stage.path_of(running) != target:
            assert produce_batch(client, topic, batch_of(b"y")).base_offset == written
            written += 1
        assert produce_batch(client, topic, batch_of(b"z")).base_offset == written
        assert offsets_in(client, topic) == list(range(written + 1))
        assert described(client)[target.name] == [(0, False, 0)] and described(client)[source.name] == []
        assert not (source / str(PARTITION)).exists()
        # The replica is there already.
        assert move(client, target) == ErrorCode.NONE
    with Stage(tmp_path).broker as running, RawClient("127.0.0.1", running.port) as client:
        assert stage.path_of(running) == target
        assert running.look(lambda broker: broker.replicas.leader(NAME, 0).log.log_end_offset) == written + 1


def test_a_throttled_move_is_shown_and_can_be_given_up(tmp_path: Path) -> None:
    stage = Stage(tmp_path, **{"replica.alter.log.dirs.io.max.bytes.per.second": "1"})
    with stage.broker as running, RawClient("127.0.0.1", running.port) as client:
        topic = new_topic(client, name=NAME)
        for _ in range(30):
            produce_batch(client, topic, batch_of(b"x" * 100_000))
        source, target = stage.path_of(running), stage.other(running)
        assert move(client, target) == ErrorCode.NONE
        wait_until(lambda: [row[:2] for row in described(client)[target.name]] == [(0, True)])
        assert described(client)[source.name] == [(0, False, 0)]
        wait_until(lambda: 0 < described(client)[target.name][0][2] < 30)
        assert move(client, source) == ErrorCode.NONE
        assert described(client)[target.name] == []
        assert offsets_in(client, topic) == list(range(30))


def test_a_move_begins_again_after_a_restart(tmp_path: Path) -> None:
    stage = Stage(tmp_path, **{"replica.alter.log.dirs.io.max.bytes.per.second": "1"})
    with stage.broker as running, RawClient("127.0.0.1", running.port) as client:
        topic = new_topic(client, name=NAME)
        for _ in range(30):
            produce_batch(client, topic, batch_of(b"x" * 100_000))
        target = stage.other(running)
        assert move(client, target) == ErrorCode.NONE
        wait_until(lambda: [row[:2] for row in described(client)[target.name]] == [(0, True)])
    stage = Stage(tmp_path)
    with stage.broker as running, RawClient("127.0.0.1", running.port) as client:
        wait_until(lambda: stage.path_of(running) == target)
        assert offsets_in(client, topic) == list(range(30))
        assert [path.name for path in target.iterdir() if path.name.startswith(NAME)] == [str(PARTITION)]


@pytest.mark.parametrize(("index", "topic", "code"), [(7, NAME, "UNKNOWN_TOPIC_OR_PARTITION")])
def test_what_is_refused(tmp_path: Path, index: int, topic: str, code: str) -> None:
    stage = Stage(tmp_path)
    with stage.broker as running, RawClient("127.0.0.1", running.port) as client:
        new_topic(client, name=NAME)
        assert move(client, stage.directories[0], index, topic) == ErrorCode[code]
        assert move(client, tmp_path / "elsewhere") == ErrorCode.LOG_DIR_NOT_FOUND


def test_a_deleted_topic_ends_its_move(tmp_path: Path) -> None:
    stage = Stage(tmp_path, **{"replica.alter.log.dirs.io.max.bytes.per.second": "1"})
    with stage.broker as running, RawClient("127.0.0.1", running.port) as client:
        topic = new_topic(client, name=NAME)
        for _ in range(30):
            produce_batch(client, topic, batch_of(b"x" * 100_000))
        target = stage.other(running)
        move(client, target)
        wait_until(lambda: described(client)[target.name] != [])
        running.look(lambda broker: broker.logs.delete(PARTITION))
        running.look(lambda broker: setattr(broker.log_moves.throttle, "bytes_per_second", 1 << 40))
        wait_until(lambda: described(client)[target.name] == [])
        assert running.look(lambda broker: broker.logs.futures) == {}
