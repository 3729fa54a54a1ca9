"""The admin client retries retriable errors, reports the others, and ends in time."""

from collections.abc import Callable

import pytest
from tests.support.scripted_peer import CLOSE, SILENCE, Answer, ScriptedPeer, versions

from barnabas.client.admin import Admin, AdminError, NewTopic, OffsetSpec
from barnabas.client.errors import ClosedError, ErrorCode, KafkaError, KafkaTimeoutError
from barnabas.client.types import TopicPartition
from barnabas.wire.codec import Request
from barnabas.wire.messages import (
    create_topics,
    delete_groups,
    find_coordinator,
    list_offsets,
    metadata,
    offset_fetch,
)

SPOKEN = {
    key: (first, last)
    for key, first, last in (
        (metadata.API_KEY, 0, 13),
        (find_coordinator.API_KEY, 0, 6),
        (create_topics.API_KEY, 2, 7),
        (delete_groups.API_KEY, 0, 2),
        (list_offsets.API_KEY, 1, 6),
        (offset_fetch.API_KEY, 1, 10),
    )
}


class ScriptedCluster:
    """One broker that is the leader of orders-0 and every coordinator; its answers to the tested API are
    given."""

    def __init__(self, *answers: Callable[[Request], Answer]) -> None:
        self._answers = list(answers)
        self.peer = ScriptedPeer(self)

    def __call__(self, request: Request) -> Answer:
        match request.header.api_key:
            case 18:
                return versions(SPOKEN)
            case metadata.API_KEY:
                return self._metadata()
            case find_coordinator.API_KEY:
                coordinator = find_coordinator.Coordinator(node_id=1, host="127.0.0.1", port=self.peer.port)
                return find_coordinator.FindCoordinatorResponse(coordinators=[coordinator])
            case _:
                return self._answers.pop(0)(request)

    def _metadata(self) -> metadata.MetadataResponse:
        partition = metadata.MetadataResponsePartition(partition_index=0, leader_id=1)
        return metadata.MetadataResponse(
            brokers=[metadata.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.peer.port)],
            controller_id=1,
            topics=[metadata.MetadataResponseTopic(name="orders", partitions=[partition])],
        )

    def requests(self, api_key: int) -> int:
        return sum(header.api_key == api_key for header in self.peer.requests)


def admin_of(cluster: ScriptedCluster) -> Admin:
    return Admin(bootstrap_servers=cluster.peer.bootstrap, retry_backoff_ms=1, reconnect_backoff_ms=1)


def created(**errors: ErrorCode) -> Callable[[Request], Answer]:
    def answer(request: Request) -> Answer:
        results = [
            create_topics.CreatableTopicResult(name=topic.name, error_code=errors.get(topic.name, 0))
            for topic in request.message.topics
        ]
        return create_topics.CreateTopicsResponse(topics=results)

    return answer


def deleted(code: int) -> Callable[[Request], Answer]:
    result = delete_groups.DeletableGroupResult(group_id="g", error_code=code)
    return lambda request: delete_groups.DeleteGroupsResponse(results=[result])


def test_only_items_with_a_retriable_error_are_tried_again() -> None:
    topics_requested: list[list[str]] = []

    def second(request: Request) -> Answer:
        topics_requested.append([topic.name for topic in request.message.topics])
        return created()(request)

    first = created(a=ErrorCode.NOT_CONTROLLER, b=ErrorCode.TOPIC_ALREADY_EXISTS)
    cluster = ScriptedCluster(first, second)
    with cluster.peer, admin_of(cluster) as admin, pytest.raises(AdminError) as caught:
        admin.create_topics([NewTopic("a"), NewTopic("b"), NewTopic("c")])
    assert topics_requested == [["a"]]
    assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert list(caught.value.errors) == ["b"]
    assert set(caught.value.results) == {"a", "c"}


def test_a_lost_connection_is_tried_again() -> None:
    cluster = ScriptedCluster(lambda request: CLOSE, lambda request: b"\xff\xff\xff\xff", created())
    with cluster.peer, admin_of(cluster) as admin:
        assert list(admin.create_topics([NewTopic("a")])) == ["a"]
    assert cluster.requests(create_topics.API_KEY) == 3


