"""A transactional copy job, while its processes and the broker are killed at random moments.

Whatever happens, a reader of committed records sees each record of the source once, in order."""

import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.clients.broker_process import BrokerProcess
from tests.clients.client import Message
from tests.clients.confluent_client import ConfluentAdmin, ConfluentClient
from tests.clients.copy_job import CopyJobProcess, transformed
from tests.clients.members import places_of
from tests.clients.reading import ends_of, everything

PARTITIONS = 3
SOURCE, TARGET, GROUP = "source", "target", "copiers"
PER_ROUND = 60


@contextmanager
def _jobs(directory: Path, bootstrap: str, count: int) -> Iterator[list[CopyJobProcess]]:
    jobs = [CopyJobProcess(directory, bootstrap, SOURCE, TARGET, GROUP, str(n)) for n in range(count)]
    try:
        yield jobs
    finally:
        for job in jobs:
            job.kill()


def _rounds(broker: BrokerProcess, jobs: list[CopyJobProcess], rounds: int, seed: int) -> int:
    """In each round, produce, wait a moment, and kill a job or the broker; returns the number of records that
    were produced to each partition."""
    chance = random.Random(seed)
    client = ConfluentClient(broker.bootstrap)
    produced = 0
    for _ in range(rounds):
        for job in jobs:
            job.keep_running()
        client.produce(
            SOURCE,
            [
                Message(b"%d" % number, partition=partition)
                for number in range(produced, produced + PER_ROUND)
                for partition in range(PARTITIONS)
            ],
        )
        produced += PER_ROUND
        time.sleep(chance.uniform(0.05, 1.5))
        victim = chance.choice(["job", "job", "broker", "both"])
        if victim != "broker":
            chance.choice(jobs).kill()
        if victim != "job":
            broker.restart(signal.SIGKILL)
    return produced


def _wait_for_the_copy(bootstrap: str, jobs: list[CopyJobProcess], produced: int) -> None:
    """Wait until the group has committed the whole source; a job that ends is started again."""
    deadline = time.monotonic() + 90
    done = {place: produced for place in places_of(SOURCE, PARTITIONS)}
    while _committed(bootstrap) != done:
        for job in jobs:
            job.keep_running()
        tails = "\n".join(job.log_tail() for job in jobs)
        assert time.monotonic() < deadline, (
            f"not all is copied: {_committed(bootstrap)} of {produced}\n{tails}"
        )
        time.sleep(0.2)


def _committed(bootstrap: str) -> dict[tuple[str, int], int]:
    from tests.clients import kafka_python_library as kafka_python

    admin = kafka_python.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        committed = admin.list_group_offsets({GROUP: None})[GROUP]
        return {(place.topic, place.partition): value.offset for place, value in committed.items()}
    finally:
        admin.close()


def _judge(broker: BrokerProcess, produced: int) -> None:
    bootstrap = broker.bootstrap
    for partition in range(PARTITIONS):
        records = everything(bootstrap, TARGET, isolation="read_committed", first=partition)
        assert records == [transformed(b"%d" % number) for number in range(produced)]
    # No transaction hangs: readers of committed records can read to the end.
    stable = ends_of(bootstrap, TARGET, PARTITIONS, "read_committed")
    assert stable == ends_of(bootstrap, TARGET, PARTITIONS, "read_uncommitted")


def _copy(broker: BrokerProcess, directory: Path, rounds: int, seed: int, job_count: int) -> None:
    for topic in (SOURCE, TARGET):
        ConfluentAdmin(broker.bootstrap).create_topic(topic, PARTITIONS)
    with _jobs(directory, broker.bootstrap, job_count) as jobs:
        produced = _rounds(broker, jobs, rounds, seed)
        _wait_for_the_copy(broker.bootstrap, jobs, produced)
        _judge(broker, produced)
        broker.restart(signal.SIGKILL)
        _judge(broker, produced)


@pytest.mark.parametrize("job_count", [1, 2])
def test_every_record_is_copied_once(own_quick_broker: BrokerProcess, tmp_path: Path, job_count: int) -> None:
    _copy(own_quick_broker, tmp_path, rounds=4, seed=job_count, job_count=job_count)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_record_is_copied_once_over_many_rounds(
    own_quick_broker: BrokerProcess, tmp_path: Path
) -> None:
    _copy(own_quick_broker, tmp_path, rounds=120, seed=time.time_ns() % 2**32, job_count=2)
