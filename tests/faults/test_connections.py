"""Too many, idle, slow or broken connections: limits are kept, and no resources are leaked."""

import gc
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.raw_calls import (
    FETCH,
    PRODUCE,
    batch_of,
    fetch_request,
    list_offset,
    new_topic,
    produce_batch,
    produce_request,
)
from tests.support.raw_client import RawClient

from barnabas.broker.handlers.fetch import Reading
from barnabas.config.definition import ConfigError
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

API_VERSIONS, INCREMENTAL_ALTER_CONFIGS = 18, 44
MB = 1024 * 1024
PATIENCE_SECONDS = 20.0


def is_served(client: RawClient) -> bool:
    try:
        return client.call(API_VERSIONS, 0, ApiVersionsRequest()).error_code == 0
    except ConnectionError:
        return False


def connected(broker: Broker) -> RawClient:
    return RawClient("127.0.0.1", broker.port)


def memory_of(broker: Broker) -> int:
    for line in Path(f"/proc/{broker.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"/proc/{broker.pid}/status has no VmRSS")


def files_of(broker: Broker) -> int:
    return sum(1 for _ in Path(f"/proc/{broker.pid}/fd").iterdir())


def comes_true(condition: Callable[[], bool]) -> bool:
    """Wait until a condition is true, for things that the broker does a moment later; False after a
    timeout."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(subprocess=True) as broker:
        yield broker
        assert "Traceback" not in broker.output()


# ---- limits


@pytest.mark.parametrize(
    "overrides",
    [
        {"max.connections.per.ip": "3"},
        {"max.connections.per.ip.overrides": "127.0.0.1:3,10.0.0.1:100"},
    ],
    ids=lambda overrides: next(iter(overrides)),
)
def test_connections_over_the_limit_are_closed_and_others_are_not(overrides: dict[str, str]) -> None:
    with Broker(overrides) as broker:
        allowed = [connected(broker) for _ in range(3)]
        assert all(is_served(client) for client in allowed)
        surplus = [connected(broker) for _ in range(5)]
        assert all(client.is_closed_by_peer() for client in surplus)
        assert all(is_served(client) for client in allowed)
        allowed[0].close()

        def has_room() -> bool:
            with connected(broker) as client:
                return is_served(client)

        assert comes_true(has_room)
        for client in (*allowed, *surplus):
            client.close()


def test_a_limit_can_be_changed_while_the_broker_runs() -> None:
    def limit(count: str | None, name: str = "max.connections.per.ip") -> int:
        operation = 1 if count is None else 0
        change = AlterableConfig(name=name, config_operation=operation, value=count)
        resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        error: int = first.call(INCREMENTAL_ALTER_CONFIGS, 1, request).responses[0].error_code
        return error

    with Broker() as broker, connected(broker) as first, connected(broker) as second:
        assert is_served(second)
        assert limit("1") == 0
        with connected(broker) as surplus:
            assert surplus.is_closed_by_peer()
        assert is_served(second)
        assert limit(None) == 0
        with connected(broker) as welcome:
            assert is_served(welcome)


def test_a_limit_that_cannot_be_read_stops_the_start_with_a_sentence() -> None:
    broker = Broker({"max.connections.per.ip.overrides": "localhost"})
    with pytest.raises(ConfigError, match="host:count"), broker:
        pass


def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    with (
        Broker({"connections.max.idle.ms": "600"}) as broker,
        connected(broker) as idle,
        connected(broker) as busy,
    ):
        assert is_served(idle)
        until = time.monotonic() + PATIENCE_SECONDS
        while idle.is_silent(0.02) and time.monotonic() < until:
            assert is_served(busy)
        assert idle.is_closed_by_peer()
        assert is_served(busy)


def test_a_peer_that_never_finishes_its_frame_is_idle_too() -> None:
    with Broker({"connections.max.idle.ms": "300"}) as broker, connected(broker) as client:
        client.send_bytes(struct.pack(">i", 1000) + b"half")
        assert client.is_closed_by_peer()


def test_a_peer_that_reads_nothing_is_idle_even_if_it_sends_on() -> None:
    with Broker({"connections.max.idle.ms": "500"}, subprocess=True) as broker:
        with connected(broker) as writer:
            topic = new_topic(writer)
            for _ in range(20):
                produce_batch(writer, topic, batch_of(bytes(MB - 1000)))
            with_writer = files_of(broker)
        assert comes_true(lambda: files_of(broker) < with_writer)
        before = files_of(broker)
        with connected(broker) as reader:
            reader.send(FETCH, 12, fetch_request(topic, partition_max_bytes=20 * MB))
            assert comes_true(lambda: files_of(broker) > before)

            def is_gone() -> bool:
                with suppress(ConnectionError):
                    reader.send_bytes(b"\0")
                return files_of(broker) <= before

            assert comes_true(is_gone)


# ---- refused requests


def test_a_refused_request_is_logged_once_per_host_and_api_key() -> None:
    unserved, broken = 4, 3
    with Broker(subprocess=True) as broker:
        for key in (unserved, unserved, broken, broken, *range(1000, 1010)):
            with connected(broker) as client:
                client.send_bytes(struct.pack(">ihhih", 14, key, 9, 1, -1) + b"\xff" * 4)
                assert client.is_closed_by_peer()
        with connected(broker) as client:
            client.send_bytes(struct.pack(">i", -1))
            assert client.is_closed_by_peer()
        lines = [line for line in broker.output().splitlines() if "closed a connection" in line]
    assert len(lines) == 4
    assert "API key 4 is not served" in lines[0]
    assert "API key 1000 is not served" in lines[2]
    assert "a frame of -1 bytes" in lines[3]


# ---- slow readers


def test_a_reader_that_never_reads_costs_no_memory_and_delays_nobody(broker: Broker) -> None:
    with connected(broker) as writer:
        topic = new_topic(writer)
        for _ in range(30):
            assert produce_batch(writer, topic, batch_of(bytes(MB - 1000))).error_code == 0
        before = memory_of(broker)
        readers = [connected(broker) for _ in range(20)]
        for reader in readers:
            for _ in range(10):
                reader.send(FETCH, 12, fetch_request(topic, partition_max_bytes=30 * MB))
        for _ in range(20):
            assert is_served(writer)
        assert memory_of(broker) - before < 30 * MB
        # When the peer reads, it gets everything, in order.
        for number in range(1, 4):
            correlation_id, response = readers[0].receive(FETCH, 12)
            assert correlation_id == number
            assert len(response.responses[0].partitions[0].records) > 29 * MB
        for reader in readers:
            reader.close()


# ---- peers that go away


def test_connections_opened_and_dropped_leave_no_file_behind(broker: Broker) -> None:
    with connected(broker) as client:
        topic = new_topic(client)
        # A log opens its files when it is first written.
        client.call(PRODUCE, 9, produce_request(topic, batch_of(b"x")))
        before = files_of(broker)
        for number in range(500):
            dropped = connected(broker)
            if number % 3 == 1:
                assert is_served(dropped)
            if number % 3 == 2:
                dropped.send(PRODUCE, 9, produce_request(topic, batch_of(b"x")))
            if number % 2:
                # Close with a reset.
                dropped.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            dropped.close()
            if number % 20 == 0:
                # Not faster than the broker accepts connections: the system's queue is short.
                assert is_served(client)
        assert comes_true(lambda: files_of(broker) <= before)
        assert is_served(client)


def test_waiting_fetches_go_with_their_connections(broker: Broker) -> None:
    """A fetch may wait for weeks. When its connection is gone, no timer and no waiter may keep it."""
    with connected(broker) as client:
        topic = new_topic(client)
        request = fetch_request(topic)
        request.max_wait_ms = 2**31 - 1

        def park_and_leave(count: int) -> None:
            files = files_of(broker)
            for number in range(count):
                with connected(broker) as leaver:
                    leaver.send(FETCH, 12, request)
                if number % 20 == 0:
                    assert is_served(client)
            assert comes_true(lambda: files_of(broker) <= files)

        park_and_leave(50)
        assert is_served(client)
        before = memory_of(broker)
        park_and_leave(600)
        assert is_served(client)
        assert memory_of(broker) - before < 15 * MB


def test_nothing_remembers_a_fetch_whose_connection_is_gone() -> None:
    def remembered() -> int:
        return sum(isinstance(thing, Reading) for thing in gc.get_objects())

    before = remembered()
    with Broker() as broker, connected(broker) as client:
        request = fetch_request(new_topic(client))
        request.max_wait_ms = 2**31 - 1
        leavers = [connected(broker) for _ in range(10)]
        for leaver in leavers:
            leaver.send(FETCH, 12, request)
        assert comes_true(lambda: remembered() == before + 10)
        for leaver in leavers:
            leaver.close()

        def is_forgotten() -> bool:
            gc.collect()
            return remembered() <= before

        assert comes_true(is_forgotten)


def test_a_peer_that_leaves_in_the_middle_of_a_large_answer(broker: Broker) -> None:
    with connected(broker) as client:
        topic = new_topic(client)
        for _ in range(10):
            produce_batch(client, topic, batch_of(bytes(MB - 1000)))
        before = files_of(broker)
        for _ in range(30):
            with connected(broker) as leaver:
                leaver.send(FETCH, 12, fetch_request(topic, partition_max_bytes=10 * MB))
                assert len(leaver.socket.recv(1000)) > 0
        assert comes_true(lambda: files_of(broker) <= before)
        assert is_served(client)


def test_a_peer_that_leaves_in_the_middle_of_a_produce_writes_nothing(broker: Broker) -> None:
    with connected(broker) as client:
        topic = new_topic(client)
        frame = client.encode(PRODUCE, 9, produce_request(topic, batch_of(b"x" * 1000)))
        for size in (3, 4, 10, len(frame) // 2, len(frame) - 1):
            with connected(broker) as leaver:
                leaver.send_bytes(frame[:size])
        assert list_offset(client, topic, -1).offset == 0
