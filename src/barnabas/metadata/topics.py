"""Decisions about topics: create, delete, add partitions. Pure: they return records and answers.

Each item of a request gets its own answer, a value or a KafkaError. Items that fail write nothing."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import ZERO_UUID, Uuid, random_uuid, topic_name_problem, uuid_to_string
from barnabas.metadata.assignments import check_assignments, partition_records
from barnabas.metadata.decision import Decision, invalid_request
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.parts import TOPIC_RESOURCE, TopicImage, collision_key
from barnabas.metadata.placement import place_replicas
from barnabas.metadata.records import ConfigRecord, MetadataRecord, RemoveTopicRecord, TopicRecord

DEFAULT = -1
# As in Kafka: one request becomes one atomic append, so its size has a limit.
PARTITIONS_PER_REQUEST_MAX = 10_000
# About the most partitions in one change of the metadata, so that no change blocks the broker for long.
PARTITIONS_PER_PORTION = 50
RESERVED_NAMES = frozenset({"__cluster_metadata"})


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; counts of -1 mean the cluster's default. `assignments` are replicas by partition."""

    name: str
    num_partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    name: str
    id: Uuid
    num_partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class TopicReference:
    """A topic to delete: by name or by id, not both."""

    name: str | None = None
    id: Uuid | None = None


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """`count` is the new total; `assignments`, if given, has the replicas of each added partition."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What topic decisions need besides the image: defaults, the check of overrides, a random generator."""

    num_partitions: int
    replication_factor: int
    check_configs: Callable[[Mapping[str, str]], None]
    chooser: random.Random


# Charges a topic's partitions to the quota of who asks; raises THROTTLING_QUOTA_EXCEEDED. A decision can be
# made more than once, so it must charge a topic once.
Charge: TypeAlias = Callable[[object, int], None]


def charge_nobody(topic: object, partitions: int) -> None:
    """For changes that have no quota."""


CreateResults: TypeAlias = dict[str, CreatedTopic | KafkaError]


def portions_to_create(topics: Sequence[NewTopic], rules: TopicRules) -> Iterator[Sequence[NewTopic]]:
    """The topics in portions that are created quickly; POLICY_VIOLATION if there are too many partitions."""
    _check_request_size(sum(_wanted_partitions(topic, rules) for topic in topics))
    portion: list[NewTopic] = []
    room = PARTITIONS_PER_PORTION
    for topic in topics:
        portion.append(topic)
        room -= max(1, _wanted_partitions(topic, rules))
        if room <= 0:
            yield portion
            portion, room = [], PARTITIONS_PER_PORTION
    if portion:
        yield portion


def create_topics(
    image: MetadataImage,
    topics: Sequence[NewTopic],
    rules: TopicRules,
    taken: dict[str, str] | None = None,
    charge: Charge = charge_nobody,
) -> Decision[CreateResults]:
    """One answer per name; a name that is given more than once fails.

    `taken` has the topics of earlier portions of the request, by their collision key; new topics are
    added."""
    results: CreateResults = {}
    records: list[MetadataRecord] = []
    taken = {} if taken is None else taken
    repeated = repeated_items(topic.name for topic in topics)
    total = sum(_wanted_partitions(topic, rules) for topic in topics)
    for topic in topics:
        try:
            if topic.name in repeated:
                raise repeated_topic(topic.name)
            _check_request_size(total)
            _check_name(image, topic.name, taken)
            created, new_records = _create_topic(image, topic, rules)
            charge(topic.name, created.num_partitions)
        except KafkaError as error:
            results[topic.name] = error.as_result()
            continue
        results[topic.name] = created
        records.extend(new_records)
        key = collision_key(topic.name)
        if key is not None:
            taken[key] = topic.name
    return Decision(tuple(records), results)


def repeated_items(items: Iterable[object]) -> set[object]:
    return {item for item, count in Counter(items).items() if count > 1}


def repeated_topic(name: str) -> KafkaError:
    return invalid_request(f"topic {name!r} is in the request more than once")


def absent_topic(name: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")


def _wanted_partitions(topic: NewTopic, rules: TopicRules) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return rules.num_partitions if topic.num_partitions == DEFAULT else max(0, topic.num_partitions)


def _check_request_size(partitions: int) -> None:
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        raise too_many_partitions(partitions)


def too_many_partitions(partitions: int) -> KafkaError:
    return KafkaError(
        ErrorCode.POLICY_VIOLATION,
        f"the request would create {partitions} partitions; "
        f"the limit for one request is {PARTITIONS_PER_REQUEST_MAX}",
    )


def _check_name(image: MetadataImage, name: str, taken: Mapping[str, str]) -> None:
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name in RESERVED_NAMES:
        raise invalid_request(f"topic name {name!r} is reserved")
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists")
    key = collision_key(name)
    other = None if key is None else image.collisions.get(key) or taken.get(key)
    if other is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic {name!r} collides with topic {other!r}: '.' and '_' are the same in metric names",
        )


