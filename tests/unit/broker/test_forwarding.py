"""Any broker takes admin requests; the broker that is the controller at that moment answers them."""

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.support.small_cluster import SmallCluster, eventually, run_cluster

from barnabas.broker import forwarding
from barnabas.broker.call import SHORT_ELEMENTS_MAX
from barnabas.broker.controller_channel import ControllerChannel
from barnabas.broker.controller_relay import ControllerId
from barnabas.broker.forwarding import FORWARDED, FORWARDED_BYTES_MAX, Sender, has_error
from barnabas.errors import ErrorCode
from barnabas.ids import random_uuid
from barnabas.metadata.parts import BROKER_RESOURCE
from barnabas.wire.codec import RequestHeader, encode_request
from barnabas.wire.message import Message
from barnabas.wire.messages import api_versions, create_partitions, create_topics, delete_topics, envelope
from barnabas.wire.messages import incremental_alter_configs as alter
from barnabas.wire.messages import metadata as metadata_messages

METADATA, CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 3, 19, 20, 37
ALTER_CONFIGS, ENVELOPE = 44, 58


def creation(name: str) -> create_topics.CreateTopicsRequest:
    topic = create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=20_000)


def frame_of(api_key: int, version: int, message: Message) -> bytes:
    chunks: list[Any] = list(encode_request(RequestHeader(api_key, version, 7, "client"), message))
    return b"".join(chunks)[4:]


async def sent_in_envelope(
    cluster: SmallCluster, to: int, frame: bytes, sender: bytes | None = None
) -> envelope.EnvelopeResponse:
    if sender is None:
        sender = Sender(2, cluster.brokers[2].metadata.broker_epoch, is_relayed=True).to_bytes()
    request = envelope.EnvelopeRequest(request_data=frame, request_principal=sender)
    answer: envelope.EnvelopeResponse = await cluster.ask(to, ENVELOPE, request)
    return answer


