"""Backup and restore of topics: what comes back is what consumers could read, and groups go on where they
were."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.unit.spark.tables.object_store import s3_bucket

import barnabas
from barnabas.cli.backup import copying
from barnabas.cli.backup.appending import renumbered
from barnabas.client.admin import ConfigResource, ConfigResourceType, NewTopic, OffsetSpec
from barnabas.client.admin.batches import ProducerIdentity
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.records.batch import crc_is_valid, read_header
from barnabas.records.builder import build_batch, read_records, rebuild_batch

Row = tuple[int, Any, Any, Any, Any]


@pytest.fixture
def topic(admin: barnabas.Admin, bootstrap: str, topic_name: str) -> str:
    """Two partitions: plain and compressed batches, a committed and an aborted transaction, and deleted
    records."""
    admin.create_topics([NewTopic(topic_name, 2, 1, {"retention.ms": "-1", "segment.bytes": "1048577"})])
    for compression in ("none", "lz4"):
        with barnabas.Producer(
            bootstrap_servers=bootstrap, compression_type=compression, linger_ms=20
        ) as producer:
            for number in range(20):
                headers = [("number", str(number).encode()), ("nothing", None)]
                value = None if number == 7 else f"{compression} {number}".encode()
                producer.send(
                    topic_name, value, b"key", partition=0, timestamp=1000 + number, headers=headers
                )
    _transaction(bootstrap, topic_name, b"aborted", is_committed=False)
    _transaction(bootstrap, topic_name, b"committed", is_committed=True)
    admin.delete_records({barnabas.TopicPartition(topic_name, 0): 5})
    return topic_name


def _transaction(bootstrap: str, topic: str, value: bytes, *, is_committed: bool) -> None:
    settings = {"bootstrap_servers": bootstrap, "transactional_id": f"{topic}-{value.decode()}"}
    with barnabas.Producer(**settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for partition in (0, 1):
            for _ in range(3):
                producer.send(topic, value, partition=partition, timestamp=5000)
        if is_committed:
            producer.commit_transaction()
        else:
            producer.flush()
            producer.abort_transaction()


def rows(bootstrap: str, topic: str) -> list[tuple[int, Row]]:
    """What a consumer reads, with the offset of each record."""
    with barnabas.Consumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        partitions = [barnabas.TopicPartition(topic, number) for number in (0, 1)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        found = []
        while any(consumer.position(each) < ends[each] for each in partitions):
            for record in consumer.poll(1.0):
                row = (record.partition, record.timestamp, record.key, record.value, list(record.headers))
                found.append((record.offset, row))
        return sorted(found, key=lambda each: (each[1][0], each[0]))


def commit(admin: barnabas.Admin, group: str, topic: str, offsets: dict[int, int]) -> None:
    admin.alter_consumer_group_offsets(
        group,
        {
            barnabas.TopicPartition(topic, number): barnabas.OffsetAndMetadata(offset, metadata="noted")
            for number, offset in offsets.items()
        },
    )


def backed_up(run: Run, bootstrap: str, topic: str, place: str) -> dict[str, Any]:
    ran = run("backup", "--bootstrap-server", bootstrap, "--topic", topic, "--to", place, "--json")
    assert ran.code == 0, ran.err
    facts: dict[str, Any] = json.loads(ran.out)
    return facts


def restored(run: Run, bootstrap: str, place: str, *options: str) -> str:
    ran = run("restore", "--bootstrap-server", bootstrap, "--from", place, "--prefix", "again.", *options)
    assert ran.code == 0, ran.err
    return ran.out


@pytest.fixture(params=["directory", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "directory":
        yield str(tmp_path / "backup")
        return
    with s3_bucket(monkeypatch) as bucket:
        yield f"{bucket}/some/where"


def test_there_and_back(run: Run, admin: barnabas.Admin, bootstrap: str, topic: str, place: str) -> None:
    before = rows(bootstrap, topic)
    # The first lies in the middle of a batch, the second is after the aborted records, the third is the end.
    offsets = {"middle": before[10][0], "late": before[-1][0], "done": before[-1][0] + 2}
    for name, offset in offsets.items():
        commit(admin, f"{topic}-{name}", topic, {0: min(offset, 49), 1: offset if name != "middle" else 0})
    facts = backed_up(run, bootstrap, topic, place)
    assert (facts["topics"], facts["partitions"], facts["groups"]) == (1, 2, 3)
    assert "match their checksums" in run("restore", "--from", place, "--check").out
    printed = restored(run, bootstrap, place)
    assert (
        f"Restored {len(before)} records of 2 partitions of 1 topics, and the offsets of 3 groups" in printed
    )

    after = rows(bootstrap, f"again.{topic}")
    assert [row for _, row in after] == [row for _, row in before]
    assert [offset for offset, row in after if row[0] == 0] == list(
        range(sum(row[0] == 0 for _, row in before))
    )
    resource = ConfigResource(ConfigResourceType.TOPIC, f"again.{topic}")
    configs = admin.describe_configs([resource])[resource]
    assert (configs["retention.ms"].value, configs["segment.bytes"].value) == ("-1", "1048577")
    for name in offsets:
        committed = admin.list_consumer_group_offsets(f"{topic}-{name}")
        for number in (0, 1):
            old = committed[barnabas.TopicPartition(topic, number)]
            new = committed[barnabas.TopicPartition(f"again.{topic}", number)]
            left = [row for offset, row in before if row[0] == number and offset >= old.offset]
            assert [row for offset, row in after if row[0] == number and offset >= new.offset] == left
            assert new.metadata == "noted"


def test_a_topic_that_has_records_is_left_alone(run: Run, bootstrap: str, topic: str, tmp_path: Path) -> None:
    backed_up(run, bootstrap, topic, str(tmp_path))
    before = rows(bootstrap, topic)
    refused = run("restore", "--bootstrap-server", bootstrap, "--from", str(tmp_path))
    assert refused.code == 1
    assert "has other records than the backup, from offset 0 on: delete this topic first, or" in refused.err
    assert rows(bootstrap, topic) == before


def test_damage_is_found_before_anything_is_changed(
    run: Run, admin: barnabas.Admin, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    backed_up(run, bootstrap, topic, str(tmp_path))
    (file,) = (tmp_path / "topics" / topic / "0").glob("*.log")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    refused = run("restore", "--bootstrap-server", bootstrap, "--from", str(tmp_path), "--prefix", "bad.")
    assert refused.code == 1 and f"{file.name} does not match its checksum" in refused.err
    file.write_bytes(data[:-1])
    assert "bytes instead of" in run("restore", "--from", str(tmp_path), "--check").err
    file.unlink()
    assert "is missing" in run("restore", "--from", str(tmp_path), "--check").err
    manifest = tmp_path / "manifest.json"
    manifest.write_text(manifest.read_text().replace("noted", "other") + " ")
    assert "does not match its checksum" in run("restore", "--from", str(tmp_path), "--check").err
    assert f"bad.{topic}" not in admin.list_topics()


def test_an_interrupted_backup_is_continued(
    run: Run, bootstrap: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "CHUNK_BYTES", 1)
    before = rows(bootstrap, topic)
    complete = copying._ChunkWriter.chunk
    written: list[str] = []

    def interrupted(writer: copying._ChunkWriter) -> Any:
        if len(written) == 2:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
        written.append(str(tmp_path))
        return complete(writer)

    command = (
        "backup",
        "--bootstrap-server",
        bootstrap,
        "--topic",
        topic,
        "--to",
        str(tmp_path),
        "--parallel",
        "1",
    )
    with monkeypatch.context() as patch:
        patch.setattr(copying._ChunkWriter, "chunk", interrupted)
        assert run(*command).code == 1
    assert (
        "is not complete: run the same `barnabas backup`"
        in run("restore", "--from", str(tmp_path), "--check").err
    )
    other = run("backup", "--bootstrap-server", bootstrap, "--topic", "other", "--to", str(tmp_path))
    assert other.code == 1 and "has an interrupted backup of the topics" in other.err
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.glob("topics/*/0/*.log")}
    assert len(kept) >= 2
    assert run(*command).code == 0
    unchanged = [file for file, time in kept.items() if file.stat().st_mtime_ns == time]
    assert len(unchanged) >= 2
    restored(run, bootstrap, str(tmp_path))
    assert [row for _, row in rows(bootstrap, f"again.{topic}")] == [row for _, row in before]
    again = run(*command)
    assert again.code == 1 and "has a complete backup already" in again.err


def test_places_without_a_backup(run: Run, tmp_path: Path) -> None:
    refused = run("restore", "--from", str(tmp_path), "--check")
    assert (refused.code, refused.err) == (
        1,
        f"Error: There is no backup in {tmp_path}: it has no manifest.json.\n",
    )


def test_a_batch_with_gaps_is_made_again() -> None:
    """As compaction leaves it; brokers refuse batches with gaps."""
    identity = ProducerIdentity(7, 0)
    full = build_batch(
        [(100 + number, b"k%d" % number, b"v", [("h", None)]) for number in range(5)],
        base_offset=40,
        compression=3,
        transactional=True,
        producer_id=1,
        producer_epoch=2,
        base_sequence=3,
    )
    whole = renumbered(bytes(full), 0, identity, 11)
    assert whole is not None and whole.offsets == range(40, 45)
    header = read_header(whole.batch)
    assert (header.producer_id, header.base_sequence, header.is_transactional) == (7, 11, False)
    assert crc_is_valid(whole.batch, 0, len(whole.batch))
    records = read_records(full)
    gaps = rebuild_batch(read_header(full), [records[1], records[4]])
    made = renumbered(bytes(gaps), 0, identity, 0)
    assert made is not None and made.offsets == [41, 44]
    assert read_header(made.batch).compression == 3
    assert [(each.offset, each.timestamp, each.key, each.headers) for each in read_records(made.batch)] == [
        (0, 101, b"k1", [("h", None)]),
        (1, 104, b"k4", [("h", None)]),
    ]
    later = renumbered(bytes(full), 43, identity, 0)
    assert later is not None and later.offsets == [43, 44]
    assert renumbered(bytes(rebuild_batch(read_header(full), [])), 0, identity, 0) is None


def test_batches_that_are_sent_again_are_stored_once(admin: barnabas.Admin, topic_name: str) -> None:
    """As after an answer that was lost; more than fit into one round of requests."""
    admin.create_topics([NewTopic(topic_name, 1, 1)])
    partition = barnabas.TopicPartition(topic_name, 0)
    identity = admin.new_producer_identity()
    batches = [
        build_batch(
            [(1, None, b"first", []), (2, None, b"second", [])],
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=2 * number,
        )
        for number in range(8)
    ]
    assert admin.append_batches(partition, batches) == list(range(0, 16, 2))
    assert admin.append_batches(partition, batches[-3:]) == [10, 12, 14]
    assert admin.list_offsets({partition: OffsetSpec.LATEST})[partition].offset == 16
