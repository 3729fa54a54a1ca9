"""What the data source asks of brokers: partitions, offsets, groups, fetches. One client per process.

Spark reuses its Python workers, so this module keeps connections until the process ends. Calls wait for their
answer; the I/O happens in another thread, so that the next fetch can run while rows are made."""

import asyncio
import os
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from barnabas.client.cluster import Cluster, ClusterMetadata
from barnabas.client.config import consumer_config
from barnabas.client.consumer.commits import Commits
from barnabas.client.consumer.lookups import Identity, committed_offsets, offsets_by_time
from barnabas.client.consumer.network import Network
from barnabas.client.errors import ErrorCode, KafkaError, KafkaTimeoutError, error_from
from barnabas.client.runtime import IoThread
from barnabas.client.types import OffsetAndMetadata
from barnabas.ids import TopicPartition
from barnabas.kernels.batches import scan_batches
from barnabas.spark.offsets import Offsets
from barnabas.spark.options import OptionError
from barnabas.spark.settings import Topics
from barnabas.spark.starts import EARLIEST, LATEST
from barnabas.wire.messages import fetch

# Some brokers may not know a new topic yet.
UNKNOWN_TOPIC_ATTEMPTS = 3
SAMPLE_BYTES = 256 * 1024
FETCH_WAIT_MS = 500

_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_T = TypeVar("_T")


class Fetched(NamedTuple):
    """The answer to a fetch of one partition: batches, and the aborted transactions in them as (producer id,
    first offset)."""

    records: memoryview
    aborted: list[tuple[int, int]]


class OffsetsGoneError(Exception):
    """The requested offset is not in the log."""


