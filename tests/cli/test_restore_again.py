"""A restore that was interrupted is started again: it goes on after what is there, and stores nothing
twice."""

import hashlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.test_backup import backed_up, commit
from tests.clients.broker_process import PROGRAM

import barnabas
from barnabas.cli.backup import appending
from barnabas.cli.backup.appending import PartitionRestore
from barnabas.client.admin import NewTopic, OffsetSpec
from barnabas.client.errors import ErrorCode, KafkaError
from barnabas.records.batch import iter_headers

SECONDS_MAX = 60.0
PREFIX = "again."
PARTITIONS = 2


def fill(
    admin: barnabas.Admin, bootstrap: str, topic: str, configs: dict[str, str], records: int = 200
) -> None:
    admin.create_topics([NewTopic(topic, PARTITIONS, 1, {"retention.ms": "-1", **configs})])
    # Many small batches.
    with barnabas.Producer(bootstrap_servers=bootstrap, batch_size=200) as producer:
        for number in range(records):
            key = b"key %d" % (number // PARTITIONS % 50)
            producer.send(
                topic,
                b"value %d" % number,
                key,
                partition=number % PARTITIONS,
                timestamp=1000 + number,
                headers=[("number", b"%d" % number)],
            )


def checksums(bootstrap: str, topic: str, *, with_times: bool = True) -> dict[int, tuple[int, str]]:
    """By partition: how many records there are, and a checksum of all that is in them."""
    partitions = [barnabas.TopicPartition(topic, number) for number in range(PARTITIONS)]
    digests = {number: hashlib.sha256() for number in range(PARTITIONS)}
    counts = dict.fromkeys(range(PARTITIONS), 0)
    with barnabas.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            for record in consumer.poll(1.0):
                row = (record.timestamp if with_times else 0, record.key, record.value, list(record.headers))
                digests[record.partition].update(repr(row).encode())
                counts[record.partition] += 1
    return {number: (counts[number], digests[number].hexdigest()) for number in range(PARTITIONS)}


def end_offsets(admin: barnabas.Admin, topic: str) -> list[int]:
    partitions = [barnabas.TopicPartition(topic, number) for number in range(PARTITIONS)]
    listed = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return [listed[each].offset for each in partitions]


def restore(bootstrap: str, place: Path) -> list[str]:
    return ["restore", "--bootstrap-server", bootstrap, "--from", str(place), "--prefix", PREFIX]


def restored(run: Run, bootstrap: str, place: Path) -> dict[str, Any]:
    ran = run(*restore(bootstrap, place), "--json")
    assert ran.code == 0, ran.err
    facts: dict[str, Any] = json.loads(ran.out)
    return facts


@pytest.fixture
def interruption(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Until it is undone: each batch is sent alone, and after a few of them restores fail."""
    append = PartitionRestore._append
    sent: list[int] = []

    def fail_later(job: PartitionRestore, window: list[appending.Sendable]) -> None:
        if len(sent) == 7:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION)
        sent.append(len(window))
        append(job, window)

    with monkeypatch.context() as patch:
        patch.setattr(appending, "WINDOW_BYTES", 1)
        patch.setattr(PartitionRestore, "_append", fail_later)
        yield patch


def producers(admin: barnabas.Admin, topic: str) -> set[tuple[int, int, bool]]:
    found = set()
    for number, end in enumerate(end_offsets(admin, topic)):
        offset = 0
        while offset < end:
            read = admin.read_batches(barnabas.TopicPartition(topic, number), offset)
            for _, header in iter_headers(read.records):
                follows = header.base_sequence == header.base_offset
                found.add((header.producer_id, header.producer_epoch, follows))
                offset = header.next_offset
    return found


@pytest.mark.parametrize(
    "configs",
    [
        {},
        {"compression.type": "zstd"},
        {"message.timestamp.type": "LogAppendTime"},
        {"cleanup.policy": "compact"},
    ],
    ids=lambda configs: next(iter(configs), "plain"),
)
def test_it_goes_on(
    run: Run,
    admin: barnabas.Admin,
    topic_name: str,
    tmp_path: Path,
    interruption: pytest.MonkeyPatch,
    configs: dict[str, str],
) -> None:
    bootstrap = ",".join(f"{node.host}:{node.port}" for node in admin.describe_cluster().nodes)
    fill(admin, bootstrap, topic_name, configs)
    commit(admin, f"{topic_name}-early", topic_name, {0: 1, 1: 60})
    backed_up(run, bootstrap, topic_name, str(tmp_path))
    ended = run(*restore(bootstrap, tmp_path))
    assert ended.code == 1
    assert "Run the same command again: it goes on where this one ended." in ended.err
    kept = sum(end_offsets(admin, PREFIX + topic_name))
    assert 0 < kept < 200
    interruption.undo()
    facts = restored(run, bootstrap, tmp_path)
    assert (facts["records"], facts["recordsKept"], facts["groups"]) == (200, kept, 1)
    with_times = "message.timestamp.type" not in configs
    before = checksums(bootstrap, topic_name, with_times=with_times)
    assert checksums(bootstrap, PREFIX + topic_name, with_times=with_times) == before
    committed = admin.list_consumer_group_offsets(f"{topic_name}-early")
    found = [committed[barnabas.TopicPartition(PREFIX + topic_name, number)].offset for number in (0, 1)]
    assert found == [1, 60]
    # One producer from the beginning to the end: a request of the first restore that comes late is refused,
    # or known already.
    ((_, _, follows),) = producers(admin, PREFIX + topic_name)
    assert follows


def test_a_complete_restore_changes_nothing(
    run: Run, admin: barnabas.Admin, bootstrap: str, topic_name: str, tmp_path: Path
) -> None:
    fill(admin, bootstrap, topic_name, {})
    commit(admin, f"{topic_name}-group", topic_name, {0: 5, 1: 5})
    backed_up(run, bootstrap, topic_name, str(tmp_path))
    restored(run, bootstrap, tmp_path)
    # The group goes on reading.
    commit(admin, f"{topic_name}-group", PREFIX + topic_name, {0: 90})
    again = run(*restore(bootstrap, tmp_path))
    assert again.code == 0 and again.out.endswith(" 200 of the records were there already.\n")
    assert checksums(bootstrap, PREFIX + topic_name) == checksums(bootstrap, topic_name)
    committed = admin.list_consumer_group_offsets(f"{topic_name}-group")
    assert committed[barnabas.TopicPartition(PREFIX + topic_name, 0)].offset == 90


@pytest.mark.parametrize("change", ["another", "one more", "deleted"])
def test_other_records_are_left_alone(
    run: Run, admin: barnabas.Admin, bootstrap: str, topic_name: str, tmp_path: Path, change: str
) -> None:
    fill(admin, bootstrap, topic_name, {}, records=20)
    backed_up(run, bootstrap, topic_name, str(tmp_path))
    name = PREFIX + topic_name
    if change == "another":
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])
        problem = f"{name}-0 has other records than the backup, from offset 0 on: delete this topic first"
    else:
        restored(run, bootstrap, tmp_path)
        problem = f"{name}-0 has other records than the backup, from offset 10 on: delete this topic first"
    if change == "deleted":
        admin.delete_records({barnabas.TopicPartition(name, 0): 10})
        problem = f"{name}-0 has had records, and none is left to compare with the backup: delete this"
    else:
        with barnabas.Producer(bootstrap_servers=bootstrap) as producer:
            producer.send(name, b"another", partition=0)
    ends = end_offsets(admin, name)
    refused = run(*restore(bootstrap, tmp_path))
    assert refused.code == 1 and refused.err.startswith(f"Error: {problem}")
    assert end_offsets(admin, name) == ends


def test_killed_in_the_middle(
    run: Run, admin: barnabas.Admin, bootstrap: str, topic_name: str, tmp_path: Path
) -> None:
    records = 60_000
    fill(admin, bootstrap, topic_name, {}, records)
    backed_up(run, bootstrap, topic_name, str(tmp_path))
    for _ in range(2):
        process = subprocess.Popen([PROGRAM, *restore(bootstrap, tmp_path)])
        name = PREFIX + topic_name
        reached = sum(end_offsets(admin, name)) if name in admin.list_topics() else 0
        give_up = time.monotonic() + SECONDS_MAX
        while name not in admin.list_topics() or sum(end_offsets(admin, name)) <= reached:
            assert process.poll() is None and time.monotonic() < give_up
        process.kill()
        assert process.wait() == -signal.SIGKILL
    kept = sum(end_offsets(admin, name))
    assert 0 < kept < records
    facts = restored(run, bootstrap, tmp_path)
    assert facts["records"] == records and facts["recordsKept"] >= kept
    assert checksums(bootstrap, name) == checksums(bootstrap, topic_name)
    assert len(producers(admin, name)) == 1
