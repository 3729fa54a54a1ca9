"""All the partitions that this broker holds, by name, kept in step with the metadata image."""

import logging
from collections.abc import Callable, Iterable, Iterator

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition
from barnabas.log.manager import LogManager
from barnabas.metadata.difference import Difference
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import TOPIC_RESOURCE, PartitionImage, TopicImage
from barnabas.replication.partition import Partition

logger = logging.getLogger(__name__)


class PartitionsFailed(Exception):
    """Some partitions could not take a change of the metadata; all others have taken it."""


class Replicas:
    """`config_of(topic, image)` gives a topic's settings under the image's dynamic configs."""

    def __init__(
        self, broker_id: int, logs: LogManager, config_of: Callable[[str, MetadataImage], TopicConfig]
    ) -> None:
        self._broker_id = broker_id
        self._logs = logs
        self._config_of = config_of
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._image: MetadataImage | None = None
        # The configs of the topics in the metadata change that is being applied.
        self._configs: dict[str, TopicConfig] = {}

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
        """Hold exactly the partitions that the image places here, with its leaders and configs.

        A partition that fails does not keep the others from the change: requests for it are answered with
        KAFKA_STORAGE_ERROR. If it failed because of a defect, PartitionsFailed is raised at the end, so that
        the change is tried again. The same change may come twice."""
        self._image = image
        self._configs.clear()
        defects = 0
        for topic in difference.topics_deleted:
            for index in range(len(topic.partitions)):
                defects += self._fails(self._drop, topic, index)
        for topic, index in _placements(difference):
            defects += self._fails(self._place, topic, index)
        self._logs.sync_changes()
        for topic, index in self._reconfigured(image, difference):
            defects += self._fails(self._update_config, topic, index)
        if defects:
            raise PartitionsFailed(f"{defects} partition(s) could not take the change; the log says why")

    def _fails(self, take: Callable[[TopicImage, int], None], topic: TopicImage, index: int) -> bool:
        """Run `take`; whether it failed because of a defect."""
        try:
            take(topic, index)
            return False
        except (OSError, KafkaError) as error:
            logger.error("cannot serve partition %d of %s: %s", index, topic.name, error)
            self._forget(topic.name, index)
            return False
        except Exception:
            logger.exception("partition %d of %s could not take a change", index, topic.name)
            self._forget(topic.name, index)
            return True

    def _place(self, topic: TopicImage, index: int) -> None:
        """Do with one partition what the image says of it."""
        placed = topic.partitions[index]
        if self._broker_id in placed.replicas:
            self._take(topic, index, placed)
        else:
            self._drop(topic, index)

    def _take(self, topic: TopicImage, index: int, placed: PartitionImage) -> None:
        config = self._config(topic.name)
        partition = self._partitions.get((topic.name, index))
        if partition is None:
            partition = self._open(topic, index, config)
        elif partition.log.config != config:
            partition.update_config(config)
        partition.follow(placed)

    def _open(self, topic: TopicImage, index: int, config: TopicConfig) -> Partition:
        topic_partition = TopicPartition(topic.name, index)
        old = self._logs.get(topic_partition)
        if old is not None and old.topic_id not in (None, topic.id):
            # Left by a topic of this name that was deleted just before a crash.
            self._logs.delete(topic_partition)
        log = self._logs.get_or_create(topic_partition, topic.id, config)
        partition = Partition(topic_partition, topic.id, log, self._broker_id)
        self._partitions[topic.name, index] = partition
        return partition

    def _reconfigured(self, image: MetadataImage, difference: Difference) -> Iterator[tuple[TopicImage, int]]:
        """A topic's config concerns that topic; a broker's or the cluster's default concerns all."""
        names: Iterable[str] = {name for kind, name in difference.configs_changed if kind == TOPIC_RESOURCE}
        if any(kind != TOPIC_RESOURCE for kind, _ in difference.configs_changed):
            names = image.topics
        for name in names:
            topic = image.topics.get(name)
            for index in range(len(topic.partitions) if topic is not None else 0):
                if topic is not None and (name, index) in self._partitions:
                    yield topic, index

    def _update_config(self, topic: TopicImage, index: int) -> None:
        config = self._config(topic.name)
        partition = self._partitions[topic.name, index]
        if partition.log.config != config:
            partition.update_config(config)

    def _config(self, topic: str) -> TopicConfig:
        config = self._configs.get(topic)
        if config is None:
            assert self._image is not None
            config = self._configs[topic] = self._config_of(topic, self._image)
        return config

    def _drop(self, topic: TopicImage, index: int) -> None:
        """The topic is deleted, or the partition has moved to other brokers."""
        topic_partition = TopicPartition(topic.name, index)
        log = self._logs.get(topic_partition)
        if log is not None and log.topic_id in (None, topic.id):
            # Otherwise the log is that of a newer topic of this name.
            self._forget(topic.name, index)
            self._logs.delete(topic_partition)

    def _forget(self, topic: str, index: int) -> None:
        """Stop serving the partition; its log stays."""
        partition = self._partitions.pop((topic, index), None)
        if partition is not None:
            partition.let_go()

    def _why_absent(self, topic: str, index: int) -> KafkaError:
        described = self._image.topics.get(topic) if self._image is not None else None
        if described is None or not 0 <= index < len(described.partitions):
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self._broker_id in described.partitions[index].replicas:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _placements(difference: Difference) -> Iterator[tuple[TopicImage, int]]:
    """The partitions whose place, leader or ISR may be new."""
    for topic in difference.topics_created:
        for index in range(len(topic.partitions)):
            yield topic, index
    for change in difference.partitions_changed:
        yield change.topic, change.index
