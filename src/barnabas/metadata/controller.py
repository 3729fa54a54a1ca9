"""The controller: the only writer of metadata. It turns requests into records, one request at a time.

Decide, then apply: a pure function (topics.py, configs.py, brokers.py, isr_changes.py, elections.py,
reassignment.py) reads the image and returns records and an answer. The records are appended at the offset
where that image ends. The answer is given when they are durable and the local image includes them. So each
decision sees all earlier ones, and the next caller sees this one. If another controller wrote first, the
decision is made again on the newer image. If the controller epoch is over, the request gets NOT_CONTROLLER.
Errors of one item are values in the answer; errors of the whole request (NOT_CONTROLLER,
KAFKA_STORAGE_ERROR, and REQUEST_TIMED_OUT while ZooKeeper does not answer) are raised.

Requests wait for their turn in the order in which they came. Large ones are written in portions and wait
again for each, so that an ISR change or a heartbeat never waits for a whole CreateTopics.

The controller writes only while it has the leadership, which candidacy.py gets for it."""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata import (
    acl_changes,
    brokers,
    client_quotas,
    configs,
    elections,
    isr_changes,
    reassignment,
    scram,
    topics,
)
from barnabas.metadata.adoption import FoundTopics, adopt_topics
from barnabas.metadata.brokers import Heartbeat, HeartbeatAnswer
from barnabas.metadata.configs import ConfigChange, ConfigRules
from barnabas.metadata.decision import Decision
from barnabas.metadata.follower import Follower
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.isr_changes import IsrProposal
from barnabas.metadata.leader_rules import LeaderRules
from barnabas.metadata.partition_changes import Election
from barnabas.metadata.parts import ConfigResource, TopicImage
from barnabas.metadata.producer_ids import ProducerIdBlock, allocate_producer_ids
from barnabas.metadata.records import RECOVERING, ConfigRecord, MetadataRecord, PartitionChangeRecord
from barnabas.metadata.settling import settle
from barnabas.metadata.store import (
    BrokerRegistration,
    ControllerFenced,
    Leadership,
    MetadataStore,
    OffsetConflict,
    StoreError,
    StoreUnreachable,
)
from barnabas.metadata.tokens import remove_expired_tokens
from barnabas.metadata.topics import (
    Charge,
    NewPartitions,
    NewTopic,
    TopicReference,
    TopicRules,
    charge_nobody,
)
from barnabas.security.acls import Acl, AclFilter

logger = logging.getLogger(__name__)
Result = TypeVar("Result")

