"""Every dynamic setting that has an effect is changed on a running broker, and the component that should take
the change is observed. A new dynamic key needs an observation here."""

import logging
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support.raw_calls import batch_of, new_topic, produce_batch
from tests.support.raw_client import RawClient
from tests.support.raw_transactions import OLD, RawTransactional
from tests.support.visible_broker import VisibleBroker, visible_broker

from barnabas.broker.broker import Broker
from barnabas.broker.cleaning import CleanerDriver
from barnabas.broker.dynamic_settings import TAKEN_BY, TAKERS, Component
from barnabas.config.broker import BROKER_KEYS
from barnabas.config.definition import PER_BROKER, READ_ONLY
from barnabas.config.keys_security import TLS_KEYS
from barnabas.errors import ErrorCode
from barnabas.testing.ports import free_ports
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

INCREMENTAL_ALTER_CONFIGS, BROKER_RESOURCE = 44, 4
SET, DELETE = 0, 1
TOPIC = "plain"


class Observation(NamedTuple):
    """`look` gives `expected` once `value` has been taken, and something else before."""

    value: str
    look: Callable[[Broker], Any]
    expected: Any


def topic_setting(value: str, field: str, expected: Any) -> Observation:
    """A default of topics: the log of a topic that was there before has it."""

    def look(broker: Broker) -> Any:
        return getattr(broker.replicas.leader(TOPIC, 0).log.config, field)

    return Observation(value, look, expected)


def cleaning_of(broker: Broker) -> CleanerDriver:
    assert broker.cleaning is not None
    return broker.cleaning


OBSERVATIONS = {
    "compression.gzip.level": topic_setting("7", "compression_gzip_level", 7),
    "compression.lz4.level": topic_setting("12", "compression_lz4_level", 12),
    "compression.type": topic_setting("lz4", "compression_type", "lz4"),
    "compression.zstd.level": topic_setting("5", "compression_zstd_level", 5),
    "follower.replication.throttled.rate": Observation(
        "12345", lambda broker: broker.following.throttle.bytes_per_second, 12_345
    ),
    "leader.replication.throttled.rate": Observation(
        "12345", lambda broker: broker.replicas.surroundings.throttle.bytes_per_second, 12_345
    ),
    "log.cleaner.backoff.ms": Observation("1234", lambda broker: cleaning_of(broker).backoff_seconds, 1.234),
    "log.cleaner.dedupe.buffer.size": Observation(
        "50000000", lambda broker: broker.cleaner.settings.map_bytes, 50_000_000
    ),
    "log.cleaner.delete.retention.ms": topic_setting("77", "delete_retention_ms", 77),
    "log.cleaner.io.buffer.load.factor": Observation(
        "0.7", lambda broker: broker.cleaner.settings.map_load_factor, 0.7
    ),
    "log.cleaner.io.max.bytes.per.second": Observation(
        "5000000", lambda broker: broker.cleaner.settings.bytes_per_second, 5_000_000.0
    ),
    "log.cleaner.max.compaction.lag.ms": topic_setting("88", "max_compaction_lag_ms", 88),
    "log.cleaner.min.cleanable.ratio": topic_setting("0.25", "min_cleanable_dirty_ratio", 0.25),
    "log.cleaner.min.compaction.lag.ms": topic_setting("66", "min_compaction_lag_ms", 66),
    "log.cleaner.threads": Observation("3", lambda broker: len(cleaning_of(broker)._tasks), 3),
    "log.cleanup.policy": topic_setting("compact", "cleanup_compact", True),
    "log.flush.interval.messages": topic_setting("9", "flush_messages", 9),
    "log.flush.interval.ms": topic_setting("90", "flush_ms", 90),
    "log.index.interval.bytes": topic_setting("8192", "index_interval_bytes", 8192),
    "log.index.size.max.bytes": topic_setting("65536", "segment_index_bytes", 65_536),
    "log.message.timestamp.after.max.ms": topic_setting("11", "message_timestamp_after_max_ms", 11),
    "log.message.timestamp.before.max.ms": topic_setting("12", "message_timestamp_before_max_ms", 12),
    "log.message.timestamp.type": topic_setting("LogAppendTime", "message_timestamp_type", "LogAppendTime"),
    "log.preallocate": topic_setting("true", "preallocate", True),
    "log.retention.bytes": topic_setting("5000", "retention_bytes", 5000),
    "log.retention.ms": topic_setting("60000", "retention_ms", 60_000),
    "log.roll.jitter.ms": topic_setting("13", "segment_jitter_ms", 13),
    "log.roll.ms": topic_setting("120000", "segment_ms", 120_000),
    "log.segment.bytes": topic_setting("2097152", "segment_bytes", 2_097_152),
    "log.segment.delete.delay.ms": topic_setting("14", "file_delete_delay_ms", 14),
    "max.connection.creation.rate": Observation(
        "900", lambda broker: broker.server.limits.creations_max, 900
    ),
    "max.connections": Observation("901", lambda broker: broker.server.limits.connections_max, 901),
    "max.connections.per.ip": Observation("902", lambda broker: broker.server.limits.per_host_max, 902),
    "max.connections.per.ip.overrides": Observation(
        "10.1.2.3:4", lambda broker: broker.server.limits.per_host_overrides, {"10.1.2.3": 4}
    ),
    "message.max.bytes": Observation(
        "4321", lambda broker: broker.replicas.leader(TOPIC, 0).rules.max_batch_bytes, 4321
    ),
    "min.insync.replicas": topic_setting("2", "min_insync_replicas", 2),
    "num.replica.fetchers": Observation("3", lambda broker: broker.following.settings.fetchers_per_leader, 3),
    "producer.id.expiration.ms": Observation(
        "5555", lambda broker: broker.logs.producer_id_expiration_ms, 5555
    ),
    "replica.alter.log.dirs.io.max.bytes.per.second": Observation(
        "54321", lambda broker: broker.log_moves.throttle.bytes_per_second, 54_321
    ),
    "sasl.mechanism.inter.broker.protocol": Observation(
        "PLAIN", lambda broker: broker.config["sasl.mechanism.inter.broker.protocol"], "PLAIN"
    ),
    "ssl.endpoint.identification.algorithm": Observation(
        "", lambda broker: broker.config["ssl.endpoint.identification.algorithm"], ""
    ),
    "ssl.protocol": Observation("TLSv1.2", lambda broker: broker.config["ssl.protocol"], "TLSv1.2"),
    "unclean.leader.election.enable": topic_setting("true", "unclean_leader_election_enable", True),
}
# These have a test of their own below.
SEEN_FROM_OUTSIDE = {
    "listeners",
    "listener.security.protocol.map",
    # test_authentication.py
    "sasl.enabled.mechanisms",
    "transaction.partition.verification.enable",
    # Seen by the certificates that clients get: tests/unit/broker/test_tls_endpoint.py.
    *TLS_KEYS,
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VisibleBroker]:
    directory = tmp_path_factory.mktemp("dynamic")
    overrides = {"advertised.listeners": "PLAINTEXT://127.0.0.1:0", "group.initial.rebalance.delay.ms": "0"}
    with visible_broker(directory, overrides) as broker, RawClient("127.0.0.1", broker.port) as client:
        new_topic(client, name=TOPIC)
        yield broker