def _create_topic(
    image: MetadataImage, topic: NewTopic, rules: TopicRules
) -> tuple[CreatedTopic, list[MetadataRecord]]:
    configs = _checked_configs(topic.configs, rules)
    replicas = _assigned(image, topic) if topic.assignments else _placed(image, topic, rules)
    topic_id = random_uuid()
    records: list[MetadataRecord] = [TopicRecord(topic.name, topic_id)]
    records.extend(partition_records(image, topic_id, 0, replicas))
    records.extend(ConfigRecord(TOPIC_RESOURCE, topic.name, key, value) for key, value in configs.items())
    return CreatedTopic(topic.name, topic_id, len(replicas), len(replicas[0])), records


def _checked_configs(configs: Mapping[str, str | None], rules: TopicRules) -> dict[str, str]:
    checked: dict[str, str] = {}
    for key, value in configs.items():
        if value is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"config {key} needs a value")
        checked[key] = value
    if checked:
        rules.check_configs(checked)
    return checked


def _assigned(image: MetadataImage, topic: NewTopic) -> list[tuple[int, ...]]:
    if topic.replication_factor != DEFAULT or topic.num_partitions != DEFAULT:
        raise invalid_request(
            "with a replica assignment, the number of partitions and the replication factor must be -1"
        )
    if sorted(topic.assignments) != list(range(len(topic.assignments))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "the partitions of a replica assignment must be 0, 1, 2, ... without a gap",
        )
    replicas = [tuple(topic.assignments[index]) for index in range(len(topic.assignments))]
    check_assignments(image, replicas, len(replicas[0]))
    return replicas


def _placed(image: MetadataImage, topic: NewTopic, rules: TopicRules) -> list[tuple[int, ...]]:
    partitions = rules.num_partitions if topic.num_partitions == DEFAULT else topic.num_partitions
    factor = rules.replication_factor if topic.replication_factor == DEFAULT else topic.replication_factor
    if factor <= 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the replication factor must be positive, or -1 for the default, not {factor}",
        )
    if partitions <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"the number of partitions must be positive, or -1 for the default, not {partitions}",
        )
    return place_replicas(image.brokers.values(), partitions, factor, rules.chooser)


def delete_topics(
    image: MetadataImage, references: Sequence[TopicReference], charge: Charge = charge_nobody
) -> Decision[list[TopicImage | KafkaError]]:
    """One answer per reference, in order: the deleted topic, or an error."""
    referenced = [find_topic(image, reference) for reference in references]
    repeated = repeated_items(topic.id for topic in referenced if isinstance(topic, TopicImage))
    results: list[TopicImage | KafkaError] = []
    records: list[MetadataRecord] = []
    for topic in referenced:
        if isinstance(topic, TopicImage) and topic.id in repeated:
            results.append(repeated_topic(topic.name))
            continue
        if isinstance(topic, TopicImage):
            try:
                charge(topic.id, len(topic.partitions))
            except KafkaError as error:
                results.append(error.as_result())
                continue
            records.append(RemoveTopicRecord(topic.id))
        results.append(topic)
    return Decision(tuple(records), results)


def find_topic(image: MetadataImage, reference: TopicReference) -> TopicImage | KafkaError:
    topic_id = None if reference.id == ZERO_UUID else reference.id
    if reference.name is not None and topic_id is not None:
        return invalid_request("name a topic by its name or by its id, not by both")
    if reference.name is not None:
        return image.topic(reference.name) or absent_topic(reference.name)
    if topic_id is None:
        return invalid_request("a topic needs a name or an id")
    missing = ErrorCode.UNKNOWN_TOPIC_ID
    return image.topic_by_id(topic_id) or KafkaError(
        missing, f"there is no topic with id {uuid_to_string(topic_id)}"
    )


PartitionsResults: TypeAlias = dict[str, int | KafkaError]


def create_partitions(
    image: MetadataImage,
    requests: Sequence[NewPartitions],
    rules: TopicRules,
    charge: Charge = charge_nobody,
) -> Decision[PartitionsResults]:
    """One answer per topic name: its new number of partitions, or an error."""
    results: PartitionsResults = {}
    records: list[MetadataRecord] = []
    repeated = repeated_items(request.name for request in requests)
    total = sum(_added(image, request) for request in requests)
    for request in requests:
        try:
            if request.name in repeated:
                raise repeated_topic(request.name)
            _check_request_size(total)
            added = _add_partitions(image, request, rules)
            charge(request.name, _added(image, request))
            records.extend(added)
        except KafkaError as error:
            results[request.name] = error.as_result()
        else:
            results[request.name] = request.count
    return Decision(tuple(records), results)


def _added(image: MetadataImage, request: NewPartitions) -> int:
    topic = image.topic(request.name)
    return 0 if topic is None else max(0, request.count - len(topic.partitions))


def _add_partitions(
    image: MetadataImage, request: NewPartitions, rules: TopicRules
) -> Iterable[MetadataRecord]:
    topic = image.topic(request.name)
    if topic is None:
        raise absent_topic(request.name)
    present = len(topic.partitions)
    if request.count <= present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {request.name!r} has {present} partitions; the new number must be larger, "
            f"not {request.count}",
        )
    factor = len(topic.partitions[0].replicas)
    added = request.count - present
    if request.assignments is None:
        replicas = place_replicas(image.brokers.values(), added, factor, rules.chooser)
    else:
        replicas = [tuple(assignment) for assignment in request.assignments]
        if len(replicas) != added:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{added} partitions are added, but replicas are assigned for {len(replicas)}",
            )
        check_assignments(image, replicas, factor)
    return partition_records(image, topic.id, present, replicas)
