"""The consumer groups this broker coordinates: their settings, their view of topics, expired offsets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.broker.authorization.authorizer import UNASKED
from barnabas.broker.coordinators import Coordinator
from barnabas.broker.later import Later
from barnabas.config.group import GroupConfig, group_config
from barnabas.coordination.runtime import Shard
from barnabas.coordination.step import Step
from barnabas.errors import KafkaError
from barnabas.groups.machine import ClientInfo, GroupMachine
from barnabas.groups.settings import GroupSettings
from barnabas.ids import OFFSETS_TOPIC, Uuid
from barnabas.metadata.parts import GROUP_RESOURCE
from barnabas.metadata.topics import NewTopic
from barnabas.security.acls import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.call import Call
    from barnabas.broker.session import Session
    from barnabas.config.values import BrokerConfig
    from barnabas.metadata.difference import Difference

logger = logging.getLogger(__name__)

MINUTE_MS = 60_000
# How many groups are looked at before others get their turn.
GROUPS_PER_STEP = 100
# The pause after a step whose records could not be written.
RETRY_SECONDS = 1.0


class ImageTopics:
    """The topics of the newest metadata image, as groups see them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        # Whose request is decided.
        self.viewer: Session | None = None

    def partition_count(self, topic: str) -> int | None:
        image = self._broker.image.topic(topic)
        return None if image is None else len(image.partitions)

    def topic_id(self, topic: str) -> Uuid | None:
        image = self._broker.image.topic(topic)
        return None if image is None else image.id

    def topic_name(self, topic_id: Uuid) -> str | None:
        image = self._broker.image.topic_by_id(topic_id)
        return None if image is None else image.name

    def names(self) -> Iterable[str] | None:
        authorizer, names = self._broker.authorizer, self._broker.image.topics
        if not authorizer.is_enabled:
            return names
        viewer = self.viewer
        if viewer is None:
            return None
        describe = (Operation.DESCRIBE, ResourceType.TOPIC)
        return [name for name in names if authorizer.allows(viewer, *describe, name, UNASKED)]


class GroupCoordinator(Coordinator[GroupMachine]):
    def __init__(self, broker: Broker) -> None:
        settings = replace(
            group_settings(broker.config),
            of_group=lambda name: _config_of(broker, name),
            record_bytes_max=lambda: broker.topic_config(OFFSETS_TOPIC, broker.image).max_message_bytes,
        )
        self._topics = topics = ImageTopics(broker)
        super().__init__(
            broker,
            offsets_topic(broker.config),
            lambda leader_epoch: GroupMachine(settings, topics),
            commit_timeout_ms=broker.config["offsets.commit.timeout.ms"],
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._check_seconds = broker.config["offsets.retention.check.interval.ms"] / 1000

    @contextmanager
    def seen_by(self, session: Session) -> Iterator[None]:
        """Decide a request of this peer: patterns find only topics that it may see."""
        self._topics.viewer = session
        try:
            yield
        finally:
            self._topics.viewer = None

    def start(self) -> None:
        self._start_task(self._expire_regularly())

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().close()

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _refuse_waiting(self, shard: Shard[GroupMachine]) -> None:
        if shard.is_active:
            shard.run(lambda machine, now_ms: machine.moved_away(now_ms))

    async def _load(self, index: int, shard: Shard[GroupMachine]) -> None:
        await super()._load(index, shard)

        def remove(group_ids: Sequence[str], machine: GroupMachine, now_ms: int) -> Step[bool]:
            return machine.remove_old_topics(group_ids)

        # This begins in the turn in which the load has ended, before anybody asks for offsets.
        await self._repeat(shard, remove)

    def topics_changed(self, difference: Difference) -> None:
        """Topics were created, deleted or got partitions: remove old offsets, compute new assignments."""
        if not (difference.topics_deleted or difference.topics_created or difference.partitions_changed):
            return
        deleted = {topic.name: topic.id for topic in difference.topics_deleted}
        for shard in list(self.shards()):
            if deleted:
                self._start_task(self._remove_offsets(shard, deleted))
            self._compute_assignments(shard)

    def _compute_assignments(self, shard: Shard[GroupMachine]) -> None:
        try:
            if shard.is_active:
                shard.run(lambda machine, now_ms: machine.topics_changed(now_ms))
        except KafkaError as error:
            if self._is_tried_again(error):
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self._compute_assignments, shard)

    async def _remove_offsets(self, shard: Shard[GroupMachine], topics: Mapping[str, Uuid]) -> None:
        def remove(group_ids: Sequence[str], machine: GroupMachine, now_ms: int) -> Step[bool]:
            return machine.topics_deleted(group_ids, topics)

        await self._repeat(shard, remove)

    async def _expire_regularly(self) -> None:
        def expire(group_ids: Sequence[str], machine: GroupMachine, now_ms: int) -> Step[bool]:
            return machine.expire_offsets(group_ids, now_ms)

        while True:
            await asyncio.sleep(self._check_seconds)
            for shard in list(self.shards()):
                await self._repeat(shard, expire)

    async def _repeat(
        self,
        shard: Shard[GroupMachine],
        decide: Callable[[Sequence[str], GroupMachine, int], Step[bool]],
    ) -> None:
        """Run a step for all groups of a shard, some at a time, and again while its reply is True."""
        all_ids = shard.machine.groups.ids()
        for first in range(0, len(all_ids), GROUPS_PER_STEP):
            step = partial(decide, all_ids[first : first + GROUPS_PER_STEP])
            has_more = True
            while has_more and shard.is_active:
                reply = Later()
                try:
                    shard.run(step, reply)
                except KafkaError as error:
                    if not self._is_tried_again(error):
                        return
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                has_more = await reply is True
                # Others get their turn between two steps.
                await asyncio.sleep(0)

    def _is_tried_again(self, error: KafkaError) -> bool:
        """Whether what could not be written, such as for too few replicas, may be written later."""
        if error.retriable:
            logger.warning(
                "cannot remove or update entries of %s yet; it is tried again: %s", self.topic, error
            )
        else:
            logger.error("cannot remove or update entries of %s: %s", self.topic, error)
        return error.retriable


def client_of(call: Call) -> ClientInfo:
    """Kafka shows the client's address with a slash before it."""
    return ClientInfo(call.header.client_id or "", f"/{call.connection.peer_host}")


def _config_of(broker: Broker, group_id: str) -> GroupConfig:
    return group_config(broker.config, broker.image.config(GROUP_RESOURCE, group_id))


def group_settings(config: BrokerConfig) -> GroupSettings:
    return GroupSettings(
        min_session_timeout_ms=config["group.min.session.timeout.ms"],
        max_session_timeout_ms=config["group.max.session.timeout.ms"],
        initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
        max_size=config["group.max.size"],
        offset_metadata_max_bytes=config["offset.metadata.max.bytes"],
        offsets_retention_ms=config["offsets.retention.minutes"] * MINUTE_MS,
        consumer_session_timeout_ms=config["group.consumer.session.timeout.ms"],
        consumer_heartbeat_interval_ms=config["group.consumer.heartbeat.interval.ms"],
        consumer_max_size=config["group.consumer.max.size"],
        consumer_assignors=tuple(config["group.consumer.assignors"]),
        migration_policy=config["group.consumer.migration.policy"].lower(),
    )


def offsets_topic(config: BrokerConfig) -> NewTopic:
    return NewTopic(
        OFFSETS_TOPIC,
        config["offsets.topic.num.partitions"],
        config["offsets.topic.replication.factor"],
        configs={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config["offsets.topic.segment.bytes"]),
        },
    )
