"""The tables: facts of Kafka 4.3, and rules that every row keeps."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from barnabas.config.broker import BROKER_KEYS, SUBJECTS
from barnabas.config.definition import (
    CLUSTER_WIDE,
    INT_MAX,
    LONG_MAX,
    PER_BROKER,
    READ_ONLY,
    ConfigKey,
    Type,
    accepted,
    table,
)
from barnabas.config.keys_topic import TOPIC_KEYS
from barnabas.config.parsing import parse, render

ROOT = Path(__file__).resolve().parents[3]
ALL_KEYS = [*BROKER_KEYS.values(), *TOPIC_KEYS.values()]


@pytest.mark.parametrize(
    ("name", "kind", "default", "mode"),
    [
        ("log.segment.bytes", Type.INT, 1 << 30, CLUSTER_WIDE),
        ("log.retention.hours", Type.INT, 168, READ_ONLY),
        ("log.retention.ms", Type.LONG, None, CLUSTER_WIDE),
        ("log.retention.bytes", Type.LONG, -1, CLUSTER_WIDE),
        ("log.dir", Type.LIST, ("/tmp/kafka-logs",), READ_ONLY),
        ("log.dirs", Type.LIST, None, READ_ONLY),
        ("message.max.bytes", Type.INT, 1048588, CLUSTER_WIDE),
        ("socket.request.max.bytes", Type.INT, 100 * 1024 * 1024, READ_ONLY),
        ("fetch.max.bytes", Type.INT, 55 * 1024 * 1024, READ_ONLY),
        ("max.incremental.fetch.session.cache.slots", Type.INT, 1000, READ_ONLY),
        ("max.connections", Type.INT, INT_MAX, CLUSTER_WIDE),
        ("connections.max.idle.ms", Type.LONG, 600_000, READ_ONLY),
        ("auto.create.topics.enable", Type.BOOLEAN, True, READ_ONLY),
        ("num.partitions", Type.INT, 1, READ_ONLY),
        ("min.insync.replicas", Type.INT, 1, CLUSTER_WIDE),
        ("log.message.timestamp.after.max.ms", Type.LONG, 3_600_000, CLUSTER_WIDE),
        ("log.message.timestamp.before.max.ms", Type.LONG, LONG_MAX, CLUSTER_WIDE),
        ("num.recovery.threads.per.data.dir", Type.INT, 2, CLUSTER_WIDE),
        ("producer.id.expiration.ms", Type.INT, 86_400_000, CLUSTER_WIDE),
        ("offsets.topic.num.partitions", Type.INT, 50, READ_ONLY),
        ("offsets.topic.replication.factor", Type.SHORT, 3, READ_ONLY),
        ("transaction.state.log.min.isr", Type.INT, 2, READ_ONLY),
        ("group.initial.rebalance.delay.ms", Type.INT, 3000, READ_ONLY),
        ("group.consumer.assignors", Type.LIST, ("uniform", "range"), READ_ONLY),
        ("replica.lag.time.max.ms", Type.LONG, 30_000, READ_ONLY),
        ("zookeeper.session.timeout.ms", Type.INT, 18_000, READ_ONLY),
        ("ssl.keystore.password", Type.PASSWORD, None, PER_BROKER),
        ("listeners", Type.LIST, ("PLAINTEXT://localhost:9092",), PER_BROKER),
        ("log.cleaner.min.cleanable.ratio", Type.DOUBLE, 0.5, CLUSTER_WIDE),
    ],
)
def test_broker_facts(name: str, kind: Type, default: Any, mode: str) -> None:
    key = BROKER_KEYS[name]
    assert (key.type, key.default, key.mode) == (kind, default, mode)


def test_the_topic_table_has_the_keys_of_kafka() -> None:
    assert {name for name, key in TOPIC_KEYS.items() if not key.internal} == set(
        [
            "cleanup.policy",
            "compression.gzip.level",
            "compression.lz4.level",
            "compression.type",
            "compression.zstd.level",
            "delete.retention.ms",
            "file.delete.delay.ms",
            "flush.messages",
            "flush.ms",
            "follower.replication.throttled.replicas",
            "index.interval.bytes",
            "leader.replication.throttled.replicas",
            "local.retention.bytes",
            "local.retention.ms",
            "max.compaction.lag.ms",
            "max.message.bytes",
            "message.timestamp.after.max.ms",
            "message.timestamp.before.max.ms",
            "message.timestamp.type",
            "min.cleanable.dirty.ratio",
            "min.compaction.lag.ms",
            "min.insync.replicas",
            "preallocate",
            "remote.log.copy.disable",
            "remote.log.delete.on.disable",
            "remote.storage.enable",
            "retention.bytes",
            "retention.ms",
            "segment.bytes",
            "segment.index.bytes",
            "segment.jitter.ms",
            "segment.ms",
            "unclean.leader.election.enable",
        ]
    )


@pytest.mark.parametrize("key", ALL_KEYS, ids=lambda key: key.name)
def test_a_default_survives_its_own_text_and_check(key: ConfigKey) -> None:
    text = render(key.default)
    # Three KRaft keys must not be set to nothing, and may be left out: Kafka gives them no default.
    if text is not None and key.name not in ("process.roles", "controller.listener.names"):
        assert parse(key, text) == key.default


@pytest.mark.parametrize("key", ALL_KEYS, ids=lambda key: key.name)
def test_every_row_says_one_thing_in_a_sentence(key: ConfigKey) -> None:
    assert key.doc.endswith(".") and key.doc[0].isupper()


def test_no_key_is_in_two_subjects() -> None:
    assert sum(len(keys) for keys in SUBJECTS.values()) == len(BROKER_KEYS)


@pytest.mark.parametrize("key", TOPIC_KEYS.values(), ids=lambda key: key.name)
def test_a_topic_key_inherits_from_broker_keys_of_its_kind(key: ConfigKey) -> None:
    for synonym in key.synonyms:
        broker_type = BROKER_KEYS[synonym].type
        assert broker_type is key.type or {broker_type, key.type} == {Type.INT, Type.LONG}


def test_a_table_with_a_missing_text_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        table(accepted(Type.INT, "a", 1))
    with pytest.raises(TypeError, match="a row and then its text"):
        table("text", accepted(Type.INT, "a", 1))


def test_the_committed_document_is_current() -> None:
    path = ROOT / "tools" / "write_configuration_docs.py"
    spec = importlib.util.spec_from_file_location("write_configuration_docs", path)
    assert spec is not None and spec.loader is not None
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    committed = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert committed == writer.document(), "run: python -m tools.write_configuration_docs"
