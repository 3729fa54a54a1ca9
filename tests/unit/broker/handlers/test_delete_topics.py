"""How DeleteTopics finds, deletes and refuses topics, by name and by id."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.ids import ZERO_UUID, random_uuid
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

VERSIONS = range(1, 7)


def by_name(*names: str) -> list[DeleteTopicState]:
    return [DeleteTopicState(name=name) for name in names]


def delete(stage: Any, *topics: DeleteTopicState, version: int = 6) -> list[Any]:
    responses: list[Any] = stage.ask(DeleteTopicsRequest(topics=list(topics)), version).responses
    return responses


@pytest.mark.parametrize("version", VERSIONS)
def test_by_name_in_every_version(stage: Any, version: int) -> None:
    stage.create("old")
    topic_id = stage.image.topic("old").id
    missing, deleted = sorted(delete(stage, *by_name("old", "gone"), version=version), key=lambda r: r.name)
    assert (deleted.name, deleted.error_code) == ("old", ErrorCode.NONE)
    assert deleted.topic_id == (topic_id if version >= 6 else ZERO_UUID)
    assert (missing.name, missing.error_code) == ("gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert bool(missing.error_message) == (version >= 5)
    assert not stage.image.topics
    assert stage.replicas.get("old", 0) is None


def test_by_id(stage: Any) -> None:
    stage.create("old")
    topic_id, unknown = stage.image.topic("old").id, random_uuid()
    results = delete(stage, DeleteTopicState(topic_id=topic_id), DeleteTopicState(topic_id=unknown))
    assert [(r.name, r.topic_id, r.error_code) for r in results] == [
        ("old", topic_id, ErrorCode.NONE),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_a_topic_named_twice_stays_and_is_answered_once(stage: Any) -> None:
    stage.create("twice")
    stage.create("once")
    results = {r.name: r.error_code for r in delete(stage, *by_name("twice", "once", "twice", "no", "no"))}
    assert results == {
        "twice": ErrorCode.INVALID_REQUEST,
        "once": ErrorCode.NONE,
        "no": ErrorCode.INVALID_REQUEST,
    }
    assert stage.image.topics.keys() == {"twice"}


def test_the_same_topic_by_name_and_by_id_stays(stage: Any) -> None:
    stage.create("both")
    topic_id = stage.image.topic("both").id
    results = delete(stage, *by_name("both"), DeleteTopicState(topic_id=topic_id))
    assert {result.error_code for result in results} == {ErrorCode.INVALID_REQUEST}
    assert "both" in stage.image.topics


def test_a_name_together_with_an_id_and_neither_of_them_are_refused(stage: Any) -> None:
    stage.create("old")
    topic_id = stage.image.topic("old").id
    results = delete(stage, DeleteTopicState(name="old", topic_id=topic_id), DeleteTopicState())
    assert [(r.name, r.topic_id, r.error_code) for r in results] == [
        ("old", topic_id, ErrorCode.INVALID_REQUEST),
        (None, ZERO_UUID, ErrorCode.INVALID_REQUEST),
    ]
    assert "old" in stage.image.topics


@pytest.mark.parametrize(
    ("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)]
)
def test_deletion_can_be_forbidden(make_stage: Any, version: int, code: ErrorCode) -> None:
    stage = make_stage(delete_topic_enable="false")
    stage.create("kept")
    results = delete(stage, *by_name("kept", "gone", "kept"), version=version)
    assert [(result.name, result.error_code) for result in results] == [("kept", code), ("gone", code)]
    assert "kept" in stage.image.topics


def test_a_topic_made_again_has_another_id(stage: Any) -> None:
    stage.create("again")
    first = stage.image.topic("again").id
    delete(stage, *by_name("again"))
    stage.create("again")
    assert stage.image.topic("again").id != first
