"""Looks at the cluster every few seconds, and keeps what it saw: the pages are made from that.

So a list of thousands of topics costs no request to a broker, and a page still has something to show when
brokers do not answer. After each look the sampler rests for many times as long as the look took, so that a
large cluster is looked at less often, not at a higher cost."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, TypeVar

from barnabas.client.admin import (
    AdminError,
    ConfigResource,
    ConfigResourceType,
    LogDirDescription,
    OffsetSpec,
    PartitionReassignment,
)
from barnabas.client.aio.admin import AsyncAdmin
from barnabas.client.errors import ClosedError, DisconnectedError, KafkaError
from barnabas.client.metadata import ClusterMetadata, TopicMetadata
from barnabas.client.types import Node, TopicPartition
from barnabas.console.broadcasting import Broadcast
from barnabas.console.group_sampling import GroupSampler
from barnabas.console.series import Counter, Rates, now_ms
from barnabas.console.timeline import Event, Timeline

_log = logging.getLogger(__name__)

# A look may take this share of the time of a processor.
SHARE_MAX = 0.1
ANSWER_SECONDS = 5.0
# Sizes and first offsets are looked at every third time, settings of topics every twelfth time.
SIZES_EVERY = 3
CONFIGS_EVERY = 12
TOPIC_KEYS = ("cleanup.policy", "min.insync.replicas")
CLUSTER = ""
"""The name under which the rates of all topics together are kept; no topic has it."""

_K = TypeVar("_K")
_V = TypeVar("_V")


class Sampler:
    """What is public here may be empty until the first look is done; `ready()` waits for it."""

    def __init__(self, admin: AsyncAdmin, sample_seconds: float) -> None:
        self._admin = admin
        self._seconds = sample_seconds
        self.events = Broadcast()
        self.timeline = Timeline(self._publish_event)
        self.groups = GroupSampler(admin, self, sample_seconds * 2)
        self.metadata = ClusterMetadata()
        self.brokers: dict[int, Node] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.starts: dict[TopicPartition, int] = {}
        self.log_dirs: dict[int, dict[str, LogDirDescription]] = {}
        self.sizes: dict[TopicPartition, int] = {}
        self.topic_configs: dict[str, dict[str, str]] = {}
        self.reassignments: dict[TopicPartition, PartitionReassignment] = {}
        self.messages = Rates(sample_seconds)
        self.bytes = Rates(sample_seconds * SIZES_EVERY)
        self.stale_since_ms: int | None = None
        self.problem: KafkaError | None = None
        self._counters = Counter(), Counter()
        self._looks = 0
        self._looked_ms = now_ms()
        self._first = asyncio.Event()
        self._wanted = asyncio.Event()
        self._looking = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())
        self.groups.start()

    async def stop(self) -> None:
        self.events.end()
        await self.groups.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def ready(self) -> None:
        """Wait for the first look. Raises its error if there is nothing to show."""
        await self._first.wait()
        if not self.metadata.nodes:
            self.check_answering()

    def check_answering(self) -> None:
        """Raise the problem, if there is one: no broker answers."""
        if self.problem is not None:
            # A new object each time: one that is raised again and again keeps all places where it was raised.
            raise DisconnectedError(self.problem.message)

    async def ready_or_failed(self) -> None:
        await self._first.wait()

    async def refresh_topics(self) -> None:
        """Look at the topics again now: something has just changed them."""
        async with self._looking:
            await self._look_at_metadata()
        self._wanted.set()

    # ---- looking

    async def _run(self) -> None:
        while True:
            started = time.process_time()
            try:
                async with self._looking:
                    await self._look()
            except ClosedError:
                return
            except KafkaError as error:
                self._note_failure(error)
            except Exception:
                _log.exception("a look at the cluster failed")
            self._first.set()
            # Time of the processor: to wait for a broker that is down costs nothing.
            took = time.process_time() - started
            self._wanted.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(self._seconds, took / SHARE_MAX)):
                    await self._wanted.wait()

    def _note_failure(self, error: KafkaError) -> None:
        if self.problem is None:
            _log.warning("the cluster does not answer: %s", error.message)
        self.problem = error
        if self.stale_since_ms is None:
            self.stale_since_ms = self._looked_ms
        self._publish_sample(None, None)

    async def _look(self) -> None:
        await self._look_at_metadata()
        # Enough for a first page; sizes and rates come later.
        self._first.set()
        number, self._looks = self._looks, self._looks + 1
        await self._look_at_ends()
        if number % SIZES_EVERY == 0:
            await self._look_at_sizes()
        is_due = number % CONFIGS_EVERY == 0
        await self._look_at_configs(
            name for name in self.metadata.topics if is_due or name not in self.topic_configs
        )
        moving = await _or_nothing(self._admin.list_partition_reassignments(timeout=ANSWER_SECONDS))
        self.reassignments = dict(moving)
        self.timeline.take_reassignments(moving)
        self._publish_sample(self.messages.last(CLUSTER), self.bytes.last(CLUSTER))

    async def _look_at_metadata(self) -> None:
        metadata = await self._admin.fetch_metadata(timeout=ANSWER_SECONDS)
        self.metadata = metadata
        self.brokers |= metadata.nodes
        self.timeline.take_metadata(metadata)
        self._looked_ms = now_ms()
        if self.problem is not None:
            _log.info("the cluster answers again")
        self.stale_since_ms = self.problem = None

    async def _look_at_ends(self) -> None:
        led = list(self._led_partitions())
        found = await _what_there_is(
            self._admin.list_offsets(dict.fromkeys(led, OffsetSpec.LATEST), timeout=ANSWER_SECONDS)
        )
        # What is not known now was known before.
        self.ends = {each: self.ends[each] for each in led if each in self.ends} | {
            partition: listed.offset for partition, listed in found.items()
        }
        totals = _sums_by_topic(self.ends)
        rates = self._counters[0].rates(totals)
        self.messages.add(now_ms(), {**rates, CLUSTER: sum(rates.values())})

    async def _look_at_sizes(self) -> None:
        led = list(self._led_partitions())
        found = await _what_there_is(
            self._admin.list_offsets(dict.fromkeys(led, OffsetSpec.EARLIEST), timeout=ANSWER_SECONDS)
        )
        self.starts = {each: self.starts[each] for each in led if each in self.starts} | {
            partition: listed.offset for partition, listed in found.items()
        }
        directories = await _what_there_is(
            self._admin.describe_log_dirs(list(self.metadata.nodes), timeout=ANSWER_SECONDS)
        )
        self.log_dirs |= directories
        self.sizes = self._leader_sizes()
        rates = self._counters[1].rates(_sums_by_topic(self.sizes))
        self.bytes.add(now_ms(), {**rates, CLUSTER: sum(rates.values())})

    async def _look_at_configs(self, topics: Iterable[str]) -> None:
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in topics]
        if not resources:
            return
        # Those that this user must not see are not asked for again each time.
        self.topic_configs |= {each.name: {} for each in resources if each.name not in self.topic_configs}
        found = await _what_there_is(
            self._admin.describe_configs(
                resources, keys=TOPIC_KEYS, include_synonyms=False, timeout=ANSWER_SECONDS
            )
        )
        self.topic_configs |= {
            resource.name: {name: entry.value or "" for name, entry in entries.items()}
            for resource, entries in found.items()
        }
        for name in self.topic_configs.keys() - self.metadata.topics.keys():
            del self.topic_configs[name]

    # ---- for the pages

    def topic(self, name: str) -> TopicMetadata | None:
        return self.metadata.topics.get(name)

    async def found_topic(self, name: str) -> TopicMetadata | None:
        """As `topic`, also for one that was made since the last look."""
        if name not in self.metadata.topics and self.problem is None:
            await self.refresh_topics()
        return self.metadata.topics.get(name)

    def min_in_sync(self, topic: str) -> int:
        value = self.topic_configs.get(topic, {}).get("min.insync.replicas", "")
        return int(value) if value.isdecimal() else 1

    def is_alive(self, broker: int) -> bool:
        return broker in self.metadata.nodes and self.problem is None

    # ---- helpers

    def _led_partitions(self) -> Iterable[TopicPartition]:
        for topic in self.metadata.topics.values():
            for partition in topic.partitions:
                if partition.leader is not None:
                    yield partition.topic_partition

    def _leader_sizes(self) -> dict[TopicPartition, int]:
        sizes: dict[TopicPartition, int] = {}
        for topic in self.metadata.topics.values():
            for partition in topic.partitions:
                leader = partition.leader.id if partition.leader is not None else -1
                for directory in self.log_dirs.get(leader, {}).values():
                    info = directory.replicas.get(partition.topic_partition)
                    if info is not None and not info.is_future:
                        sizes[partition.topic_partition] = info.size
        return sizes

    def _publish_sample(self, messages: float | None, size: float | None) -> None:
        self.events.publish(
            "sample",
            {
                "time_ms": now_ms(),
                "messages_per_second": messages,
                "bytes_per_second": size,
                "stale_since_ms": self.stale_since_ms,
            },
        )

    def _publish_event(self, event: Event) -> None:
        self.events.publish("cluster", event)


def _sums_by_topic(values: Mapping[TopicPartition, int]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for (topic, _), value in values.items():
        sums[topic] = sums.get(topic, 0) + value
    return sums


async def _what_there_is(asked: Awaitable[Mapping[_K, _V]]) -> Mapping[_K, _V]:
    """The results of those that answered; the others are down, or this user must not see them."""
    try:
        return await asked
    except AdminError as error:
        return error.results
    except ClosedError:
        raise
    except KafkaError as error:
        _log.debug("a part of the look at the cluster failed: %s", error.message)
        return {}


async def _or_nothing(asked: Awaitable[dict[Any, _V]]) -> dict[Any, _V]:
    return dict(await _what_there_is(asked))