@pytest.fixture
def client(running: VisibleBroker) -> Iterator[RawClient]:
    with RawClient("127.0.0.1", running.port) as client:
        yield client


def alter(client: RawClient, changes: dict[str, str | None], resource: str = "") -> tuple[int, str | None]:
    """Set dynamic settings, or delete them where the value is None; the error, or 0."""
    configs = [
        AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
        for name, value in changes.items()
    ]
    named = AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name=resource, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[named])
    (answer,) = client.call(INCREMENTAL_ALTER_CONFIGS, 1, request).responses
    return int(answer.error_code), answer.error_message


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.01)


def dynamic_keys() -> set[str]:
    return {name for name, key in BROKER_KEYS.items() if key.mode != READ_ONLY and key.honoured}


def test_the_table_has_every_dynamic_key_that_has_an_effect() -> None:
    assert set(TAKEN_BY) == dynamic_keys()
    assert set(TAKEN_BY.values()) == set(Component)
    # The other three need no call: see Component.
    assert set(TAKERS) == set(Component) - {Component.PARTITIONS, Component.REQUESTS, Component.PEERS}


def test_every_dynamic_key_is_observed() -> None:
    assert OBSERVATIONS.keys() | SEEN_FROM_OUTSIDE == dynamic_keys()
    assert not OBSERVATIONS.keys() & SEEN_FROM_OUTSIDE


@pytest.mark.parametrize("key", OBSERVATIONS)
def test_a_change_is_taken_and_taken_back(key: str, running: VisibleBroker, client: RawClient) -> None:
    value, look, expected = OBSERVATIONS[key]
    resource = "1" if BROKER_KEYS[key].mode == PER_BROKER else ""
    before = running.look(look)
    assert before != expected
    assert alter(client, {key: value}, resource) == (0, None)
    assert running.look(look) == expected
    assert alter(client, {key: None}, resource) == (0, None)
    until(lambda: running.look(look) == before)


def test_a_default_of_topics_is_taken_by_a_connection_that_produces(client: RawClient) -> None:
    """The short way of Produce remembers what a connection may write; a change makes it ask again."""
    key, value, error = "message.max.bytes", "100", ErrorCode.MESSAGE_TOO_LARGE
    topic, batch = new_topic(client), batch_of(b"x" * 100)
    for _ in range(2):
        assert produce_batch(client, topic, batch).error_code == ErrorCode.NONE
        assert alter(client, {key: value}) == (0, None)
        assert produce_batch(client, topic, batch).error_code == error
        assert alter(client, {key: None}) == (0, None)