def test_an_answer_without_an_item_is_an_error() -> None:
    cluster = ScriptedCluster(lambda request: create_topics.CreateTopicsResponse())
    with cluster.peer, admin_of(cluster) as admin, pytest.raises(AdminError, match="does not contain it"):
        admin.create_topics([NewTopic("a")])


def test_a_coordinator_that_has_moved_is_looked_up_again() -> None:
    cluster = ScriptedCluster(deleted(ErrorCode.NOT_COORDINATOR), deleted(0))
    with cluster.peer, admin_of(cluster) as admin:
        admin.delete_consumer_groups(["g"])
    assert cluster.requests(find_coordinator.API_KEY) == 2


def test_the_timeout_error_names_the_last_failure() -> None:
    cluster = ScriptedCluster(*[deleted(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)] * 1000)
    timeout = pytest.raises(KafkaTimeoutError, match="COORDINATOR_LOAD_IN_PROGRESS")
    with cluster.peer, admin_of(cluster) as admin, timeout:
        admin.delete_consumer_groups(["g"], timeout=0.5)


def test_a_timeout_keeps_the_results_so_far() -> None:
    waiting = [created(slow=ErrorCode.NOT_CONTROLLER)] * 1000
    first = created(slow=ErrorCode.NOT_CONTROLLER, there=ErrorCode.TOPIC_ALREADY_EXISTS)
    cluster = ScriptedCluster(first, *waiting)
    with cluster.peer, admin_of(cluster) as admin, pytest.raises(AdminError) as caught:
        admin.create_topics([NewTopic("slow"), NewTopic("made"), NewTopic("there")], timeout=0.5)
    assert list(caught.value.results) == ["made"]
    assert caught.value.errors["there"].code is ErrorCode.TOPIC_ALREADY_EXISTS
    late = caught.value.errors["slow"]
    assert isinstance(late, KafkaTimeoutError) and "NOT_CONTROLLER" in late.message
    assert len(caught.value.errors) == 2


def test_a_silent_broker_costs_no_more_than_the_timeout() -> None:
    cluster = ScriptedCluster(lambda request: SILENCE)
    with cluster.peer, admin_of(cluster) as admin, pytest.raises(KafkaTimeoutError):
        admin.create_topics([NewTopic("a")], timeout=0.1)


def test_a_filter_that_an_old_broker_would_ignore_is_refused() -> None:
    cluster = ScriptedCluster()
    with cluster.peer, admin_of(cluster) as admin:
        with pytest.raises(KafkaError) as caught:
            admin.list_offsets({TopicPartition("orders", 0): OffsetSpec.MAX_TIMESTAMP})
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
        with pytest.raises(KafkaError) as caught:
            admin.describe_producers([TopicPartition("orders", 0)])
        assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_closed_admin_raises_an_error() -> None:
    cluster = ScriptedCluster()
    with cluster.peer:
        admin = admin_of(cluster)
        admin.close()
        admin.close()
        with pytest.raises(ClosedError):
            admin.list_topics()


def test_the_lag_leaves_out_deleted_partitions() -> None:
    def committed(request: Request) -> Answer:
        assert request.header.api_version == 9, "later versions do not name topics"
        partition = offset_fetch.OffsetFetchResponsePartitions(partition_index=0, committed_offset=4)
        topics = [
            offset_fetch.OffsetFetchResponseTopics(name=name, partitions=[partition])
            for name in ("orders", "gone")
        ]
        group = offset_fetch.OffsetFetchResponseGroup(group_id="g", topics=topics)
        return offset_fetch.OffsetFetchResponse(groups=[group])

    def ends(request: Request) -> Answer:
        partition = list_offsets.ListOffsetsPartitionResponse(partition_index=0, offset=10)
        topic = list_offsets.ListOffsetsTopicResponse(name="orders", partitions=[partition])
        return list_offsets.ListOffsetsResponse(topics=[topic])

    cluster = ScriptedCluster(committed, ends)
    with cluster.peer, admin_of(cluster) as admin:
        assert admin.lag_of("g") == {TopicPartition("orders", 0): 6}
