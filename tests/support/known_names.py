"""Topics, groups and transactions that exist on a broker, as values for the fields of any request."""

from typing import NamedTuple

from tests.support.largest_frames import Known
from tests.support.raw_calls import new_topic
from tests.support.raw_client import RawClient
from tests.support.raw_groups import RawGroup
from tests.support.raw_transactions import RawTransactional

from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

CONSUMER_GROUP_HEARTBEAT = 68
PARTITIONS = 50


class KnownNames(NamedTuple):
    usual: Known
    # With the group of the new protocol.
    of_consumers: Known

    def of_api(self, name: str) -> Known:
        return self.of_consumers if name.startswith("ConsumerGroup") else self.usual


def known_names(client: RawClient) -> KnownNames:
    """Create a topic with 50 partitions, a group of each protocol with a member, and a transactional id."""
    topic = new_topic(client, PARTITIONS, name="known-topic")
    group = RawGroup(client, "known-group")
    group.find()
    joined = group.joined()
    group.sync(joined, {joined.member_id: b"assigned"})
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="known-consumers",
        member_id="known-member",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic.name],
        topic_partitions=[],
    )
    member = client.call(CONSUMER_GROUP_HEARTBEAT, 1, heartbeat)
    assert member.error_code == 0
    producer = RawTransactional(client, "known-transaction")
    producer.init()
    names = dict.fromkeys(("name", "topic", "topics", "topic_name", "resource_name"), topic.name)
    names |= dict.fromkeys(
        ("group_id", "groups", "groups_names", "group_ids", "coordinator_keys", "key"), group.name
    )
    names |= dict.fromkeys(
        ("transactional_id", "transactional_ids", "v3_and_below_transactional_id"), "known-transaction"
    )
    values = names | {
        "topic_id": topic.id,
        "member_id": joined.member_id,
        "generation_id": joined.generation_id,
        "generation_id_or_member_epoch": joined.generation_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "v3_and_below_producer_id": producer.id,
        "v3_and_below_producer_epoch": producer.epoch,
        "client_software_name": "test",
        "client_software_version": "1",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "num_partitions": 1,
        "replication_factor": 1,
        "count": PARTITIONS + 1,
        "resource_type": 2,
        "resource_types": 2,
        "acks": 1,
        "response_partition_limit": 2000,
        "timeout_ms": 10_000,
    }
    consumers = values | dict.fromkeys(("group_id", "group_ids"), "known-consumers")
    consumers |= {"member_id": "known-member", "member_epoch": member.member_epoch}
    return KnownNames(Known(values, PARTITIONS), Known(consumers, PARTITIONS))
