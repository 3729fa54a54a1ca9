"""`barnabas replica-verification`: compares the replicas of partitions, as Kafka's tool does."""

import argparse
import time
from collections.abc import Mapping
from datetime import datetime

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError
from barnabas.cli.topic_filter import chosen
from barnabas.client.admin import Admin
from barnabas.client.admin.replicas import ReplicaData
from barnabas.client.types import TopicPartition
from barnabas.errors import KafkaError
from barnabas.records.batch import BatchHeader, iter_headers

DESCRIPTION = """\
Compare the replicas of partitions up to the high watermark, batch by batch, until Ctrl-C, or with --once up
to what is there now. Differences are printed; the exit code is 1 if there was one."""
EXAMPLES = """\
  barnabas replica-verification --broker-list localhost:9092 --topics-include orders
  barnabas replica-verification --broker-list localhost:9092 --time -2 --once      all records, then end
"""
LATEST = -1

Replicas = Mapping[TopicPartition, list[int]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, server_flags=("--broker-list", "--bootstrap-server"))
    for flag, default, text in (
        ("--fetch-size", 1 << 20, "bytes of one partition in one fetch"),
        ("--max-wait-ms", 1000, "pause between two comparisons when there is nothing new"),
        ("--time", LATEST, "begin at this timestamp in ms; -1 is the end, -2 the beginning"),
        ("--report-interval-ms", 30_000, "time between two reports"),
    ):
        parser.add_argument(flag, type=int, default=default, metavar="N", help=text)
    parser.add_argument("--topics-include", default=".*", metavar="REGEX", help="the topics to compare")
    parser.add_argument("--once", action="store_true", help="end when all that is there now is compared")


def run(options: argparse.Namespace) -> int:
    with admin_of(options) as admin:
        names = chosen(admin.list_topics(include_internal=True), options.topics_include)
        if not names:
            raise ToolError(f"No topic matches --topics-include {options.topics_include}.")
        replicas = {
            TopicPartition(name, info.partition): [node.id for node in info.replicas]
            for name, topic in admin.describe_topics(names).items()
            for info in topic.partitions
        }
        verification = Verification(admin, replicas, options.fetch_size)
        verification.begin_at(options.time)
        _say("verification process is started")
        return _verify(verification, options)


def _verify(verification: "Verification", options: argparse.Namespace) -> int:
    report_at = time.monotonic() + options.report_interval_ms / 1000
    while True:
        has_moved = verification.step()
        is_done = options.once and verification.lag == 0
        if is_done or time.monotonic() >= report_at:
            report_at += options.report_interval_ms / 1000
            _say(verification.report())
        if is_done:
            return 1 if verification.differences else 0
        if not has_moved:
            time.sleep(options.max_wait_ms / 1000)


class Verification:
    """Compares the batches of all replicas of each partition, from the offsets on that were reached."""

    def __init__(self, admin: Admin, replicas: Replicas, fetch_bytes: int) -> None:
        self._admin = admin
        self._replicas = replicas
        self._fetch_bytes = fetch_bytes
        self.offsets: dict[TopicPartition, int] = {}
        self._lags: dict[TopicPartition, int] = {}
        self.differences = 0

    @property
    def lag(self) -> int:
        """The largest number of records of a partition that are not compared yet."""
        return max(self._lags.values(), default=0)

    def begin_at(self, timestamp: int) -> None:
        listed = self._admin.list_offsets(dict.fromkeys(self._replicas, timestamp))
        ends = self._admin.list_offsets(dict.fromkeys(self._replicas, LATEST))
        for partition, start in listed.items():
            # If there is no record after the timestamp, begin at the end.
            self.offsets[partition] = start.offset if start.offset >= 0 else ends[partition].offset

    def step(self) -> bool:
        """Read once from each broker, and compare. Returns whether any offset has moved."""
        brokers = {broker for ids in self._replicas.values() for broker in ids}
        answers = {broker: self._read(broker) for broker in brokers}
        before = dict(self.offsets)
        for partition, ids in self._replicas.items():
            data = {broker: answers[broker].get(partition) for broker in ids}
            self._compare(
                partition, {id_: each for id_, each in data.items() if isinstance(each, ReplicaData)}
            )
        return before != self.offsets

    def _read(self, broker: int) -> dict[TopicPartition, ReplicaData | KafkaError]:
        """The replicas of a broker. One that is down delays the comparison until it is back."""
        offsets = {
            partition: self.offsets[partition] for partition, ids in self._replicas.items() if broker in ids
        }
        try:
            return self._admin.read_replicas(broker, offsets, bytes_max=self._fetch_bytes)
        except KafkaError as error:
            _say(f"broker {broker} cannot be read: {error}")
            return {}

    def _compare(self, partition: TopicPartition, replicas: dict[int, ReplicaData]) -> None:
        watermarks = [data.high_watermark for data in replicas.values()]
        self._lags[partition] = max(watermarks, default=0) - self.offsets[partition]
        if len(replicas) < len(self._replicas[partition]):
            self._lags[partition] = max(1, self._lags[partition])
            return
        limit = min(watermarks)
        headers = {id_: _headers(data.records, limit) for id_, data in replicas.items()}
        for batches in zip(*headers.values(), strict=False):
            self._compare_batches(partition, dict(zip(headers, batches, strict=True)))
            self.offsets[partition] = batches[0].next_offset
        self._lags[partition] = max(watermarks) - self.offsets[partition]

    def _compare_batches(self, partition: TopicPartition, batches: dict[int, BatchHeader]) -> None:
        (first_id, first), *others = batches.items()
        for other_id, other in others:
            if first.last_offset != other.last_offset:
                _say(
                    f"partition {partition}: replica {first_id}'s offset {first.last_offset} doesn't match "
                    f"replica {other_id}'s offset {other.last_offset}"
                )
                raise ToolError(f"The replicas of {partition} have different batches.")
            if first.crc != other.crc:
                self.differences += 1
                _say(
                    f"partition {partition} has unmatched checksum at offset {first.last_offset}; replica "
                    f"{first_id}'s checksum {first.crc}; replica {other_id}'s checksum {other.crc}"
                )

    def report(self) -> str:
        partition = max(self._lags, key=lambda each: self._lags[each])
        return (
            f"max lag is {self.lag} for partition {partition} at offset {self.offsets[partition]} "
            f"among {len(self._replicas)} partitions"
        )


def _headers(records: bytes, limit: int) -> list[BatchHeader]:
    return [header for _, header in iter_headers(records) if header.last_offset < limit]


def _say(sentence: str) -> None:
    now = datetime.now()
    print(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}: {sentence}", flush=True)
