"""Partitions of a session without news: they are not read, and the answer has them as soon as they change."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.conftest import Stage
from tests.unit.broker.handlers.test_fetch_plain import ask

from barnabas.broker.fetch_reading import Reading
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

COUNT = 4
RECORDS = 6


@pytest.fixture
def filled(stage: Stage) -> Stage:
    stage.fetch_sessions = FetchSessions(stage.clock, 10, 120.0)  # type: ignore[attr-defined]
    stage.create("topic", partitions=COUNT)
    stage.append("topic", RECORDS)
    return stage


class Session:
    """A client that has read every partition to its end and knows it."""

    def __init__(self, stage: Stage, version: int) -> None:
        self.stage, self.version = stage, version
        self.epoch = self.id = 0
        self.id = self.fetch(*self._ends()).session_id

    def _ends(self) -> list[FetchPartition]:
        return [
            FetchPartition(
                partition=index,
                current_leader_epoch=0,
                fetch_offset=0 if index else RECORDS,
                partition_max_bytes=1000,
            )
            for index in range(COUNT)
        ]

    def fetch(self, *parts: FetchPartition) -> Any:
        topic = FetchTopic(topic="topic", topic_id=self.stage.image.topics["topic"].id)
        topic.partitions = list(parts)
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_id=self.id)
        request.session_epoch, request.topics = self.epoch, [topic] if parts else []
        self.epoch += 1
        return ask(self.stage, request, self.version)[1]

    def answered(self, *parts: FetchPartition) -> dict[int, int]:
        """The error code of each partition in an incremental answer."""
        answer = self.fetch(*parts)
        return {
            part.partition_index: part.error_code for each in answer.responses for part in each.partitions
        }


@pytest.mark.parametrize("version", [7, 12, 13, 17])
def test_quiet_partitions_are_not_read(filled: Stage, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    session = Session(filled, version)
    looked_at: list[int] = []
    read_one = Reading._read_one
    monkeypatch.setattr(
        Reading,
        "_read_one",
        lambda self, part, *rest: (looked_at.append(part.index), read_one(self, part, *rest)),
    )
    assert session.answered() == {}
    assert looked_at == []
    filled.append("topic")
    assert session.answered() == {0: 0}
    assert looked_at == [0]


def _offline(stage: Stage) -> None:
    stage.replicas.leader("topic", 0).log.go_offline()


def _shortened(stage: Stage) -> None:
    stage.replicas.leader("topic", 0).delete_records_before(3)


def _led_elsewhere(stage: Stage) -> None:
    placed = stage.image.topics["topic"].partitions[0]
    stage.replicas.leader("topic", 0).follow(dataclasses.replace(placed, leader=99, leader_epoch=1))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (_offline, ErrorCode.KAFKA_STORAGE_ERROR),
        (_shortened, ErrorCode.NONE),
        (_led_elsewhere, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
@pytest.mark.parametrize("version", [12, 13])
def test_a_change_of_a_quiet_partition_is_in_the_answer(
    filled: Stage, change: Callable[[Stage], None], code: ErrorCode, version: int
) -> None:
    session = Session(filled, version)
    assert session.answered() == {}
    change(filled)
    assert session.answered() == {0: code}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"current_leader_epoch": 9}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"last_fetched_epoch": 9}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"fetch_offset": RECORDS + 1}, ErrorCode.OFFSET_OUT_OF_RANGE),
        ({"fetch_offset": 2}, ErrorCode.NONE),
    ],
)
def test_a_changed_request_for_a_quiet_partition_is_answered(
    filled: Stage, fields: dict[str, int], code: ErrorCode
) -> None:
    session = Session(filled, 12)
    part = FetchPartition(partition=0, fetch_offset=RECORDS, partition_max_bytes=1000)
    assert session.answered(part) == {}
    for name, value in fields.items():
        setattr(part, name, value)
    assert session.answered(part) == {0: code}
