"""A disk without free space: what needs space gets an error, the rest goes on, nobody is disconnected."""

import errno
from pathlib import Path
from typing import Any

import pytest
from tests.support.faulty_disk import FaultyDisk
from tests.support.known_names import known_names
from tests.support.largest_frames import frame_of, shapes_of
from tests.support.raw_calls import METADATA, new_topic
from tests.support.raw_client import RawClient
from tests.support.visible_broker import visible_broker

from barnabas.broker.apis import ROWS
from barnabas.errors import ErrorCode
from barnabas.metadata.files import RealFiles
from barnabas.wire.apis import api_of
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

CREATE_TOPICS = 19
ELEMENTS = 5
ANSWER_SECONDS_MAX = 20.0


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


def fill(disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on nothing can be written, in the logs and in the metadata."""

    def no_space(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for operation in ("pwrite", "mkdir"):
        disk.fail(operation, errno.ENOSPC)
    monkeypatch.setattr(RealFiles, "write", no_space)


def test_a_client_that_asks_for_metadata_stays_connected(
    tmp_path: Path, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with visible_broker(tmp_path, disk=disk) as broker, RawClient("127.0.0.1", broker.port) as client:
        new_topic(client, name="there")
        fill(disk, monkeypatch)
        topics = [MetadataRequestTopic(name="there"), MetadataRequestTopic(name="new")]
        answer = client.call(METADATA, 9, MetadataRequest(topics=topics))
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [
            ("there", ErrorCode.NONE),
            ("new", ErrorCode.KAFKA_STORAGE_ERROR),
        ]
        new = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
        (created,) = client.call(CREATE_TOPICS, 7, CreateTopicsRequest(topics=[new], timeout_ms=1000)).topics
        assert created.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.heal()
        monkeypatch.undo()
        (topic,) = client.call(METADATA, 9, MetadataRequest(topics=topics[1:])).topics
        assert topic.error_code == ErrorCode.NONE


def test_every_api_answers(tmp_path: Path, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    with visible_broker(tmp_path, {"group.initial.rebalance.delay.ms": "0"}, disk) as broker:
        with RawClient("127.0.0.1", broker.port) as client:
            known = known_names(client)
        fill(disk, monkeypatch)
        for row in ROWS.values():
            api = api_of(row.key)
            assert api is not None
            for shape in shapes_of(api.request, row.versions[1], ELEMENTS):
                frame = frame_of(api, row.versions[1], shape, known.of_api(row.name))
                with RawClient("127.0.0.1", broker.port, timeout_seconds=ANSWER_SECONDS_MAX) as client:
                    client.send_bytes(frame)
                    try:
                        client.receive_frame()
                    except ConnectionError:
                        closed.append(f"{row.name}, {shape.label}")
        disk.heal()
        monkeypatch.undo()
    assert not closed
