"""All the partitions that this broker holds, by name, kept in step with the metadata image."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition
from barnabas.log.manager import LogManager
from barnabas.metadata.difference import Difference
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import TOPIC_RESOURCE, PartitionImage, TopicImage
from barnabas.replication.partition import NO_LEADER, Partition
from barnabas.replication.ports import NO_BROKER_EPOCH, Followers, IsrProposal, NoFollowers, Surroundings

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

# To open or delete a log costs a fraction of a millisecond, to sync it a few. A change of more logs than the
# first number goes on in a task, which syncs them in a thread and serves clients in between.
LOGS_AT_ONCE = 20
LOGS_IN_A_TURN = 5
LOGS_SYNCED_TOGETHER = 200


class PartitionsFailed(Exception):
    """Some partitions could not take a change of the metadata; all others have taken it."""


class Replicas:
    """`config_of(topic, image)` gives a topic's settings under the image's dynamic configs. `surroundings`
    and `followers` are needed only where there are other brokers; their epochs of brokers are set here."""

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        config_of: Callable[[str, MetadataImage], TopicConfig],
        surroundings: Surroundings | None = None,
        followers: Followers | None = None,
    ) -> None:
        self._broker_id = broker_id
        self.surroundings = surroundings or Surroundings(broker_id)
        self.surroundings.living_epoch = self._living_epoch
        self.surroundings.joining_epoch = self._joining_epoch
        self._followers: Followers = followers or NoFollowers()
        self._logs = logs
        self._config_of = config_of
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._image: MetadataImage | None = None
        # The configs of the topics in the metadata change that is being applied.
        self._configs: dict[str, TopicConfig] = {}
        # Logs that have to be opened or deleted, in the order of the changes.
        self._steps: deque[tuple[Callable[[TopicImage, int], None], TopicImage, int]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._is_settled = asyncio.Event()
        self._is_settled.set()
        self._is_starting = True
        # Called after a change that took several turns: only now all its partitions are there.
        self.when_settled: Callable[[], None] = lambda: None

    def leader(self, topic: str, index: int) -> Partition:
        """The partition, if this broker leads it and can serve it."""
        partition = self._partitions.get((topic, index))
        if partition is not None and not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.replica(topic, index)

    def replica(self, topic: str, index: int) -> Partition:
        """The partition, if this broker has a replica of it, as leader or follower, and can serve it."""
        partition = self._partitions.get((topic, index))
        if partition is None:
            raise self._why_absent(topic, index)
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
        the change is tried again. The same change may come twice.

        A change with very many new or deleted logs goes on in later turns of the loop: see settled_after."""
        self._image = image
        self._configs.clear()
        for topic in difference.topics_deleted:
            for index in range(len(topic.partitions)):
                self._let_go(topic, index)
        defects = self._place(difference)
        if self._task is None:
            defects += self._work(LOGS_AT_ONCE)
            self._logs.sync_changes()
            if self._steps:
                self._is_settled.clear()
                self._task = asyncio.get_running_loop().create_task(self._work_in_turns())
        for topic, index in self._reconfigured(image, difference):
            defects += self._fails(self._update_config, topic, index)
        if difference.brokers_changed:
            # The high watermark waits for a replica that is about to join the ISR, but not for a dead one.
            for partition in list(self._partitions.values()):
                partition.check_in_sync()
        if defects:
            raise PartitionsFailed(f"{defects} partition(s) could not take the change; the log says why")

    def _place(self, difference: Difference) -> int:
        """Take changed partitions, plan to open new ones and to delete those that moved away. Returns how
        many failed because of a defect."""
        defects = 0
        for topic, index in _placements(difference):
            if self._broker_id not in topic.partitions[index].replicas:
                self._let_go(topic, index)
            elif (topic.name, index) in self._partitions:
                defects += self._fails(self._take, topic, index)
            else:
                self._steps.append((self._take_newest, topic, index))
        return defects

    def withdraw_permits(self) -> None:
        """Make all who hold a permit ask the gate again: the rights of somebody have changed."""
        for partition in self._partitions.values():
            partition.withdraw_permits()

    def leave_offline(self) -> None:
        """Take replicas whose log directory has failed out of their ISR, and so out of leadership. Called
        periodically, until the metadata show that they have left; the last in an ISR has to stay."""
        for partition in self._partitions.values():
            if not partition.log.offline:
                continue
            # A fetch tells the leader that the replica has everything before it.
            self._followers.let_go(partition)
            if self._broker_id in partition.isr and len(partition.isr) > 1:
                rest = tuple(
                    (member, NO_BROKER_EPOCH) for member in partition.isr if member != self._broker_id
                )
                proposal = IsrProposal(partition.leader_epoch, partition.partition_epoch, rest)
                self.surroundings.isr_changes.propose(partition, proposal)

    async def settled_after(self, work: Awaitable[Result]) -> Result:
        """The result of `work`, after all partitions have followed the metadata that it changed."""
        result = await work
        await self._is_settled.wait()
        return result

    def finish(self) -> None:
        """Open and delete all logs that are left, in this turn: at the start and at the end of a broker."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        while self._steps:
            self._work(LOGS_SYNCED_TOGETHER)
            self._logs.sync_changes()
        self._is_settled.set()
        self._is_starting = False

    async def _work_in_turns(self) -> None:
        while self._steps:
            for _ in range(LOGS_SYNCED_TOGETHER // LOGS_IN_A_TURN):
                # A defect is logged. The partition is left out until its next change.
                self._work(LOGS_IN_A_TURN)
                await asyncio.sleep(0)
            task = self._logs.plan_sync()
            await asyncio.to_thread(task.run)
            self._logs.finish_sync(task)
        self._task = None
        self._is_settled.set()
        self.when_settled()

    def _work(self, logs: int) -> int:
        """Open or delete this many logs; returns how many failed because of a defect."""
        defects = 0
        for _ in range(min(logs, len(self._steps))):
            take, topic, index = self._steps.popleft()
            defects += self._fails(take, topic, index)
        return defects

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

    def _take_newest(self, topic: TopicImage, index: int) -> None:
        """Take the partition as the newest image has it, unless it is not placed here any more."""
        newest = self._image.topics.get(topic.name) if self._image is not None else None
        if newest is None or newest.id != topic.id:
            return
        if self._broker_id in newest.partitions[index].replicas:
            self._take(newest, index)

    def _take(self, topic: TopicImage, index: int) -> None:
        config = self._config(topic.name)
        partition = self._partitions.get((topic.name, index))
        if partition is None:
            partition = self._open(topic, index, config)
        elif partition.log.config != config:
            partition.update_config(config)
        self._follow(partition, topic.partitions[index])

    def _follow(self, partition: Partition, image: PartitionImage) -> None:
        """Lead the partition, or follow its leader."""
        old = (partition.leader, partition.leader_epoch)
        if image.leader in (self._broker_id, NO_LEADER):
            # Before this broker leads: nothing of an older leader may come into the log any more.
            self._followers.let_go(partition)
            partition.follow(image)
            return
        partition.follow(image)
        if old != (partition.leader, partition.leader_epoch):
            self._followers.follow(partition)

    def registered_epoch(self, broker_id: int) -> int | None:
        """The epoch of a broker that is registered, fenced or not."""
        broker = self._image.brokers.get(broker_id) if self._image is not None else None
        return None if broker is None else broker.epoch

    def _living_epoch(self, broker_id: int) -> int | None:
        broker = self._image.brokers.get(broker_id) if self._image is not None else None
        return None if broker is None or broker.fenced else broker.epoch

    def _joining_epoch(self, broker_id: int) -> int | None:
        broker = self._image.brokers.get(broker_id) if self._image is not None else None
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return None
        return broker.epoch

    def _open(self, topic: TopicImage, index: int, config: TopicConfig) -> Partition:
        topic_partition = TopicPartition(topic.name, index)
        old = self._logs.get(topic_partition)
        if old is not None and old.topic_id not in (None, topic.id):
            # Left by a topic of this name that was deleted just before a crash.
            self._logs.delete(topic_partition)
        if self._logs.get(topic_partition) is None:
            self._check_lost(topic, index)
        log = self._logs.get_or_create(topic_partition, topic.id, config)
        partition = Partition(topic_partition, topic.id, log, self.surroundings)
        self._partitions[topic.name, index] = partition
        return partition

    def _check_lost(self, topic: TopicImage, index: int) -> None:
        """At the start, a log that is not there may be in a directory that cannot be read. An empty one in
        another directory must not take its place in the ISR, where it counts as complete."""
        if self._is_starting and self._logs.offline_dirs and self._broker_id in topic.partitions[index].isr:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"the log of {topic.name}-{index} may be in a directory that is offline: "
                f"{', '.join(map(str, self._logs.offline_dirs))}",
            )

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

    def _let_go(self, topic: TopicImage, index: int) -> None:
        """The topic is deleted, or the partition has moved to other brokers."""
        partition = self._partitions.get((topic.name, index))
        if partition is not None and partition.topic_id == topic.id:
            self._forget(topic.name, index)
        self._steps.append((self._delete_log, topic, index))

    def _delete_log(self, topic: TopicImage, index: int) -> None:
        topic_partition = TopicPartition(topic.name, index)
        log = self._logs.get(topic_partition)
        if log is not None and log.topic_id in (None, topic.id):
            # Otherwise the log is that of a newer topic of this name.
            self._logs.delete(topic_partition)

    def _forget(self, topic: str, index: int) -> None:
        """Stop serving the partition; its log stays."""
        partition = self._partitions.pop((topic, index), None)
        if partition is not None:
            self._followers.let_go(partition)
            partition.let_go()

    def _why_absent(self, topic: str, index: int) -> KafkaError:
        described = self._image.topics.get(topic) if self._image is not None else None
        if described is None or not 0 <= index < len(described.partitions):
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self._broker_id in described.partitions[index].replicas and self._is_settled.is_set():
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _placements(difference: Difference) -> Iterator[tuple[TopicImage, int]]:
    """The partitions whose place, leader or ISR may be new."""
    for topic in difference.topics_created:
        for index in range(len(topic.partitions)):
            yield topic, index
    for change in difference.partitions_changed:
        yield change.topic, change.index
