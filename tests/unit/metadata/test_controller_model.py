"""After any requests, restarts and kills the controller has the state of a simple model."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.config.alter import Operation
from barnabas.config.values import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import random_uuid
from barnabas.metadata.brokers import Heartbeat
from barnabas.metadata.configs import ConfigChange, ConfigRules
from barnabas.metadata.embedded import EmbeddedStore
from barnabas.metadata.files import RealFiles
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.node import MetadataNode
from barnabas.metadata.records import Listener
from barnabas.metadata.store import BrokerRegistration
from barnabas.metadata.topics import NewPartitions, NewTopic, TopicReference

NAMES = st.sampled_from(["a", "b", "c.d", "c_d", "e-f"])
CONFIGS = st.dictionaries(st.sampled_from(["retention.ms", "segment.ms"]), st.sampled_from(["1", "2", "x"]))
RULES = ConfigRules(lambda: BrokerConfig({"node.id": "1"}))


class FilesWithoutSync(RealFiles):
    """The death of a process does not need fsync, and thousands are slow; the fault tests have them."""

    def sync(self, descriptor: int) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        pass


def code(answer):
    return answer.code if isinstance(answer, KafkaError) else ErrorCode.NONE


class ControllerMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.temporary = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.partitions: dict[str, int] = {}
        self.configs: dict[str, dict[str, str]] = {}
        self.ids: dict[str, bytes] = {}
        self.dead_ids: set[bytes] = set()
        self.producer_ids: list[int] = []
        self.broker_epochs: list[int] = []

    @initialize()
    def start(self):
        async def begin():
            directory = Path(self.temporary.name) / "m"
            self.store = await EmbeddedStore.open(
                directory, files=FilesWithoutSync(), snapshot_bytes_min=1500
            )
            previous_epoch = self.broker_epochs[-1] if self.broker_epochs else -1
            listeners = (Listener("PLAINTEXT", "h", 1),)
            registration = BrokerRegistration(1, random_uuid(), listeners, previous_epoch=previous_epoch)
            node = await MetadataNode.start(self.store, registration, RULES)
            await node.controller.heartbeat(Heartbeat(1, node.broker_epoch, node.image.offset))
            return node

        self.node = self.runner.run(begin())
        self.broker_epochs.append(self.node.broker_epoch)

    @property
    def controller(self):
        return self.node.controller

    @rule(name=NAMES, count=st.integers(-2, 4), configs=CONFIGS, validate_only=st.booleans())
    def create(self, name, count, configs, validate_only):
        request = [NewTopic(name, count, 1, configs=configs)]
        answer = self.runner.run(self.controller.create_topics(request, validate_only=validate_only))[name]
        expected = self.expected_creation(name, count, configs)
        assert code(answer) is expected
        if expected is ErrorCode.NONE and not validate_only:
            self.partitions[name] = 1 if count == -1 else count
            self.configs[name] = dict(configs)
            assert answer.id not in self.dead_ids
            self.ids[name] = answer.id

    def expected_creation(self, name, count, configs):
        if name in self.partitions:
            return ErrorCode.TOPIC_ALREADY_EXISTS
        if {"c.d": "c_d", "c_d": "c.d"}.get(name) in self.partitions:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if "x" in configs.values():
            return ErrorCode.INVALID_CONFIG
        return ErrorCode.INVALID_PARTITIONS if count in (0, -2) else ErrorCode.NONE

    @rule(name=NAMES, by_id=st.booleans())
    def delete(self, name, by_id):
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic_id = self.ids.get(name, b"?" * 16)
        reference = TopicReference(id=topic_id) if by_id else TopicReference(name)
        (answer,) = self.runner.run(self.controller.delete_topics([reference]))
        assert code(answer) is (ErrorCode.NONE if name in self.partitions else unknown)
        if name in self.partitions:
            del self.partitions[name], self.configs[name]
            self.dead_ids.add(self.ids.pop(name))

    @rule(name=NAMES, count=st.integers(0, 6))
    def grow(self, name, count):
        answer = self.runner.run(self.controller.create_partitions([NewPartitions(name, count)]))[name]
        if name not in self.partitions:
            assert code(answer) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif count <= self.partitions[name]:
            assert code(answer) is ErrorCode.INVALID_PARTITIONS
        else:
            assert answer == count
            self.partitions[name] = count

    @rule(name=NAMES, configs=CONFIGS)
    def replace(self, name, configs):
        (answer,) = self.runner.run(self.controller.replace_configs([((2, name), configs)]))
        assert code(answer) is self.expected_configs(name, configs)
        if answer is None:
            self.configs[name] = dict(configs)

    @rule(name=NAMES, key=st.sampled_from(["retention.ms", "segment.ms"]), value=st.sampled_from("12x-"))
    def alter(self, name, key, value):
        removal = value == "-"
        change = ConfigChange(key, Operation.DELETE) if removal else ConfigChange(key, Operation.SET, value)
        (answer,) = self.runner.run(self.controller.alter_configs([((2, name), [change])]))
        assert code(answer) is self.expected_configs(name, {key: value})
        if answer is None:
            self.configs[name].pop(key, None)
            self.configs[name].update({} if removal else {key: value})

    def expected_configs(self, name, configs):
        if name not in self.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.INVALID_CONFIG if "x" in configs.values() else ErrorCode.NONE

    @rule()
    def allocate(self):
        block = self.runner.run(self.controller.allocate_producer_ids(1, self.node.broker_epoch))
        assert block.first_id not in self.producer_ids
        self.producer_ids.append(block.first_id)

    @rule()
    def restart(self):
        self.runner.run(self.node.close())
        self.start()

    @rule()
    def die(self):
        """Nothing is closed: tasks are cancelled, and then the lock is released, as after a kill."""
        self.runner.close()
        self.store._file.close()
        self.runner = asyncio.Runner()
        self.start()

    @invariant()
    @precondition(lambda self: hasattr(self, "node"))
    def the_image_is_the_model(self):
        image: MetadataImage = self.node.image
        assert {name: len(topic.partitions) for name, topic in image.topics.items()} == self.partitions
        assert {name: topic.id for name, topic in image.topics.items()} == self.ids
        assert {topic_id: name for name, topic_id in self.ids.items()} == image.topic_names
        assert {name: dict(image.topic_config(name)) for name in image.topics} == self.configs
        assert image.next_producer_id == 1000 * len(self.producer_ids)
        partitions = [partition for topic in image.topics.values() for partition in topic.partitions]
        assert all((partition.leader, partition.leader_epoch) == (1, 0) for partition in partitions)
        assert self.broker_epochs == sorted(set(self.broker_epochs))

    def teardown(self):
        if hasattr(self, "node"):
            self.runner.run(self.node.close())
        self.runner.close()
        self.temporary.cleanup()


ControllerMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestController = ControllerMachine.TestCase
