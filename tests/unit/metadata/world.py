"""A cluster as an image and decisions: no store, no clock, no brokers. For stories of the controller."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from barnabas.config.values import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import random_uuid
from barnabas.metadata import brokers, elections, isr_changes, reassignment
from barnabas.metadata.brokers import Heartbeat, HeartbeatAnswer
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.isr_changes import IsrProposal
from barnabas.metadata.leader_rules import LeaderRules
from barnabas.metadata.partition_changes import Election
from barnabas.metadata.parts import PartitionImage
from barnabas.metadata.records import ConfigRecord, PartitionRecord, TopicRecord
from barnabas.metadata.settling import settle
from barnabas.metadata.store import BrokerRegistration

TOPIC_ID = bytes(15) + b"\1"
CONFIG = BrokerConfig({"node.id": "1"})
RULES = LeaderRules(CONFIG.topic_config)


class World:
    """Brokers with sessions, one topic "a", and the image that the controller's decisions make."""

    def __init__(self, *broker_ids: int) -> None:
        self.image = MetadataImage()
        self.sessions: dict[int, BrokerRegistration] = {}
        for broker_id in broker_ids:
            self.start(broker_id)

    # ---- what happens

    def decide(self, decision: Decision[Any]) -> Any:
        self.image = self.image.apply(decision.records)
        return decision.result

    def topic(self, *assignments: tuple[int, ...], **configs: str) -> None:
        """Topic "a" with all replicas in sync; underscores in the names of configs stand for dots."""
        records: list[Any] = [TopicRecord("a", TOPIC_ID)]
        for index, replicas in enumerate(assignments):
            records.append(PartitionRecord(TOPIC_ID, index, replicas, replicas, replicas[0]))
        records += [ConfigRecord(2, "a", key.replace("_", "."), value) for key, value in configs.items()]
        self.image = self.image.apply(records)

    def start(self, broker_id: int, *, clean: bool = True) -> None:
        """Register a new start of the broker, and unfence it."""
        self.register(broker_id, clean=clean)
        self.beat(broker_id)

    def register(self, broker_id: int, *, clean: bool = True) -> None:
        old = self.image.brokers.get(broker_id)
        previous = old.epoch if clean and old is not None else -1
        self.sessions[broker_id] = BrokerRegistration(broker_id, random_uuid(), (), previous_epoch=previous)
        self.reconcile()

    def stop(self, *broker_ids: int) -> None:
        """The sessions end, whatever the reason."""
        for broker_id in broker_ids:
            del self.sessions[broker_id]
        self.reconcile()

    def reconcile(self) -> None:
        while self.decide(brokers.reconcile_sessions(self.image, self.sessions, RULES)):
            pass

    def beat(self, broker_id: int, **fields: bool) -> HeartbeatAnswer:
        epoch = self.image.brokers[broker_id].epoch
        beat = Heartbeat(broker_id, epoch, self.image.offset, **fields)
        answer: HeartbeatAnswer = self.decide(
            brokers.heartbeat(self.image, beat, RULES, self.sessions.keys())
        )
        while self.decide(settle(self.image, RULES, self.sessions.keys())):
            pass
        return answer

    def in_sync(self, *members: int, index: int = 0, **changes: Any) -> PartitionImage | ErrorCode:
        """The leader proposes this ISR, with the broker epochs of now."""
        partition = self.partition(index)
        isr = tuple((member, self.image.brokers[member].epoch) for member in members)
        proposal = IsrProposal(TOPIC_ID, index, partition.leader_epoch, partition.partition_epoch, isr)
        leader = changes.pop("leader", partition.leader)
        return self.propose(leader, replace(proposal, **changes))

    def propose(self, broker_id: int, proposal: IsrProposal) -> PartitionImage | ErrorCode:
        epoch = self.image.brokers[broker_id].epoch
        decision = isr_changes.alter_partitions(self.image, broker_id, epoch, [proposal], RULES)
        result: PartitionImage | ErrorCode = self.decide(decision)[0]
        return result

    def move(self, replicas: tuple[int, ...] | None, index: int = 0) -> ErrorCode:
        moves = {("a", index): replicas}
        error: KafkaError | None = self.decide(reassignment.reassign_partitions(self.image, moves, RULES))[
            "a", index
        ]
        return ErrorCode.NONE if error is None else ErrorCode(error.code)

    def elect(self, election: Election, index: int = 0) -> ErrorCode:
        results: Mapping[tuple[str, int], ErrorCode] = self.decide(
            elections.elect_leaders(self.image, [("a", index)], election, RULES)
        )
        return results["a", index]

    # ---- what is seen

    def partition(self, index: int = 0) -> PartitionImage:
        return self.image.topics["a"].partitions[index]

    def leads(self, index: int = 0) -> tuple[int, tuple[int, ...], int]:
        """The leader, the ISR and the leader epoch."""
        partition = self.partition(index)
        return partition.leader, partition.isr, partition.leader_epoch
