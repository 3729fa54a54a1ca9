"""What a leader says right after a pause, while it does not know yet that another broker leads."""

from tests.cluster.conftest import MakeTopic
from tests.support.raw_client import RawClient

import barnabas
from barnabas.client.errors import ErrorCode
from barnabas.testing import Cluster
from barnabas.wire.messages import fetch, offset_for_leader_epoch

FETCH, OFFSET_FOR_LEADER_EPOCH = 1, 23
CLIENTS = 20
RECORDS = 100


def fetch_request(topic: str, offset: int) -> fetch.FetchRequest:
    """One of a client that does not know the leader epoch."""
    partition = fetch.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return fetch.FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[fetch.FetchTopic(topic=topic, partitions=[partition])],
    )


def epoch_request(topic: str, epoch: int) -> offset_for_leader_epoch.OffsetForLeaderEpochRequest:
    partition = offset_for_leader_epoch.OffsetForLeaderPartition(
        partition=0, current_leader_epoch=-1, leader_epoch=epoch
    )
    asked = offset_for_leader_epoch.OffsetForLeaderTopic(topic=topic, partitions=[partition])
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=[asked])


def answered_fetch(client: RawClient) -> int:
    return client.receive(FETCH, 11)[1].responses[0].partitions[0].error_code


def answered_epoch(client: RawClient) -> tuple[int, int]:
    answer = client.receive(OFFSET_FOR_LEADER_EPOCH, 4)[1].topics[0].partitions[0]
    return answer.error_code, answer.end_offset


def test_a_former_leader_does_not_make_clients_start_over(cluster: Cluster, make_topic: MakeTopic) -> None:
    """They have read from its successor. Their requests wait in the sockets of the paused leader, so that it
    answers them before anything else."""
    topic = make_topic()
    with barnabas.Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(topic, value=b"before").result(30)
    former = cluster.leader_of((topic, 0))
    clients = [RawClient("127.0.0.1", cluster.brokers[former].port) for _ in range(CLIENTS)]
    try:
        cluster.pause(former)
        cluster.wait_until(lambda: cluster.leader_of((topic, 0)) not in (former, -1), "another leader")
        with barnabas.Producer(bootstrap_servers=cluster.bootstrap) as producer:
            sent = [producer.send(topic, value=b"after") for _ in range(RECORDS)]
        assert sent[-1].result(30).offset == RECORDS
        for client in clients:
            client.send(FETCH, 11, fetch_request(topic, RECORDS + 1))
            client.send(OFFSET_FOR_LEADER_EPOCH, 4, epoch_request(topic, 1))
        cluster.resume(former)
        for client in clients:
            assert answered_fetch(client) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert answered_epoch(client)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    finally:
        for client in clients:
            client.close()


def test_a_leader_tells_a_client_to_start_over(cluster: Cluster, make_topic: MakeTopic) -> None:
    """It may have to ask first who leads, and the client again."""
    topic = make_topic()
    leader = cluster.leader_of((topic, 0))
    with RawClient("127.0.0.1", cluster.brokers[leader].port) as client:

        def fetched() -> int:
            client.send(FETCH, 11, fetch_request(topic, 7))
            return answered_fetch(client)

        def asked() -> tuple[int, int]:
            client.send(OFFSET_FOR_LEADER_EPOCH, 4, epoch_request(topic, 7))
            return answered_epoch(client)

        cluster.wait_until(lambda: fetched() == ErrorCode.OFFSET_OUT_OF_RANGE, "the offset is refused")
        cluster.wait_until(lambda: asked() == (ErrorCode.NONE, -1), "the epoch is not known")
        cluster.zookeeper.kill()
        try:
            # The followers confirm it by their fetches.
            cluster.wait_until(lambda: fetched() == ErrorCode.OFFSET_OUT_OF_RANGE, "without ZooKeeper, too")
        finally:
            cluster.zookeeper.restart()
    cluster.wait_until_in_sync(topic)
