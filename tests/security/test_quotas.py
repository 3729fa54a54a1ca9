"""Clients that use more than their quota are throttled: by the time that Kafka's arithmetic gives, and muted.

The brokers here measure over three windows of a second. So a client that has been quiet may use up the quota
of two seconds at once."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.raw_calls import FETCH, PRODUCE, Topic, batch_of, fetch_request, new_topic, produce_request
from tests.support.raw_client import RawClient

from barnabas.client.admin import Admin
from barnabas.errors import ErrorCode
from barnabas.security.quotas import CLIENT_ID, USER, Entity, entity_of
from barnabas.testing import Broker, Cluster
from barnabas.wire.messages import create_partitions, create_topics, delete_topics, metadata

WINDOWS = 3
WINDOW_SETTINGS = {"quota.window.num": str(WINDOWS), "quota.window.size.seconds": "1"}
QUIET_SECONDS = WINDOWS - 1
ANONYMOUS = "ANONYMOUS"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(WINDOW_SETTINGS) as broker:
        yield broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    """Removes all quotas afterwards."""
    with Admin(bootstrap_servers=broker.bootstrap, client_id="the-admin") as admin:
        yield admin
        quotas = admin.describe_client_quotas()
        admin.alter_client_quotas({entity: dict.fromkeys(values) for entity, values in quotas.items()})


def connect(broker: Broker, client_id: str) -> RawClient:
    return RawClient("127.0.0.1", broker.port, client_id=client_id)


@pytest.fixture
def topic(broker: Broker) -> Topic:
    with connect(broker, "the-admin") as client:
        return new_topic(client)


def client_entity(client_id: str | None) -> Entity:
    return ((CLIENT_ID, client_id),)


def produced(client: RawClient, topic: Topic, size: int, acks: int = -1) -> tuple[int, int]:
    """The bytes of the request and the throttle time of its answer."""
    request = produce_request(topic, batch_of(bytes(size)), acks=acks)
    frame_bytes = len(client.encode(PRODUCE, 9, request)) - 4
    return frame_bytes, client.call(PRODUCE, 9, request).throttle_time_ms


# ---- produce


def test_the_throttle_time_is_what_brings_the_rate_down_to_the_quota(
    broker: Broker, admin: Admin, topic: Topic
) -> None:
    rate = 20_000
    admin.alter_client_quotas({client_entity("writer"): {"producer_byte_rate": rate}})
    with connect(broker, "writer") as client:
        began = time.monotonic()
        total = throttle_ms = requests = 0
        while not throttle_ms:
            size, throttle_ms = produced(client, topic, 9_000)
            total, requests = total + size, requests + 1
        elapsed = time.monotonic() - began
        # The first requests are within the quota of the two seconds that count as quiet.
        assert requests >= 5
        wait_if_at_once = total / rate - QUIET_SECONDS
        assert wait_if_at_once - elapsed - 0.01 <= throttle_ms / 1000 <= wait_if_at_once + 0.01
        # The answer came at once; the next one comes only after the throttle time.
        answered = time.monotonic()
        produced(client, topic, 1)
        assert time.monotonic() - answered >= throttle_ms / 1000 - 0.05


def test_others_are_not_throttled(broker: Broker, admin: Admin, topic: Topic) -> None:
    admin.alter_client_quotas({client_entity("writer"): {"producer_byte_rate": 1000}})
    with connect(broker, "writer") as writer, connect(broker, "other") as other:
        assert produced(writer, topic, 20_000)[1] > 0
        for _ in range(5):
            assert produced(other, topic, 20_000)[1] == 0


def test_what_needs_no_answer_is_throttled_too(broker: Broker, admin: Admin, topic: Topic) -> None:
    admin.alter_client_quotas({client_entity("writer"): {"producer_byte_rate": 10_000}})
    with connect(broker, "writer") as client:
        # 30 KB are one second more than the quiet time.
        client.send(PRODUCE, 9, produce_request(topic, batch_of(bytes(30_000)), acks=0))
        began = time.monotonic()
        client.call(3, 12, metadata.MetadataRequest(topics=[]))
        assert time.monotonic() - began >= 0.9


def test_a_quota_that_is_set_or_removed_holds_from_then_on(
    broker: Broker, admin: Admin, topic: Topic
) -> None:
    """On connections that are open already, too: they have used the short way of Produces before."""
    quota = client_entity("writer")
    with connect(broker, "writer") as client:
        assert produced(client, topic, 50_000)[1] == 0
        admin.alter_client_quotas({quota: {"producer_byte_rate": 40_000}})
        assert produced(client, topic, 90_000)[1] > 0
        admin.alter_client_quotas({quota: {"producer_byte_rate": None}})
        for _ in range(5):
            assert produced(client, topic, 90_000)[1] == 0
        admin.alter_client_quotas({quota: {"producer_byte_rate": 1e9}})
        assert produced(client, topic, 90_000)[1] == 0


# From the least to the most specific, for the user ANONYMOUS and the client id "writer".
LEVELS: list[Entity] = [
    entity_of(parts)
    for parts in (
        [(CLIENT_ID, None)],
        [(CLIENT_ID, "writer")],
        [(USER, None)],
        [(USER, None), (CLIENT_ID, None)],
        [(USER, None), (CLIENT_ID, "writer")],
        [(USER, ANONYMOUS)],
        [(USER, ANONYMOUS), (CLIENT_ID, None)],
        [(USER, ANONYMOUS), (CLIENT_ID, "writer")],
    )
]


def test_the_most_specific_quota_counts(broker: Broker, admin: Admin, topic: Topic) -> None:
    is_throttled = False
    for level in LEVELS:
        is_throttled = not is_throttled
        admin.alter_client_quotas({level: {"producer_byte_rate": 1000 if is_throttled else 1e12}})
        with connect(broker, "writer") as client:
            assert (produced(client, topic, 30_000)[1] > 0) == is_throttled, level


def test_clients_of_a_user_share_its_quota(broker: Broker, admin: Admin, topic: Topic) -> None:
    admin.alter_client_quotas({((USER, ANONYMOUS),): {"producer_byte_rate": 30_000}})
    with connect(broker, "one") as one, connect(broker, "another") as another:
        assert produced(one, topic, 40_000)[1] == 0
        assert produced(another, topic, 40_000)[1] > 0


def test_clients_with_different_ids_do_not_share_a_default_quota(
    broker: Broker, admin: Admin, topic: Topic
) -> None:
    admin.alter_client_quotas({client_entity(None): {"producer_byte_rate": 30_000}})
    with connect(broker, "one") as one, connect(broker, "another") as another:
        assert produced(one, topic, 40_000)[1] == 0
        assert produced(another, topic, 40_000)[1] == 0
        assert produced(one, topic, 40_000)[1] > 0


# ---- fetch


@pytest.mark.parametrize("version", [6, 12, 18])
def test_a_fetch_beyond_the_quota_is_answered_without_records(
    broker: Broker, admin: Admin, topic: Topic, version: int
) -> None:
    reader = f"reader-{version}"
    with connect(broker, "filler") as filler:
        for _ in range(10):
            assert produced(filler, topic, 10_000)[1] == 0
    admin.alter_client_quotas({client_entity(reader): {"consumer_byte_rate": 20_000}})
    request = fetch_request(topic, partition_max_bytes=1)
    with connect(broker, reader) as client:
        throttle_ms = served = 0
        while not throttle_ms:
            answer = client.call(FETCH, version, request)
            throttle_ms = answer.throttle_time_ms
            served += throttle_ms == 0
        # Each answer has one batch of 10 KB; four of them are the quota of two seconds.
        assert 3 <= served <= 4
        assert answer.responses == []
        # What was not sent is not charged: after the throttle time there are records again.
        began = time.monotonic()
        answer = client.call(FETCH, version, request)
        assert time.monotonic() - began >= throttle_ms / 1000 - 0.05
        while answer.throttle_time_ms:
            answer = client.call(FETCH, version, request)
        assert len(answer.responses[0].partitions[0].records) > 10_000


def test_a_fetch_asks_for_no_more_than_its_quota_allows(broker: Broker, admin: Admin, topic: Topic) -> None:
    """Otherwise a fetch of much data would always be throttled, and never get any."""
    with connect(broker, "filler") as filler:
        for _ in range(20):
            produced(filler, topic, 10_000)
    admin.alter_client_quotas({client_entity("reader"): {"consumer_byte_rate": 20_000}})
    request = fetch_request(topic, partition_max_bytes=1 << 20)
    request.max_bytes, request.min_bytes, request.max_wait_ms = 1 << 20, 1 << 20, 30_000
    with connect(broker, "reader") as client:
        answer = client.call(FETCH, 12, request)
        if answer.throttle_time_ms:
            # With what is around the records it is a little too much at first.
            assert answer.throttle_time_ms < 100
            answer = client.call(FETCH, 12, request)
        assert 0 < len(answer.responses[0].partitions[0].records) <= 40_000


def test_a_throttled_fetch_goes_on_in_its_session(broker: Broker, admin: Admin, topic: Topic) -> None:
    with connect(broker, "filler") as filler:
        produced(filler, topic, 30_000)
    admin.alter_client_quotas({client_entity("reader"): {"consumer_byte_rate": 25_000}})
    first = fetch_request(topic)
    first.session_epoch = 0
    later = fetch_request(topic)
    with connect(broker, "reader") as client:
        answer = client.call(FETCH, 12, first)
        later.session_id = answer.session_id
        assert answer.session_id > 0
        later.session_epoch = 1
        answer = client.call(FETCH, 12, later)
        assert answer.throttle_time_ms > 0
        assert (answer.error_code, answer.session_id, answer.responses) == (0, later.session_id, [])
        later.session_epoch = 2
        answer = client.call(FETCH, 12, later)
        assert answer.error_code == ErrorCode.NONE
        # A throttled fetch that would begin a session begins none.
        if not answer.throttle_time_ms:
            answer = client.call(FETCH, 12, first)
            assert answer.throttle_time_ms > 0
            assert answer.session_id == 0


# ---- request time


def test_requests_that_take_too_much_of_the_time_are_throttled(broker: Broker, admin: Admin) -> None:
    admin.alter_client_quotas({client_entity("busy"): {"request_percentage": 0.0001}})
    with connect(broker, "busy") as busy, connect(broker, "other") as other:
        request = metadata.MetadataRequest(topics=None)
        throttle_ms = busy.call(3, 12, request).throttle_time_ms
        # Never longer than one window.
        assert 0 < throttle_ms <= 1000
        began = time.monotonic()
        busy.call(3, 12, request)
        assert time.monotonic() - began >= throttle_ms / 1000 - 0.05
        assert other.call(3, 12, request).throttle_time_ms == 0


def test_a_quota_of_request_time_covers_produces_and_fetches(
    broker: Broker, admin: Admin, topic: Topic
) -> None:
    admin.alter_client_quotas({client_entity("busy"): {"request_percentage": 0.0001}})
    with connect(broker, "busy") as client:
        assert 0 < produced(client, topic, 10)[1] <= 1000
    with connect(broker, "busy") as client:
        answer = client.call(FETCH, 12, fetch_request(topic))
        assert 0 < answer.throttle_time_ms <= 1000
        assert answer.responses == []


# ---- changes of the metadata


def creation(name: str, partitions: int) -> create_topics.CreateTopicsRequest:
    topic = create_topics.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def growth(name: str, total: int) -> create_partitions.CreatePartitionsRequest:
    topic = create_partitions.CreatePartitionsTopic(name=name, count=total, assignments=None)
    return create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)


def deletion(name: str) -> delete_topics.DeleteTopicsRequest:
    return delete_topics.DeleteTopicsRequest(
        topics=[delete_topics.DeleteTopicState(name=name)], topic_names=[name], timeout_ms=10_000
    )


def code_and_throttle(port: int, key: int, version: int, request: Any) -> tuple[int, int]:
    """On a connection of its own: the one before may be muted."""
    with RawClient("127.0.0.1", port, client_id="creator") as client:
        answer = client.call(key, version, request)
    (result,) = next(
        values
        for values in (getattr(answer, name, None) for name in ("topics", "results", "responses"))
        if values
    )
    return result.error_code, answer.throttle_time_ms


def test_changes_of_the_metadata_beyond_the_quota_are_refused() -> None:
    with Broker({"controller.quota.window.num": "10"}) as broker:
        port = broker.port
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.alter_client_quotas({client_entity("creator"): {"controller_mutation_rate": 0.2}})
        # There are two tokens at first. A large change is allowed as long as there is one.
        assert code_and_throttle(port, 19, 7, creation("first", 3)) == (ErrorCode.NONE, 0)
        # One token is owed: that takes 5 seconds.
        for key, version, request in (
            (19, 6, creation("second", 1)),
            (37, 3, growth("first", 4)),
            (20, 6, deletion("first")),
        ):
            code, throttle_ms = code_and_throttle(port, key, version, request)
            assert code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert 0 < throttle_ms <= 5000
        # What is wrong anyway does not use the quota.
        assert code_and_throttle(port, 20, 6, deletion("absent"))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        # Older clients do not know the error: their change is made, and they are throttled.
        code, throttle_ms = code_and_throttle(port, 19, 5, creation("third", 2))
        assert code == ErrorCode.NONE
        assert throttle_ms > 5000
        assert code_and_throttle(port, 37, 2, growth("first", 4))[0] == ErrorCode.NONE
        code, throttle_ms = code_and_throttle(port, 20, 4, deletion("first"))
        assert code == ErrorCode.NONE
        assert throttle_ms > 20_000
        with Admin(bootstrap_servers=broker.bootstrap, client_id="other") as admin:
            assert admin.list_topics().keys() == {"third"}


def test_a_throttled_change_mutes_the_connection(broker: Broker, admin: Admin) -> None:
    admin.alter_client_quotas({client_entity("creator"): {"controller_mutation_rate": 0.5}})
    with connect(broker, "creator") as client:
        name = f"muting-{time.time_ns()}"
        # 5.5 tokens at first; 1.5 are owed then, which takes 3 seconds.
        assert client.call(19, 7, creation(name, 7)).throttle_time_ms == 0
        answer = client.call(37, 3, growth(name, 8))
        assert answer.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        began = time.monotonic()
        client.call(3, 12, metadata.MetadataRequest(topics=[]))
        assert time.monotonic() - began >= answer.throttle_time_ms / 1000 - 0.05


def test_the_controller_throttles_clients_of_other_brokers() -> None:
    with Cluster(brokers=2) as cluster:
        (other,) = cluster.brokers.keys() - {cluster.controller()}
        with cluster.admin() as admin:
            admin.alter_client_quotas({client_entity("creator"): {"controller_mutation_rate": 1}})
        port = cluster.brokers[other].port
        assert code_and_throttle(port, 19, 7, creation("first", 13))[0] == ErrorCode.NONE
        with RawClient("127.0.0.1", port, client_id="creator") as client:
            answer = client.call(19, 7, creation("second", 1))
            assert answer.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert 0 < answer.throttle_time_ms <= 2000
            began = time.monotonic()
            client.call(3, 12, metadata.MetadataRequest(topics=[]))
            assert time.monotonic() - began >= answer.throttle_time_ms / 1000 - 0.05