def test_transactions_are_verified_or_not(running: VisibleBroker, client: RawClient) -> None:
    key = "transaction.partition.verification.enable"
    topic = new_topic(client)
    producer = RawTransactional(client, "unverified", OLD)
    producer.init()
    assert producer.produce(topic, b"refused") == ErrorCode.TRANSACTION_ABORTABLE
    producer.sequences.clear()
    assert alter(client, {key: "false"}) == (0, None)
    assert producer.produce(topic, b"taken") == ErrorCode.NONE
    assert alter(client, {key: None}) == (0, None)


def answers(port: int) -> bool:
    try:
        with RawClient("127.0.0.1", port) as client:
            return bool(client.call(18, 0, ApiVersionsRequest()).error_code == ErrorCode.NONE)
    except ConnectionError:
        return False


def test_a_listener_is_opened_and_closed(running: VisibleBroker, client: RawClient) -> None:
    port = free_ports(1)[0]
    listeners = f"PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:{port}"
    code, message = alter(client, {"listeners": listeners}, "1")
    assert code == ErrorCode.INVALID_REQUEST
    assert message is not None and "listener.security.protocol.map gives it no protocol" in message
    protocols = "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"
    changes = {"listener.security.protocol.map": protocols, "listeners": listeners}
    assert alter(client, changes, "1") == (0, None)
    until(lambda: answers(port))
    with RawClient("127.0.0.1", port) as inside:
        inside.call(18, 0, ApiVersionsRequest())
        assert alter(client, dict.fromkeys(changes), "1") == (0, None)
        assert inside.is_closed_by_peer()
    until(lambda: not answers(port))
    assert answers(running.port)


def test_a_listener_whose_port_is_taken_stays_closed_and_the_others_serve(
    running: VisibleBroker, client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        changes = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
            "listeners": f"PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:{port}",
        }
        with caplog.at_level(logging.ERROR):
            assert alter(client, changes, "1") == (0, None)
            until(lambda: "the listener INSIDE stays closed: cannot listen on" in caplog.text)
    # The next change of settings tries it again.
    assert alter(client, {"max.connections": "777"}) == (0, None)
    until(lambda: answers(port))
    assert alter(client, dict.fromkeys(changes), "1") == (0, None)
    assert alter(client, {"max.connections": None}) == (0, None)
    until(lambda: not answers(port))


@pytest.mark.parametrize(
    ("listeners", "sentence"),
    [
        ("PLAINTEXT://127.0.0.1:9999", "The listener PLAINTEXT cannot be changed while the broker runs"),
        ("PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:9998", "A TLS listener needs a key and a certificate"),
    ],
)
def test_a_listener_that_cannot_be_served_is_refused(
    client: RawClient, listeners: str, sentence: str
) -> None:
    code, message = alter(client, {"listeners": listeners}, "1")
    assert code == ErrorCode.INVALID_REQUEST
    assert message is not None and sentence in message


def test_addresses_given_to_clients_stay(tmp_path: Path) -> None:
    """Without advertised.listeners a new listener would be given to clients, which needs a restart."""
    with visible_broker(tmp_path) as broker, RawClient("127.0.0.1", broker.port) as client:
        changes: dict[str, str | None] = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
            "listeners": f"PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:{free_ports(1)[0]}",
        }
        code, message = alter(client, changes, "1")
        assert code == ErrorCode.INVALID_REQUEST
        assert message is not None and "The addresses given to clients cannot be changed" in message


def test_malformed_limits_of_hosts_are_refused(client: RawClient) -> None:
    code, message = alter(client, {"max.connections.per.ip.overrides": "10.1.2.3"})
    assert code == ErrorCode.INVALID_REQUEST
    assert message is not None and "a list of host:count items" in message


def test_dynamic_settings_are_there_after_a_restart(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    overrides = {"advertised.listeners": "PLAINTEXT://127.0.0.1:0"}
    with visible_broker(tmp_path, overrides) as broker, RawClient("127.0.0.1", broker.port) as client:
        changes: dict[str, str | None] = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
            "listeners": f"PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:{port}",
            "log.cleaner.threads": "2",
            "producer.id.expiration.ms": "777",
            "max.connections": "55",
        }
        assert alter(client, changes, "1") == (0, None)
    with visible_broker(tmp_path, overrides) as broker:
        assert answers(port)
        assert broker.look(lambda broker: broker.server.limits.connections_max) == 55
        assert broker.look(lambda broker: broker.logs.producer_id_expiration_ms) == 777
        assert broker.look(lambda broker: len(cleaning_of(broker)._tasks)) == 2
