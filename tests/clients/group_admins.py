"""Administration of groups: one interface for four admin clients.

The `calls` of a library name what it can do."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import confluent_kafka
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, ConsumerGroupType
from confluent_kafka.admin import AdminClient
from tests.clients import kafka_python_library as kafka_python
from tests.clients.client import BrokerError
from tests.clients.confluent_client import answered
from tests.clients.consumers import Place

import barnabas
from barnabas.client.types import TopicPartition

T = TypeVar("T")
EVERYTHING = frozenset({"filters", "describe", "delete", "alter offsets", "delete offsets", "remove members"})


class Described(NamedTuple):
    state: str
    assignor: str
    # By instance id, or client id where there is none.
    members: Mapping[str, frozenset[Place]]


class GroupAdmin(Protocol):
    calls: frozenset[str]

    def groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> set[str]: ...

    def describe(self, group: str) -> Described: ...

    def delete(self, group: str) -> None: ...

    def offsets(self, group: str) -> dict[Place, int]: ...

    def alter_offsets(self, group: str, offsets: Mapping[Place, int]) -> None: ...

    def delete_offsets(self, group: str, places: Collection[Place]) -> None: ...

    def remove_members(self, group: str, instance_ids: Collection[str]) -> None: ...

    def close(self) -> None: ...


class ConfluentGroupAdmin:
    calls = EVERYTHING - {"delete offsets", "remove members"}

    def __init__(self, bootstrap: str) -> None:
        self.library = AdminClient({"bootstrap.servers": bootstrap})

    def groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> set[str]:
        described = answered(
            self.library.list_consumer_groups(
                states={_confluent_state(state) for state in states},
                types={ConsumerGroupType[kind.upper()] for kind in types},
            )
        )
        assert not described.errors
        return {group.group_id for group in described.valid}

    def describe(self, group: str) -> Described:
        described = answered(self.library.describe_consumer_groups([group])[group])
        members = {
            member.group_instance_id or member.client_id: frozenset(
                (place.topic, place.partition) for place in member.assignment.topic_partitions
            )
            for member in described.members
        }
        return Described(described.state.name.replace("_", "").lower(), described.partition_assignor, members)

    def delete(self, group: str) -> None:
        answered(self.library.delete_consumer_groups([group])[group])

    def offsets(self, group: str) -> dict[Place, int]:
        requested = ConsumerGroupTopicPartitions(group)
        described = answered(self.library.list_consumer_group_offsets([requested])[group])
        return {(each.topic, each.partition): each.offset for each in described.topic_partitions}

    def alter_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        places = [confluent_kafka.TopicPartition(*place, offset) for place, offset in offsets.items()]
        requested = ConsumerGroupTopicPartitions(group, places)
        described = answered(self.library.alter_consumer_group_offsets([requested])[group])
        for each in described.topic_partitions:
            if each.error is not None:
                raise BrokerError(each.error.code())

    def delete_offsets(self, group: str, places: Collection[Place]) -> None:
        raise AssertionError("confluent-kafka has no such call")

    def remove_members(self, group: str, instance_ids: Collection[str]) -> None:
        raise AssertionError("confluent-kafka has no such call")

    def close(self) -> None:
        """Nothing to do: the library closes when the object is deleted."""


def _confluent_state(name: str) -> ConsumerGroupState:
    by_name = {state.name.replace("_", ""): state for state in ConsumerGroupState}
    return by_name[name.upper()]


class KafkaPythonGroupAdmin:
    calls = EVERYTHING

    def __init__(self, bootstrap: str) -> None:
        self.library = kafka_python.KafkaAdminClient(bootstrap_servers=bootstrap)

    def groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> set[str]:
        described = self.library.list_groups(states_filter=list(states), types_filter=list(types))
        return {group["group_id"] for group in described}

    def describe(self, group: str) -> Described:
        described = self.library.describe_groups([group])[group]
        if described["error"] is not None:
            raise BrokerError(int(described["error"].partition("[Error ")[2].partition("]")[0]))
        members = {
            member["group_instance_id"] or member["client_id"]: frozenset(
                (topic["topic"], number)
                for topic in member["member_assignment"]["assigned_partitions"]
                for number in topic["partitions"]
            )
            for member in described["members"]
        }
        return Described(described["group_state"].lower(), described["protocol_data"], members)

    def delete(self, group: str) -> None:
        outcome = self.library.delete_groups([group])[group]
        if outcome != "OK":
            raise BrokerError(getattr(kafka_python.errors, outcome).errno)

    def offsets(self, group: str) -> dict[Place, int]:
        described = self.library.list_group_offsets({group: None})[group]
        return {(place.topic, place.partition): value.offset for place, value in described.items()}

    def alter_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        requested = {
            kafka_python.TopicPartition(*place): kafka_python.OffsetAndMetadata(offset, "", -1)
            for place, offset in offsets.items()
        }
        _raise_first(self.library.alter_group_offsets(group, requested))

    def delete_offsets(self, group: str, places: Collection[Place]) -> None:
        requested = [kafka_python.TopicPartition(*place) for place in places]
        _raise_first(_with_broker_errors(lambda: self.library.delete_group_offsets(group, requested)))

    def remove_members(self, group: str, instance_ids: Collection[str]) -> None:
        members = [kafka_python.MemberToRemove(group_instance_id=name) for name in instance_ids]
        _raise_first(_with_broker_errors(lambda: self.library.remove_group_members(group, members)))

    def close(self) -> None:
        self.library.close()


def _with_broker_errors(call: Callable[[], T]) -> T:
    try:
        return call()
    except kafka_python.BrokerResponseError as error:
        raise BrokerError(error.errno) from error


def _raise_first(errors: Mapping[Any, Any]) -> None:
    for error in errors.values():
        if error.errno:
            raise BrokerError(error.errno)


class AiokafkaGroupAdmin:
    calls = frozenset({"describe"})

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def _ask(self, call: Callable[[AIOKafkaAdminClient], Awaitable[T]]) -> T:
        async def ask() -> T:
            library = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await library.start()
            try:
                return await call(library)
            finally:
                await library.close()

        return asyncio.run(ask())

    def groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> set[str]:
        assert not states and not types
        return {group for group, _ in self._ask(lambda library: library.list_consumer_groups())}

    def describe(self, group: str) -> Described:
        (answer,) = self._ask(lambda library: library.describe_consumer_groups([group]))
        code, _, state, _, assignor, described, *_ = answer.groups[0]
        if code:
            raise BrokerError(code)
        # The library does not decode the assignment of a member.
        members = {client: frozenset[Place]() for _, client, *_ in described}
        return Described(state.lower(), assignor, members)

    def delete(self, group: str) -> None:
        raise AssertionError("aiokafka has no such call")

    def offsets(self, group: str) -> dict[Place, int]:
        described = self._ask(lambda library: library.list_consumer_group_offsets(group))
        return {(place.topic, place.partition): value.offset for place, value in described.items()}

    def alter_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        raise AssertionError("aiokafka has no such call")

    def delete_offsets(self, group: str, places: Collection[Place]) -> None:
        raise AssertionError("aiokafka has no such call")

    def remove_members(self, group: str, instance_ids: Collection[str]) -> None:
        raise AssertionError("aiokafka has no such call")

    def close(self) -> None:
        """Nothing to do: each call has a client of its own."""


class OwnGroupAdmin:
    calls = EVERYTHING

    def __init__(self, bootstrap: str) -> None:
        self.library = barnabas.Admin(bootstrap_servers=bootstrap)

    def _ask(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except barnabas.errors.KafkaError as error:
            raise BrokerError(int(error.code)) from error

    def groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> set[str]:
        described = self.library.list_consumer_groups(states=states, types=types)
        return {group.group_id for group in described}

    def describe(self, group: str) -> Described:
        described = self._ask(lambda: self.library.describe_consumer_groups([group]))[group]
        members = {
            member.group_instance_id or member.client_id: frozenset(
                (place.topic, place.partition) for place in member.assignment
            )
            for member in described.members
        }
        return Described(described.state.lower(), described.assignor, members)

    def delete(self, group: str) -> None:
        self._ask(lambda: self.library.delete_consumer_groups([group]))

    def offsets(self, group: str) -> dict[Place, int]:
        described = self.library.list_consumer_group_offsets(group)
        return {(place.topic, place.partition): value.offset for place, value in described.items()}

    def alter_offsets(self, group: str, offsets: Mapping[Place, int]) -> None:
        requested = {TopicPartition(*place): offset for place, offset in offsets.items()}
        self._ask(lambda: self.library.alter_consumer_group_offsets(group, requested))

    def delete_offsets(self, group: str, places: Collection[Place]) -> None:
        requested = [TopicPartition(*place) for place in places]
        self._ask(lambda: self.library.delete_consumer_group_offsets(group, requested))

    def remove_members(self, group: str, instance_ids: Collection[str]) -> None:
        self._ask(lambda: self.library.remove_members_from_consumer_group(group, instance_ids))

    def close(self) -> None:
        self.library.close()


GROUP_ADMINS: dict[str, Callable[[str], GroupAdmin]] = {
    "confluent-kafka": ConfluentGroupAdmin,
    "kafka-python": KafkaPythonGroupAdmin,
    "aiokafka": AiokafkaGroupAdmin,
    "barnabas": OwnGroupAdmin,
}
CALLS: dict[str, frozenset[str]] = {
    "confluent-kafka": ConfluentGroupAdmin.calls,
    "kafka-python": KafkaPythonGroupAdmin.calls,
    "aiokafka": AiokafkaGroupAdmin.calls,
    "barnabas": OwnGroupAdmin.calls,
}