class Brokers:
    def __init__(self, client: Mapping[str, str]) -> None:
        self._config = consumer_config(client)
        self.servers = client["bootstrap.servers"]
        self._api_seconds = self._config.seconds("default.api.timeout.ms")
        # How many requests are under way.
        self._asking = 0
        self._io = IoThread("barnabas-spark").start()
        self._cluster: Cluster = self._io.call(self._open())
        self._network = Network(self._cluster, None)

    def close(self) -> None:
        self._io.call(self._cluster.close())
        self._io.stop()

    async def _open(self) -> Cluster:
        cluster = Cluster(self._config)
        cluster.listeners.append(self._forget_missing)
        cluster.start()
        return cluster

    @property
    def tracked(self) -> frozenset[str]:
        """The topics that the metadata is to have."""
        return self._cluster.tracked

    def _forget_missing(self, known: ClusterMetadata) -> None:
        """Spark keeps processes that have nothing to do. Without this, they would look for a topic that was
        deleted as long as they live, each with a request a second."""
        if not self._asking:
            missing = (name for name, topic in known.topics.items() if topic.error is _UNKNOWN)
            self._cluster.forget(missing)

    # ---- topics

    def partitions(self, topics: Topics, *, missing_allowed: bool = False) -> frozenset[TopicPartition]:
        """The existing partitions of the topics. A missing topic or partition is an error, unless
        `missing_allowed`."""
        return self._call(lambda: self._partitions(topics, missing_allowed))

    async def _partitions(self, topics: Topics, missing_allowed: bool) -> frozenset[TopicPartition]:
        names = topics.known_names or await self._matching(topics.pattern)
        if not names:
            return frozenset()
        self._cluster.track(names)
        missing: list[str] = []
        for attempt in range(UNKNOWN_TOPIC_ATTEMPTS):
            await asyncio.sleep(self._cluster.backoff.seconds(attempt))
            await self._cluster.refresh()
            known = self._cluster.metadata.topics
            missing = [name for name in names if name not in known or not known[name].partitions]
            refused = [name for name in missing if name in known and known[name].error is _REFUSED]
            if refused:
                text = f"this user may not read {', '.join(refused)} at {self.servers}"
                raise KafkaError(_REFUSED, text)
            if not missing:
                break
        if missing and not missing_allowed:
            raise OptionError(
                f"There is no topic {', '.join(missing)} at {self.servers}: check the name, or create it."
            )
        existing = frozenset(
            TopicPartition(name, info.partition)
            for name in names
            if name not in missing
            for info in self._cluster.metadata.topics[name].partitions
        )
        if not topics.assigned:
            return existing
        absent = sorted(topics.assigned - existing)
        if absent and not missing_allowed:
            raise OptionError(f"There is no partition {', '.join(map(str, absent))} at {self.servers}.")
        return topics.assigned & existing

    async def _matching(self, pattern: str) -> tuple[str, ...]:
        answer = await self._cluster.fetch_metadata(None)
        expression = re.compile(pattern)
        return tuple(
            topic.name
            for topic in answer.topics
            if topic.name and not topic.is_internal and expression.fullmatch(topic.name)
        )

    # ---- offsets

    def ends(self, partitions: Iterable[TopicPartition], *, read_committed: bool) -> Offsets:
        """The offsets after the last record that may be read."""
        return self._offsets(dict.fromkeys(partitions, LATEST), read_committed)

    def starts(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The offsets of the first records."""
        return self._offsets(dict.fromkeys(partitions, EARLIEST), False)

    def at_times(self, times_ms: Mapping[TopicPartition, int]) -> Offsets:
        """The offsets of the first records at or after a time. A partition without such a record is left
        out."""
        return self._offsets(times_ms, False)

    def _offsets(self, times: Mapping[TopicPartition, int], read_committed: bool) -> Offsets:
        """Partitions that were deleted meanwhile are left out."""
        return self._call(self._living_offsets, times, read_committed) if times else {}

    async def _living_offsets(self, times: Mapping[TopicPartition, int], read_committed: bool) -> Offsets:
        living = dict(times)
        for attempt in range(UNKNOWN_TOPIC_ATTEMPTS):
            living = {each: time for each, time in times.items() if self._exists(each)}
            if len(living) == len(times):
                break
            await asyncio.sleep(self._cluster.backoff.seconds(attempt))
            self._cluster.track({topic for topic, _ in times})
            await self._cluster.refresh()
        offsets = await offsets_by_time(self._network, living, int(read_committed))
        return {partition: each.offset for partition, each in offsets.items()}

    def _exists(self, partition: TopicPartition) -> bool:
        topic = self._cluster.metadata.topics.get(partition.topic)
        return topic is not None and topic.partition(partition.partition) is not None

    # ---- groups

    def committed(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The committed offsets of the group; partitions without one are left out."""
        requested = list(partitions)
        network = Network(self._cluster, group)
        return self._call(lambda: committed_offsets(network, requested, Identity())) if requested else {}

    def commit(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        if offsets:
            self._call(Commits(Network(self._cluster, group), Identity).commit, offsets)

    # ---- records

    def fetch(
        self, partition: TopicPartition, offset: int, bytes_max: int, *, read_committed: bool, seconds: float
    ) -> Future[Fetched]:
        """Batches from an offset on. The future ends with the first batches, with OffsetsGoneError, or after
        `seconds` with a timeout."""
        request = (partition, offset, bytes_max, read_committed)

        async def ask() -> Fetched:
            while True:
                fetched = await self._fetch(*request)
                if len(fetched.records):
                    return fetched

        return self._io.run(self._persist(ask, seconds))

    def sample(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        """About how many bytes a record takes in the log, measured on the first batches at the offsets."""
        return self._call(self._samples, offsets)

    async def _samples(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, float]:
        sizes = await asyncio.gather(*(self._sample(*each) for each in offsets.items()))
        return {partition: size for partition, size in zip(offsets, sizes, strict=True) if size > 0}

    async def _sample(self, partition: TopicPartition, offset: int) -> float:
        """0 if it is not known."""
        try:
            fetched = await self._fetch(partition, offset, SAMPLE_BYTES, False)
        except OffsetsGoneError:
            return 0.0
        batches = scan_batches(fetched.records, 0)
        if not batches:
            return 0.0
        first, last = batches[0], batches[-1]
        return sum(batch[1] for batch in batches) / max(last[2] + last[3] + 1 - first[2], 1)

    async def _fetch(
        self, partition: TopicPartition, offset: int, bytes_max: int, read_committed: bool
    ) -> Fetched:
        leader = await self._cluster.leader(partition)
        topic = fetch.FetchTopic(
            topic=partition.topic,
            topic_id=self._network.topic_id(partition.topic),
            partitions=[
                fetch.FetchPartition(
                    partition=partition.partition,
                    current_leader_epoch=leader.epoch,
                    fetch_offset=offset,
                    partition_max_bytes=bytes_max,
                )
            ],
        )
        request = fetch.FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=bytes_max,
            isolation_level=int(read_committed),
            topics=[topic],
            rack_id=self._config["client.rack"],
        )
        answer: fetch.FetchResponse = await self._network.ask(leader.node_id, fetch.API_KEY, request)
        for number in (answer.error_code, *(d.error_code for t in answer.responses for d in t.partitions)):
            if number == ErrorCode.OFFSET_OUT_OF_RANGE:
                raise OffsetsGoneError(f"offset {offset} is not in {partition}")
            if number:
                raise error_from(number, f"{partition} cannot be read: {error_from(number).message}")
        data = answer.responses[0].partitions[0]
        records: Any = data.records
        aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
        return Fetched(memoryview(b"" if records is None else records), aborted)

    # ---- asking

    def _call(self, ask: Callable[..., Awaitable[_T]], *arguments: object) -> _T:
        return self._io.call(self._persist(lambda: ask(*arguments), self._api_seconds))

    async def _persist(self, ask: Callable[[], Awaitable[_T]], seconds: float) -> _T:
        """Ask until there is an answer. Errors that waiting cannot fix are raised."""
        failure: KafkaError | None = None
        bound = asyncio.timeout(seconds)
        self._asking += 1
        try:
            async with bound:
                while True:
                    try:
                        return await ask()
                    except KafkaError as error:
                        if not error.retriable:
                            raise
                        failure = error
                    await self._network.recover()
        except TimeoutError:
            if not bound.expired():
                raise
            why = f"; the last error was: {failure}" if failure is not None else ""
            raise KafkaTimeoutError(f"{self.servers} did not answer within {seconds:g} s{why}") from failure
        finally:
            self._asking -= 1


_BROKERS: dict[tuple[int, frozenset[tuple[str, str]]], Brokers] = {}
_LOCK = threading.Lock()


def brokers_of(client: Mapping[str, str]) -> Brokers:
    """The brokers for these settings: one object per process, and a new one after a fork."""
    key = (os.getpid(), frozenset(client.items()))
    with _LOCK:
        if key not in _BROKERS:
            _BROKERS[key] = Brokers(client)
        return _BROKERS[key]


def close_all() -> None:
    """Close the connections of this process; for tests."""
    with _LOCK:
        while _BROKERS:
            _BROKERS.popitem()[1].close()
