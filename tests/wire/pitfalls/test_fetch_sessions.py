"""Pitfall 6: incremental fetch sessions (KIP-227), by name and by topic id."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.support.raw_calls import FETCH, Topic, batch_of, fetch_request, new_topic, produce_batch
from tests.support.raw_client import RawClient

from barnabas.errors import ErrorCode
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.fetch import FetchRequest, ForgottenTopic

pytestmark = pytest.mark.parametrize("version", [7, 12, 13, 18])
DELETE_TOPICS = 20


class Session(NamedTuple):
    client: RawClient
    version: int
    topic: Topic
    id: int

    def fetch(self, epoch: int, *, session_id: int | None = None, **fields: Any) -> Any:
        request = FetchRequest(session_id=self.id if session_id is None else session_id, session_epoch=epoch)
        for name, value in fields.items():
            setattr(request, name, value)
        return self.client.call(FETCH, self.version, request)

    def topics_at(self, offset: int, partition: int = 0) -> Any:
        return fetch_request(self.topic, offset, partition=partition).topics


def partitions_of(response: Any) -> list[int]:
    return [partition.partition_index for topic in response.responses for partition in topic.partitions]


@pytest.fixture
def session(connect: Callable[[], RawClient], version: int) -> Session:
    """A session with three partitions; the first has one record."""
    client = connect()
    topic = new_topic(client, partitions=3)
    produce_batch(client, topic, batch_of(b"first"))
    request = fetch_request(topic)
    request.session_epoch = 0
    for partition in (1, 2):
        request.topics[0].partitions += fetch_request(topic, partition=partition).topics[0].partitions
    response = client.call(FETCH, version, request)
    assert response.error_code == 0
    assert response.session_id > 0
    assert partitions_of(response) == [0, 1, 2]
    return Session(client, version, topic, response.session_id)


def test_6_without_news_the_response_is_empty(session: Session) -> None:
    response = session.fetch(1, topics=session.topics_at(1))
    assert (response.error_code, response.session_id, response.responses) == (0, session.id, [])
    # The session remembers the offset of the request before.
    assert session.fetch(2).responses == []


def test_6_only_partitions_with_news_are_named(session: Session) -> None:
    session.fetch(1, topics=session.topics_at(1))
    produce_batch(session.client, session.topic, batch_of(b"second"), partition=2)
    response = session.fetch(2)
    assert partitions_of(response) == [2]
    (topic,) = response.responses
    assert (topic.topic_id if session.version >= 13 else topic.topic) in session.topic
    assert len(topic.partitions[0].records) > 0


def test_6_a_partition_with_the_same_offset_is_sent_again(session: Session) -> None:
    assert partitions_of(session.fetch(1)) == [0]
    assert partitions_of(session.fetch(2)) == [0]


def test_6_a_waiting_session_is_woken(connect: Callable[[], RawClient], session: Session) -> None:
    session.fetch(1, topics=session.topics_at(1))
    session.client.send(
        FETCH,
        session.version,
        FetchRequest(session_id=session.id, session_epoch=2, max_wait_ms=600_000, min_bytes=1),
    )
    assert session.client.is_silent(0.05)
    produce_batch(connect(), session.topic, batch_of(b"second"), partition=1)
    _, response = session.client.receive(FETCH, session.version)
    assert partitions_of(response) == [1]


def test_6_forgotten_partitions_are_never_named_again(session: Session) -> None:
    gone = ForgottenTopic(topic=session.topic.name, topic_id=session.topic.id, partitions=[0, 1])
    assert session.fetch(1, forgotten_topics_data=[gone]).responses == []
    for partition in range(3):
        produce_batch(session.client, session.topic, batch_of(b"news"), partition=partition)
    assert partitions_of(session.fetch(2)) == [2]


def test_6_a_partition_can_be_added(session: Session) -> None:
    other = new_topic(session.client)
    produce_batch(session.client, other, batch_of(b"other"))
    added = session.topics_at(1) + fetch_request(other).topics
    (topic,) = session.fetch(1, topics=added).responses
    assert (topic.topic_id if session.version >= 13 else topic.topic) in other


@pytest.mark.parametrize("epoch", [2, 7, 2**31 - 1])
def test_6_a_wrong_epoch_is_refused_and_the_session_stays(session: Session, epoch: int) -> None:
    response = session.fetch(epoch)
    assert (response.error_code, response.responses) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, [])
    assert session.fetch(1, topics=session.topics_at(1)).error_code == 0


def test_6_an_epoch_can_be_used_once(session: Session) -> None:
    assert session.fetch(1).error_code == 0
    assert session.fetch(1).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_6_an_unknown_session_is_refused(session: Session) -> None:
    unknown = session.fetch(1, session_id=session.id ^ 1)
    assert (unknown.error_code, unknown.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert session.fetch(1, session_id=0).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_6_the_final_epoch_closes_the_session(session: Session) -> None:
    response = session.fetch(-1, topics=session.topics_at(0))
    assert (response.error_code, response.session_id) == (0, 0)
    assert partitions_of(response) == [0]
    assert session.fetch(1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_6_epoch_0_replaces_the_session(session: Session) -> None:
    response = session.fetch(0, topics=session.topics_at(0))
    assert response.session_id not in (0, session.id)
    assert session.fetch(1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert session.fetch(1, session_id=response.session_id).error_code == 0


def test_6_librdkafka_has_no_session(session: Session) -> None:
    """Session 0, epoch -1: the request names all partitions and starts no session."""
    response = session.fetch(-1, session_id=0, topics=session.topics_at(1))
    assert (response.error_code, response.session_id, partitions_of(response)) == (0, 0, [0])


def test_6_a_session_uses_either_names_or_ids(session: Session) -> None:
    other = 12 if session.version >= 13 else 13
    request = FetchRequest(session_id=session.id, session_epoch=1)
    response = session.client.call(FETCH, other, request)
    assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_6_a_session_reports_that_its_topic_was_deleted(session: Session) -> None:
    session.fetch(1, topics=session.topics_at(1))
    state = DeleteTopicState(name=session.topic.name)
    session.client.call(DELETE_TOPICS, 6, DeleteTopicsRequest(topics=[state]))
    by_id = session.version >= 13
    expected = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (topic,) = session.fetch(2).responses
    assert [partition.error_code for partition in topic.partitions] == [expected] * 3