CONFLICTS_MAX = 10
TOPICS_DELETED_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Defaults of new topics, and how often leaders are balanced and unclean elections are tried. None means
    never."""

    num_partitions: int = 1
    replication_factor: int = 1
    balance_seconds: float | None = None
    unclean_election_seconds: float | None = None


@dataclass(slots=True)
class ElectionCounts:
    """The elections of this controller, and how many of them were unclean."""

    leaders: int = 0
    unclean: int = 0

    def count(self, image: MetadataImage, records: Iterable[MetadataRecord]) -> None:
        """`image` is the one that the records change. Each unclean election is a warning in the log."""
        for record in records:
            if isinstance(record, PartitionChangeRecord) and record.leader is not None:
                self.leaders += 1
                if record.leader_recovery_state == RECOVERING:
                    self.unclean += 1
                    topic = image.topic_by_id(record.topic_id)
                    logger.warning(
                        "unclean election: %s-%d is led by broker %d, which may lack acknowledged records",
                        topic.name if topic else record.topic_id.hex(),
                        record.partition,
                        record.leader,
                    )


class Controller:
    def __init__(
        self,
        store: MetadataStore,
        follower: Follower,
        rules: ConfigRules,
        settings: ControllerSettings | None = None,
        chooser: random.Random | None = None,
    ) -> None:
        self._store = store
        self._follower = follower
        self.settings = settings or ControllerSettings()
        self._rules = rules
        self._topic_rules = TopicRules(
            self.settings.num_partitions,
            self.settings.replication_factor,
            rules.check_topic,
            chooser or random.Random(),
        )
        self._leader_rules = LeaderRules(rules.topic_config)
        self.elections = ElectionCounts()
        # The brokers that have a session; None until the first look at the sessions.
        self._with_session: frozenset[int] | None = None
        self._turn = asyncio.Lock()
        # Requests that wait for their turn, and the one that has it.
        self.queue_length = 0
        self._leadership: Leadership | None = None
        self._snapshot: asyncio.Task[None] | None = None

    @property
    def active(self) -> bool:
        return self._leadership is not None and not self._leadership.lost.is_set()

    def lead(self, leadership: Leadership) -> None:
        self._leadership = leadership
        self._with_session = None

    async def step_down(self) -> None:
        """Write nothing more, and wait for a write that has begun."""
        self._leadership = None
        async with self._turn:
            if self._snapshot is not None:
                await self._snapshot
                self._snapshot = None

    async def create_topics(
        self, new_topics: Sequence[NewTopic], *, validate_only: bool = False, charge: Charge = charge_nobody
    ) -> topics.CreateResults:
        """Create topics, some at a time: thousands at once would keep this broker from everything else."""
        results: topics.CreateResults = {}
        taken: dict[str, str] = {}
        try:
            portions = list(topics.portions_to_create(new_topics, self._topic_rules))
        except KafkaError as error:
            return {topic.name: error for topic in new_topics}
        for portion in portions:
            decide = partial(
                topics.create_topics,
                topics=portion,
                rules=self._topic_rules,
                taken=taken if validate_only else None,
                charge=charge,
            )
            created: topics.CreateResults = await self._commit(decide, validate_only)
            results |= created
            await asyncio.sleep(0)
        return results

    async def delete_topics(
        self, references: Sequence[TopicReference], *, charge: Charge = charge_nobody
    ) -> list[TopicImage | KafkaError]:
        """Delete topics, some at a time, as they are created."""
        results: list[TopicImage | KafkaError] = []
        for start in range(0, len(references), TOPICS_DELETED_AT_ONCE):
            portion = references[start : start + TOPICS_DELETED_AT_ONCE]
            decide = partial(topics.delete_topics, references=portion, charge=charge)
            deleted: list[TopicImage | KafkaError] = await self._commit(decide)
            results += deleted
            await asyncio.sleep(0)
        return results

    async def create_partitions(
        self,
        requests: Sequence[NewPartitions],
        *,
        validate_only: bool = False,
        charge: Charge = charge_nobody,
    ) -> topics.PartitionsResults:
        return await self._commit(
            lambda image: topics.create_partitions(image, requests, self._topic_rules, charge), validate_only
        )

    async def adopt_topics(self, found: FoundTopics, broker_id: int) -> list[str]:
        return await self._commit(lambda image: adopt_topics(image, found, broker_id))

    async def alter_configs(
        self,
        alterations: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]],
        *,
        validate_only: bool = False,
    ) -> configs.Results:
        return await self._commit_configs(
            lambda image: configs.alter_configs(image, alterations, self._rules), validate_only
        )

    async def replace_configs(
        self,
        replacements: Sequence[tuple[ConfigResource, Mapping[str, str | None]]],
        *,
        validate_only: bool = False,
    ) -> configs.Results:
        return await self._commit_configs(
            lambda image: configs.replace_configs(image, replacements, self._rules), validate_only
        )

    async def alter_client_quotas(
        self, alterations: client_quotas.Alterations, *, validate_only: bool = False
    ) -> client_quotas.Results:
        return await self._commit(
            lambda image: client_quotas.alter_client_quotas(image, alterations), validate_only
        )

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> ProducerIdBlock:
        return await self._commit(lambda image: allocate_producer_ids(image, broker_id, broker_epoch))

    async def create_acls(self, acls: Sequence[Acl]) -> acl_changes.CreateResults:
        results: acl_changes.CreateResults = []
        for start in range(0, len(acls), acl_changes.ACLS_AT_ONCE):
            portion = acls[start : start + acl_changes.ACLS_AT_ONCE]
            created: acl_changes.CreateResults = await self._commit(
                partial(acl_changes.create_acls, acls=portion)
            )
            results += created
        return results

    async def delete_acls(self, filters: Sequence[AclFilter]) -> acl_changes.DeleteResults:
        results: acl_changes.DeleteResults = []
        for start in range(0, len(filters), acl_changes.FILTERS_AT_ONCE):
            portion = filters[start : start + acl_changes.FILTERS_AT_ONCE]
            deleted: acl_changes.DeleteResults = await self._commit(
                partial(acl_changes.delete_acls, filters=portion)
            )
            results += deleted
        return results

    async def alter_scram_credentials(self, changes: Sequence[scram.ScramChange]) -> scram.Results:
        return await self._commit(lambda image: scram.alter_scram_credentials(image, changes))

    async def change_tokens(self, decide: Callable[[MetadataImage], Decision[Result]]) -> Result:
        """Create, renew or expire a delegation token (tokens.py)."""
        return await self._commit(decide)

    async def remove_expired_tokens(self, now_ms: int) -> None:
        await self._commit_all(lambda image: remove_expired_tokens(image, now_ms))

    # ---- the life of brokers

    async def announce(self, broker_id: int) -> None:
        """Write who is the controller, unless the metadata says so already."""
        leadership = self._leadership
        epoch = -1 if leadership is None else leadership.epoch
        await self._commit(lambda image: brokers.announce_controller(image, broker_id, epoch))

    async def register_broker(self, registration: BrokerRegistration) -> int:
        self._with_session = (self._with_session or frozenset()) | {registration.id}
        epoch: int | None = None
        while epoch is None:
            epoch = await self._commit(
                lambda image: brokers.register_broker(image, registration, self._leader_rules)
            )
        return epoch

    async def heartbeat(self, beat: Heartbeat) -> HeartbeatAnswer:
        """Unfence a broker or let it shut down, and change its partitions accordingly."""
        decision = await self._decide(
            lambda image: brokers.heartbeat(
                image, beat, self._leader_rules, self._brokers_with_session(image)
            )
        )
        if decision.records and not beat.wants_shutdown:
            await self._settle()
        return decision.result

    async def fence_broker(self, broker_id: int) -> None:
        self._with_session = (self._with_session or frozenset()) - {broker_id}
        await self._commit(
            lambda image: brokers.fence_brokers(
                image, {broker_id}, self._leader_rules, self._brokers_with_session(image)
            )
        )
        await self._settle()

    async def unregister_broker(self, broker_id: int) -> None:
        is_done: bool | None = None
        while is_done is None:
            is_done = await self._commit(
                lambda image: brokers.unregister_broker(image, broker_id, self._leader_rules)
            )

    async def reconcile_sessions(self, living: Mapping[int, BrokerRegistration]) -> None:
        """Register the brokers that have a session, and fence those that have none."""
        self._with_session = frozenset(living)
        await self._commit_all(lambda image: brokers.reconcile_sessions(image, living, self._leader_rules))

    def _brokers_with_session(self, image: MetadataImage) -> Set[int]:
        # A new controller does not know the sessions at first: no broker may lose a partition for that.
        return image.brokers.keys() if self._with_session is None else self._with_session

    async def _settle(self) -> None:
        await self._commit_all(
            lambda image: settle(image, self._leader_rules, self._brokers_with_session(image))
        )

    # ---- leaders and replicas

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, proposals: Sequence[IsrProposal]
    ) -> isr_changes.Results:
        return await self._commit(
            lambda image: isr_changes.alter_partitions(
                image, broker_id, broker_epoch, proposals, self._leader_rules
            )
        )

    async def elect_leaders(
        self, partitions: Sequence[tuple[str, int]], election: Election
    ) -> elections.ElectionResults:
        return await self._commit(
            lambda image: elections.elect_leaders(image, partitions, election, self._leader_rules)
        )

    async def reassign_partitions(
        self, moves: Mapping[tuple[str, int], reassignment.Move], *, may_change_factor: bool = True
    ) -> reassignment.ReassignmentResults:
        return await self._commit(
            lambda image: reassignment.reassign_partitions(
                image, moves, self._leader_rules, may_change_factor=may_change_factor
            )
        )

    async def balance_leaders(self) -> None:
        """Let preferred replicas lead again, some at a time."""
        await self._commit_all(lambda image: elections.balance_leaders(image, self._leader_rules))

    async def elect_unclean_leaders(self) -> None:
        """Elect leaders where there is none and a replica out of sync may lead."""
        await self._settle()

    # ---- deciding and writing

    async def _commit_configs(
        self, decide: Callable[[MetadataImage], Decision[configs.Results]], validate_only: bool
    ) -> configs.Results:
        decision = await self._decide(decide, validate_only)
        keys = {record.key for record in decision.records if isinstance(record, ConfigRecord)}
        if configs.UNCLEAN_ELECTION in keys and not validate_only:
            await self.elect_unclean_leaders()
        return decision.result

    async def _commit_all(self, decide: Callable[[MetadataImage], Decision[bool]]) -> None:
        """Commit portions until there is nothing more to do. Other requests have their turns in between."""
        while await self._commit(decide):
            pass

    async def _commit(
        self, decide: Callable[[MetadataImage], Decision[Result]], validate_only: bool = False
    ) -> Result:
        return (await self._decide(decide, validate_only)).result

    async def _decide(
        self, decide: Callable[[MetadataImage], Decision[Result]], validate_only: bool = False
    ) -> Decision[Result]:
        self.queue_length += 1
        try:
            async with self._turn:
                return await self._decide_in_turn(decide, validate_only)
        finally:
            self.queue_length -= 1

    async def _decide_in_turn(
        self, decide: Callable[[MetadataImage], Decision[Result]], validate_only: bool
    ) -> Decision[Result]:
        for _ in range(CONFLICTS_MAX):
            leadership = self._leadership
            if leadership is None or leadership.lost.is_set():
                raise KafkaError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")
            image = self._follower.image
            decision = decide(image)
            if validate_only or not decision.records:
                return decision
            # A record that cannot be applied must not get into the log: no broker could load it.
            image.apply(decision.records)
            if await self._append(decision, image.offset, leadership):
                self.elections.count(image, decision.records)
                return decision
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT, "the metadata changed too often during the request; try again"
        )

    async def _append(self, decision: Decision[Result], offset: int, leadership: Leadership) -> bool:
        """Whether the records are in the log. If not, there is a newer image and a new decision is needed."""
        try:
            end_offset = await self._store.append(decision.records, offset, leadership.epoch)
        except OffsetConflict as conflict:
            await self._follower.reached(conflict.end_offset)
            return False
        except ControllerFenced as error:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, str(error)) from error
        except StoreUnreachable as error:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
        except StoreError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        await self._follower.reached(end_offset)
        self._snapshot_if_due(leadership.epoch)
        return True

    def _snapshot_if_due(self, epoch: int) -> None:
        idle = self._snapshot is None or self._snapshot.done()
        if idle and self._store.snapshot_due:
            self._snapshot = asyncio.ensure_future(self._write_snapshot(epoch))

    async def _write_snapshot(self, epoch: int) -> None:
        try:
            await self._store.snapshot(self._follower.image, epoch)
        except StoreError as error:
            # The log is complete without a snapshot. The next append tries again.
            logger.warning("cannot write a metadata snapshot: %s", error)
