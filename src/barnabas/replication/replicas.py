"""All the partitions this broker holds: found by name or id, kept in step with the metadata image."""

import logging
from collections.abc import Callable, Iterable

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition
from barnabas.log.manager import LogManager
from barnabas.metadata.difference import Difference
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import TOPIC_RESOURCE, TopicImage
from barnabas.replication.partition import Partition

logger = logging.getLogger(__name__)


class Replicas:
    """`config_of(topic, image)` gives a topic's settings under the image's dynamic configs."""

    def __init__(
        self, broker_id: int, logs: LogManager, config_of: Callable[[str, MetadataImage], TopicConfig]
    ) -> None:
        self._broker_id = broker_id
        self._logs = logs
        self._config_of = config_of
        self._partitions: dict[tuple[str, int], Partition] = {}
        # Found by whoever appends the short way, under what a request calls them; empty after each change.
        self.found_plain: dict[tuple[bytes, int], Partition] = {}
        self._image: MetadataImage | None = None

    def leader(self, topic: str, index: int) -> Partition:
        """The partition, if this broker leads it and can serve it."""
        partition = self._partitions.get((topic, index))
        if partition is None:
            raise self._why_absent(topic, index)
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if partition.log.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return partition

    def get(self, topic: str, index: int) -> Partition | None:
        return self._partitions.get((topic, index))

    def all(self) -> Iterable[Partition]:
        return self._partitions.values()

    def follow(self, image: MetadataImage, difference: Difference) -> None:
        """Hold exactly the partitions that the image places here, with its leaders and configs."""
        self._image = image
        self.found_plain.clear()
        for topic in difference.topics_deleted:
            self._drop(topic)
        changed = {change.topic.name: change.topic for change in difference.partitions_changed}
        for topic in (*difference.topics_created, *changed.values()):
            self._take(topic, image)
        self._logs.sync_changes()
        self._reconfigure(image, difference)

    def _take(self, topic: TopicImage, image: MetadataImage) -> None:
        config = self._config_of(topic.name, image)
        for index, placed in enumerate(topic.partitions):
            if self._broker_id not in placed.replicas:
                continue
            partition = self._partitions.get((topic.name, index))
            if partition is None:
                partition = self._open(topic, index, config)
                if partition is None:
                    continue
            elif partition.log.config != config:
                partition.update_config(config)
            partition.follow(placed)

    def _open(self, topic: TopicImage, index: int, config: TopicConfig) -> Partition | None:
        topic_partition = TopicPartition(topic.name, index)
        try:
            found = self._logs.get(topic_partition)
            if found is not None and found.topic_id not in (None, topic.id):
                # Left by a topic of this name that was deleted just before a crash.
                self._logs.delete(topic_partition)
            log = self._logs.get_or_create(topic_partition, topic.id, config)
        except (OSError, KafkaError) as error:
            # The partition is unavailable, the broker is not: requests for it get KAFKA_STORAGE_ERROR.
            logger.error("cannot open the log of %s: %s", topic_partition, error)
            return None
        partition = Partition(topic_partition, topic.id, log, self._broker_id)
        self._partitions[topic.name, index] = partition
        return partition

    def _reconfigure(self, image: MetadataImage, difference: Difference) -> None:
        """A topic's config concerns that topic; a broker's or the cluster's default concerns all."""
        names = {name for kind, name in difference.configs_changed if kind == TOPIC_RESOURCE}
        if any(kind != TOPIC_RESOURCE for kind, _ in difference.configs_changed):
            names = set(image.topics)
        configs = {name: self._config_of(name, image) for name in names if name in image.topics}
        for (name, _), partition in self._partitions.items():
            if name in configs and partition.log.config != configs[name]:
                partition.update_config(configs[name])

    def _drop(self, topic: TopicImage) -> None:
        for index in range(len(topic.partitions)):
            partition = self._partitions.pop((topic.name, index), None)
            if partition is not None:
                self._logs.delete(partition.topic_partition)
                partition.wake_all()

    def _why_absent(self, topic: str, index: int) -> KafkaError:
        described = self._image.topics.get(topic) if self._image is not None else None
        if described is None or not 0 <= index < len(described.partitions):
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self._broker_id in described.partitions[index].replicas:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
