"""Networks between real brokers, clients and ZooKeeper that are cut, slow or lossy."""

import time
from collections.abc import Iterator

import pytest
from tests.jepsen.cluster import FaultyCluster
from tests.jepsen.conftest import MakeTopic
from tests.jepsen.faults import (
    BadPackets,
    Brokers,
    Cut,
    Degraded,
    Fault,
    Followers,
    HeldRequests,
    Isolated,
    Leader,
    LosingAnswers,
)
from tests.jepsen.faults.links import BROKERS
from tests.jepsen.network import PRODUCE, Which
from tests.jepsen.packets import PacketQuality, why_no_packets
from tests.jepsen.probes import client_of, in_sync, is_answered, values_at, write
from tests.jepsen.systems import OurSystem
from tests.support.raw_calls import Topic, batch_of, produce_request

import barnabas
from barnabas.client.admin import NewTopic
from barnabas.testing import Quality
from barnabas.wire.messages.api_versions import ApiVersionsRequest

SILENCE_SECONDS = 0.2
API_VERSIONS_REQUEST = ApiVersionsRequest()


@pytest.mark.parametrize("kind", ["role", "link"])
def test_a_request_arrives_at_a_broker_whose_answers_are_cut_off(
    system: FaultyCluster, make_topic: MakeTopic, kind: str
) -> None:
    topic = make_topic()
    (leader,) = Leader(topic).find(system)
    fault: Fault = Isolated(system, Leader(topic), ["client"], one_way=True)
    if kind == "link":
        fault = Cut(system, leader, "client", one_way=True)
    with client_of(system, leader) as client:
        with fault:
            assert repr(fault).startswith("one-way cut from ")
            request = produce_request(Topic(topic, bytes(16)), batch_of(b"received"), acks=-1)
            client.send(PRODUCE, 9, request)
            system.wait_until(lambda: values_at(system, topic) == [b"received"], "the record is written")
            assert client.is_silent(SILENCE_SECONDS)
        assert client.receive(PRODUCE, 9)[1].responses[0].partition_responses[0].error_code == 0


def test_a_broker_without_clients(system: FaultyCluster) -> None:
    with client_of(system, 1) as one, client_of(system, 2) as two:
        with Isolated(system, Brokers(1), ["client"]) as fault:
            assert repr(fault) == "cut between broker 1 and client"
            one.send(18, 0, API_VERSIONS_REQUEST)
            assert is_answered(two)
            assert one.is_silent(SILENCE_SECONDS)
        one.receive(18, 0)
        assert is_answered(one)


def test_a_follower_without_the_other_brokers_leaves_the_isr_and_returns(
    system: FaultyCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    write(system, topic)
    # The leader needs the controller for a change of the ISR.
    follower = next(id_ for id_ in Followers(topic).find(system) if id_ != system.controller())
    with Isolated(system, Brokers(follower)) as fault:
        # Acknowledged when the follower has left the ISR.
        write(system, topic)
        assert in_sync(system, topic) == {1, 2, 3} - set(fault.broker_ids)
        # Clients are not concerned.
        with client_of(system, fault.broker_ids[0]) as client:
            assert is_answered(client)
    system.wait_until_in_sync(topic)


def test_a_leader_without_zookeeper_is_replaced(system: FaultyCluster, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with Isolated(system, Leader(topic), ["zookeeper"]) as fault:
        (leader,) = fault.broker_ids
        other = next(id_ for id_ in system.brokers if id_ != leader)
        system.wait_until(
            lambda: system.leader_of((topic, 0), seen_by=other) not in (leader, -1), "another broker leads"
        )
    system.wait_until_in_sync(topic)


def test_slow_links(system: FaultyCluster) -> None:
    quality = Quality(delay_ms=100, jitter_ms=20, loss=0.01, bytes_per_second=375_000)
    with client_of(system, 1) as client:
        with Degraded(system, quality, Brokers(1)) as fault:
            begin = time.monotonic()
            assert is_answered(client)
            assert time.monotonic() - begin >= 0.16
            assert repr(fault) == (
                "a link with delay_ms=100, jitter_ms=20, loss=0.01, bytes_per_second=375000 between broker 1 "
                "and brokers and zookeeper and client"
            )
        begin = time.monotonic()
        assert is_answered(client)
        assert time.monotonic() - begin < 0.16


def test_links_between_all_brokers_that_break_connections(
    system: FaultyCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with Degraded(system, Quality(resets=0.05), others=[BROKERS]):
        for number in range(10):
            write(system, topic, b"%d" % number)
    system.wait_until_in_sync(topic)
    assert values_at(system, topic) == [b"%d" % number for number in range(10)]


def test_an_acknowledgement_that_is_lost_and_a_request_that_is_late(
    system: FaultyCluster, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with LosingAnswers(system, Which(PRODUCE), count=2) as fault:
        write(system, topic, b"once")
        assert fault.lost is not None and len(fault.lost.requests) == 2
    assert values_at(system, topic) == [b"once"]
    (leader,) = Leader(topic).find(system)
    with HeldRequests(system, Which(PRODUCE)) as held:
        with client_of(system, leader) as client:
            client.send(PRODUCE, 9, produce_request(Topic(topic, bytes(16)), batch_of(b"late"), acks=-1))
            assert held.hold is not None
            held.hold.wait()
        assert values_at(system, topic) == [b"once"]
    system.wait_until(lambda: values_at(system, topic) == [b"once", b"late"], "the late record arrives")


if why_no_packets() is None:

    @pytest.fixture
    def packet_system() -> Iterator[FaultyCluster]:
        with OurSystem(brokers=2, packets=True) as system:
            yield system

    def test_lost_packets(packet_system: FaultyCluster) -> None:
        system = packet_system
        with system.admin() as admin:
            admin.create_topics([NewTopic("topic", 1, 2)])
        system.wait_until_in_sync("topic")
        quality = PacketQuality(
            delay_ms=10, jitter_ms=5, loss=0.05, duplicates=0.01, bytes_per_second=375_000
        )
        with (
            barnabas.Producer(bootstrap_servers=system.bootstrap) as producer,
            BadPackets(system, quality),
        ):
            for number in range(20):
                producer.send("topic", value=b"%d" % number).result(30)
        counts = system.packets.counts()
        assert counts["lost"] > 0
        assert values_at(system, "topic") == [b"%d" % number for number in range(20)]
