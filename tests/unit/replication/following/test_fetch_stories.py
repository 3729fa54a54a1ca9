"""How a follower fetches: sessions, several fetchers, throttles, and requests that are given up."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from tests.unit.replication.following.small_cluster import TOPIC, Exchange, SmallCluster, story

from barnabas.broker.broker import Broker
from barnabas.broker.metrics import following
from barnabas.errors import DisconnectedError
from barnabas.metadata.records import PartitionRecord
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

A, B, C = 1, 2, 3


def test_a_session_that_the_leader_forgot_is_started_again(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        await cluster.fetch(2)
        assert cluster.exchanges[0].request.session_epoch > 0 and not cluster.exchanges[0].request.topics
        a.sessions.end(cluster.exchanges[0].request.session_id)
        a.append(b"m")
        await cluster.fetch()
        assert cluster.exchanges[0].request.session_epoch == 0
        await cluster.fetch(2)
        assert b.values() == [b"m"]

    story(cluster, tell)


def test_only_changed_partitions_are_named_in_a_request(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    a = cluster.nodes[A]

    async def tell() -> None:
        await cluster.fetch(2)
        a.append(b"m", index=2)
        await cluster.fetch()
        (topic,) = cluster.exchanges[0].request.topics
        assert [(part.partition, part.fetch_offset) for part in topic.partitions] == [(2, 1)]

    story(cluster, tell, partitions=4)


def test_replica_fetchers_share_the_partitions_of_a_leader(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        settings = b.following.settings
        b.following.reconfigure(type(settings)(B, fetchers_per_leader=3))
        await cluster.settle()
        await cluster.fetch()
        await cluster.fetch()
        assert len(cluster.exchanges) == 3
        for index in range(6):
            a.append(b"m%d" % index, index=index)
        await cluster.fetch(2)
        assert [b.values(index) for index in range(6)] == [[b"m%d" % index] for index in range(6)]

    story(cluster, tell, partitions=6)


def test_lag_failures_and_bytes_are_measured(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    def figures() -> dict[str, list[float]]:
        broker = cast(Broker, SimpleNamespace(following=b.following))
        return {
            family.name.rpartition("_")[2]: [value for *_, value in family.samples]
            for family in following.collect(broker)
            if family is not None
        }

    async def tell() -> None:
        assert figures()["consumerlag"] == [-1]
        a.append(b"m")
        await cluster.fetch(2)
        assert (figures()["maxlag"], figures()["consumerlag"]) == ([0], [0])
        assert figures()["replicationbytesin"] == [a.log.size]
        await cluster.stop(A)
        await cluster.fetch()
        assert figures()["failing"] == [1]

    story(cluster, tell)


def test_a_throttled_follower_pauses_until_the_rate_is_within_the_limit(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path, follower_replication_throttled_replicas=("0:2", "1:1"))
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        b.following.throttle.bytes_per_second = 100
        # A follower that is in sync is not throttled.
        await cluster.elect(A, isr=(A,))
        await cluster.fetch()
        for index in (0, 1):
            for _ in range(2):
                a.append(b"x" * 5000, index=index)
        await cluster.fetch(2)
        # The rate over ten quiet seconds is above the limit: partition 0 waits, partition 1 is not throttled.
        assert (len(b.values(0)), len(b.values(1))) == (1, 2)
        await cluster.fetch(3)
        assert len(b.values(0)) == 1
        cluster.clock.advance(60_000)
        await cluster.fetch(3)
        assert len(b.values(0)) == 2

    story(cluster, tell, partitions=2)


def test_a_partition_that_is_added_does_not_wait_for_the_end_of_a_fetch(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    cluster.interrupt_seconds = 0.001
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        await cluster.fetch(2)
        waiting = await changed_while_waiting(cluster)
        # The same session goes on, and the request names what is new in it.
        (exchange,) = cluster.exchanges
        assert exchange.request.session_epoch == waiting.request.session_epoch + 1
        assert [part.partition for part in exchange.request.topics[0].partitions] == [1]
        # The leader answers the first request with nothing.
        waiting.answer.set_result(FetchResponse(session_id=waiting.request.session_id))
        a.append(b"zero")
        a.append(b"one", index=1)
        await cluster.fetch(2)
        assert (b.values(0), b.values(1)) == ([b"zero"], [b"one"])
        assert cluster.exchanges[0].request.session_epoch > 1

    story(cluster, tell, partitions=2)


@pytest.mark.parametrize("late", ["an answer with records", "an error"])
def test_an_answer_that_is_given_up_and_had_something_begins_a_new_session(tmp_path: Path, late: str) -> None:
    """The leader counts it as sent, and would not send the high watermark in it again."""
    cluster = SmallCluster(tmp_path)
    cluster.interrupt_seconds = 0.001
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        await cluster.fetch(2)
        waiting = await changed_while_waiting(cluster)
        a.append(b"zero")
        if late == "an error":
            waiting.answer.set_exception(DisconnectedError("the connection was closed"))
        else:
            part = PartitionData(partition_index=0, high_watermark=0, records=b"whatever")
            topic = FetchableTopicResponse(topic_id=cluster.image.topics[TOPIC].id, partitions=[part])
            waiting.answer.set_result(FetchResponse(session_id=1, responses=[topic]))
        await cluster.settle()
        await cluster.fetch()
        assert cluster.exchanges[0].request.session_epoch == 0
        await cluster.fetch()
        assert b.values(0) == [b"zero"]

    story(cluster, tell, partitions=2)


async def changed_while_waiting(cluster: SmallCluster) -> Exchange:
    """The leader has got the fetch of B (returned) and waits, and there is a new epoch of partition 1."""
    (waiting,) = cluster.exchanges
    cluster.exchanges.clear()
    cluster.nodes[A].answer(B, waiting.request)
    topic = cluster.image.topics[TOPIC]
    cluster.apply(PartitionRecord(topic.id, 1, (A, B), (A, B), A, 5, 1))
    await cluster.retry(B)
    return waiting