def test_changes_through_another_broker_are_seen_there_at_once(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        for number in range(5):
            await cluster.create_topic(2, f"topic-{number}")
            assert f"topic-{number}" in cluster.brokers[2].image.topics
        more = create_partitions.CreatePartitionsTopic(name="topic-0", count=3, assignments=None)
        grown = await cluster.ask(
            2, CREATE_PARTITIONS, create_partitions.CreatePartitionsRequest(topics=[more], timeout_ms=20_000)
        )
        assert [result.error_code for result in grown.results] == [0]
        assert len(cluster.brokers[2].image.topics["topic-0"].partitions) == 3
        state = delete_topics.DeleteTopicState(name="topic-1")
        deleted = await cluster.ask(
            2, DELETE_TOPICS, delete_topics.DeleteTopicsRequest(topics=[state], timeout_ms=20_000)
        )
        assert [result.error_code for result in deleted.responses] == [0]
        assert "topic-1" not in cluster.brokers[2].image.topics

    run_cluster(tmp_path, story)


def test_an_old_version_is_answered_in_that_version(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        client = await cluster.client(2)
        for version in (2, 5, 7):
            answer = await client.send(CREATE_TOPICS, creation(f"v{version}"), version_max=version)
            assert [result.error_code for result in answer.topics] == [0]

    run_cluster(tmp_path, story)


def test_a_topic_is_created_on_first_use_through_any_broker(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        topic = metadata_messages.MetadataRequestTopic(name="on-first-use")
        answer = await cluster.ask(2, METADATA, metadata_messages.MetadataRequest(topics=[topic]))
        assert [each.error_code for each in answer.topics] == [0]
        assert "on-first-use" in cluster.brokers[1].image.topics

    run_cluster(tmp_path, story)


def test_a_broker_answers_for_its_own_configs_and_forwards_the_change(tmp_path: Path) -> None:
    def change(name: str, key: str, value: str, kind: int = BROKER_RESOURCE) -> Message:
        config = alter.AlterableConfig(name=key, config_operation=0, value=value)
        resource = alter.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
        return alter.IncrementalAlterConfigsRequest(resources=[resource])

    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        done = await cluster.ask(2, ALTER_CONFIGS, change("2", "max.connections.per.ip", "7"))
        assert [result.error_code for result in done.responses] == [0]
        assert cluster.brokers[2].config["max.connections.per.ip"] == 7
        assert cluster.brokers[1].config["max.connections.per.ip"] != 7
        other = await cluster.ask(2, ALTER_CONFIGS, change("1", "max.connections.per.ip", "7"))
        assert [result.error_code for result in other.responses] == [ErrorCode.INVALID_REQUEST]
        wrong = [
            await cluster.ask(broker_id, ALTER_CONFIGS, change("", "max.connections.per.ip", "many"))
            for broker_id in (1, 2)
        ]
        assert wrong[0].responses[0].error_code != ErrorCode.NONE
        assert wrong[0] == wrong[1], "the controller's own answer, and the one through another broker"
        loggers = await cluster.ask(2, ALTER_CONFIGS, change("2", "barnabas.nobody", "INFO", kind=8))
        assert len(loggers.responses) == 1

    run_cluster(tmp_path, story)


def test_a_long_request_is_forwarded_too(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        count = SHORT_ELEMENTS_MAX + 1
        states = [delete_topics.DeleteTopicState(name=f"absent-{number}") for number in range(count)]
        for broker in (1, 2):
            request = delete_topics.DeleteTopicsRequest(topics=list(states), timeout_ms=20_000)
            answer = await cluster.ask(broker, DELETE_TOPICS, request)
            codes = [result.error_code for result in answer.responses]
            assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * count

    run_cluster(tmp_path, story)


def test_an_envelope_needs_a_registered_broker_the_controller_and_a_forwarded_api(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        frame = frame_of(CREATE_TOPICS, 7, creation("enveloped"))
        epoch = cluster.brokers[2].metadata.broker_epoch
        wrong = (Sender(2, epoch + 1).to_bytes(), Sender(9, epoch).to_bytes())
        for sender in (b"", *wrong, random_uuid()):
            refused = await sent_in_envelope(cluster, 1, frame, sender)
            assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert (await sent_in_envelope(cluster, 2, frame)).error_code == ErrorCode.NOT_CONTROLLER
        everything = metadata_messages.MetadataRequest(topics=None)
        too_long = frame + bytes(FORWARDED_BYTES_MAX)
        for data in (frame_of(METADATA, 12, everything), frame[:20], b"\0" * 9, too_long):
            answer = await sent_in_envelope(cluster, 1, data)
            assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert "enveloped" not in cluster.brokers[1].image.topics
        assert (await sent_in_envelope(cluster, 1, frame)).error_code == ErrorCode.NONE
        assert "enveloped" in cluster.brokers[1].image.topics

    run_cluster(tmp_path, story)


def test_an_envelope_is_relayed_once(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2, 3)
        sender = Sender(3, cluster.brokers[3].metadata.broker_epoch).to_bytes()
        frame = frame_of(CREATE_TOPICS, 7, creation("relayed"))
        assert (await sent_in_envelope(cluster, 2, frame, sender)).error_code == ErrorCode.NONE
        assert "relayed" in cluster.brokers[1].image.topics
        # Broker 2 believes that broker 3 is the controller. Broker 3 does not send it back.
        controller = ControllerId(3, 99)
        with mock.patch.object(ControllerChannel, "_controller", lambda *_: controller):
            again = await sent_in_envelope(cluster, 2, frame, sender)
        assert again.error_code == ErrorCode.NOT_CONTROLLER

    run_cluster(tmp_path, story)


def test_without_a_controller_each_item_is_refused_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "FORWARD_SECONDS_MAX", 0.3)

    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2)
        cluster.brokers[1].controller._leadership = None
        answer = await cluster.ask(2, CREATE_TOPICS, creation("late"))
        assert [result.error_code for result in answer.topics] == [ErrorCode.NOT_CONTROLLER]

    run_cluster(tmp_path, story)


def test_a_request_during_a_failover_is_answered_by_the_next_controller(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2, 3)
        await cluster.stop(1)
        await cluster.create_topic(3, "after")
        await eventually(lambda: cluster.brokers[2].controller.active)
        assert cluster.brokers[3].controller_id == 2

    run_cluster(tmp_path, story)


def test_producer_ids_of_all_brokers_come_from_the_controller(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1, 2, 3)
        ids = [await broker.producer_ids.next() for broker in cluster.brokers.values()]
        assert len(set(ids)) == 3

    run_cluster(tmp_path, story)


def test_clients_do_not_see_the_apis_of_brokers(tmp_path: Path) -> None:
    async def story(cluster: SmallCluster) -> None:
        await cluster.start(1)
        seen: list[set[int]] = []
        for name in ("a-test", "barnabas-broker"):
            answer: api_versions.ApiVersionsResponse = (await cluster.client(1, name)).api_versions
            seen.append({entry.api_key for entry in answer.api_keys})
        assert seen[1] - seen[0] == {56, 58, 63, 67}

    run_cluster(tmp_path, story)


def test_errors_are_found_at_any_depth() -> None:
    result = create_topics.CreatableTopicResult(name="t", error_code=ErrorCode.NOT_CONTROLLER)
    response = create_topics.CreateTopicsResponse(topics=[create_topics.CreatableTopicResult(), result])
    assert has_error(response, ErrorCode.NOT_CONTROLLER)
    assert not has_error(response, ErrorCode.INVALID_REQUEST)


def test_every_forwarded_api_is_served() -> None:
    from barnabas.broker.apis import ROWS

    assert set(ROWS) >= FORWARDED
