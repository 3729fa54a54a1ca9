"""What reassign-partitions does: propose, start, verify, cancel and list moves of partitions."""

import argparse
import random
from collections.abc import Collection

from barnabas.cli.failures import ToolError, results_and_errors
from barnabas.cli.reassign_partitions.directories import start_moves, states_of, verify_moves
from barnabas.cli.reassign_partitions.files import (
    check_executable,
    duplicates,
    joined,
    name_of,
    names_of,
    read_reassignment,
    read_topics,
    reassignment_json,
)
from barnabas.cli.reassign_partitions.throttles import (
    all_moves,
    clear_throttles,
    limit_directory_moves,
    limit_moves,
)
from barnabas.client.admin import Admin, TopicPartitionReplica
from barnabas.client.types import TopicDescription, TopicPartition
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import ZERO_UUID
from barnabas.metadata.parts import BrokerImage
from barnabas.metadata.placement import place_replicas

ALREADY_MOVING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this "
    "and create a new partition assignment in addition to the existing one. The --additional flag can also "
    "be used to change the throttle by resubmitting the current reassignment."
)
VERIFY_LATER = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
    "is removed."
)


def list_moves(admin: Admin, options: argparse.Namespace) -> int:
    moves = admin.list_partition_reassignments()
    if not moves:
        print("No partition reassignments found.")
        return 0
    print("Current partition reassignments:")
    for partition, move in sorted(moves.items()):
        line = f"{name_of(partition)}: replicas: {joined(move.replicas)}."
        if move.adding_replicas:
            line += f" adding: {joined(move.adding_replicas)}."
        if move.removing_replicas:
            line += f" removing: {joined(move.removing_replicas)}."
        print(line)
    return 0


def generate(admin: Admin, options: argparse.Namespace) -> int:
    """Propose replicas on the given brokers; a topic keeps its replication factor."""
    brokers = _broker_list(options.broker_list)
    topics = _described(admin, read_topics(options.topics_to_move_json_file))
    current = _replicas(topics.values())
    candidates = _candidates(admin, brokers, is_rack_aware=not options.disable_rack_aware)
    proposed: dict[TopicPartition, list[int]] = {}
    for name, topic in topics.items():
        factor = len(topic.partitions[0].replicas)
        placed = place_replicas(candidates, len(topic.partitions), factor, random.Random())
        proposed |= {TopicPartition(name, number): list(ids) for number, ids in enumerate(placed)}
    print(f"Current partition replica assignment\n{_current_json(admin, current)}\n")
    print(f"Proposed partition reassignment configuration\n{reassignment_json(proposed)}")
    return 0


def execute(admin: Admin, options: argparse.Namespace) -> int:
    reassignment = read_reassignment(options.reassignment_json_file)
    proposed = check_executable(reassignment)
    running = admin.list_partition_reassignments()
    if running and not options.additional:
        raise ToolError(ALREADY_MOVING)
    _check_brokers(admin, {broker for brokers in proposed.values() for broker in brokers})
    current = _current_replicas(admin, proposed)
    print(
        f"Current partition replica assignment\n\n{_current_json(admin, current)}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    if options.throttle >= 0 or options.replica_alter_log_dirs_throttle >= 0:
        print(VERIFY_LATER)
    if options.throttle >= 0:
        limit_moves(admin, all_moves(running, proposed, current), options.throttle)
    if options.replica_alter_log_dirs_throttle >= 0:
        brokers = {replica.broker_id for replica in reassignment.directories}
        limit_directory_moves(admin, brokers, options.replica_alter_log_dirs_throttle)
    _, errors = results_and_errors(
        lambda: admin.alter_partition_reassignments(
            proposed, allow_replication_factor_change=not options.disallow_replication_factor_change
        )
    )
    if errors:
        raise ToolError(f"Error reassigning partition(s):\n{_error_lines(errors)}")
    print(
        f"Successfully started partition reassignment{'' if len(proposed) == 1 else 's'} "
        f"for {names_of(proposed)}"
    )
    start_moves(admin, reassignment.directories, options.timeout)
    return 0


def verify(admin: Admin, options: argparse.Namespace) -> int:
    """Print the state of each move; when all are done, remove the throttles."""
    reassignment = read_reassignment(options.reassignment_json_file)
    running = admin.list_partition_reassignments()
    targets = dict(reassignment.replicas)
    finished = [partition for partition in targets if partition not in running]
    current = _replicas(results_and_errors(lambda: _topics(admin, finished))[0].values())
    print("Status of partition reassignment:")
    for partition, target in sorted(targets.items()):
        if partition in running:
            print(f"Reassignment of partition {name_of(partition)} is still in progress.")
        elif current.get(partition, []) == target:
            print(f"Reassignment of partition {name_of(partition)} is completed.")
        else:
            print(
                f"There is no active reassignment of partition {name_of(partition)}, but replica set is "
                f"{joined(current.get(partition, []))} rather than {joined(target)}."
            )
    is_done = verify_moves(admin, reassignment.directories)
    if is_done and not running and not options.preserve_throttles:
        clear_throttles(admin, reassignment.replicas)
    return 0


def cancel(admin: Admin, options: argparse.Namespace) -> int:
    reassignment = read_reassignment(options.reassignment_json_file)
    running = admin.list_partition_reassignments(reassignment.partitions())
    if running:
        _, errors = results_and_errors(
            lambda: admin.alter_partition_reassignments(dict.fromkeys(running, None))
        )
        if errors:
            plural = "" if len(errors) == 1 else "s"
            raise ToolError(f"Error cancelling partition reassignment{plural} for:\n{_error_lines(errors)}")
        plural = "" if len(running) == 1 else "s"
        print(f"Successfully cancelled partition reassignment{plural} for: {names_of(running)}")
    else:
        print("None of the specified partition reassignments are active.")
    states = states_of(admin, reassignment.directories)
    moving = {
        replica: state.current
        for replica, state in states.items()
        if state.current is not None and state.future is not None
    }
    if moving:
        start_moves(admin, moving, options.timeout)
    else:
        print("None of the specified partition moves are active.")
    if not options.preserve_throttles:
        clear_throttles(admin, reassignment.replicas)
    return 0


def _broker_list(text: str) -> list[int]:
    try:
        brokers = [int(number) for number in text.split(",")]
    except ValueError:
        raise ToolError(f"--broker-list {text}: expected broker ids such as 1,2,3.") from None
    if repeated := duplicates(brokers):
        raise ToolError(f"Broker list contains duplicate entries: [{', '.join(map(str, repeated))}]")
    return brokers


def _candidates(admin: Admin, brokers: list[int], *, is_rack_aware: bool) -> list[BrokerImage]:
    nodes = [node for node in admin.describe_cluster().nodes if node.id in brokers]
    racks = [node.rack for node in nodes if node.rack is not None]
    if is_rack_aware and racks and len(racks) != len(nodes):
        raise ToolError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
            "assignment without rack information."
        )
    return [
        BrokerImage(node.id, 0, ZERO_UUID, (), node.rack if is_rack_aware else None, fenced=False)
        for node in nodes
    ]


def _check_brokers(admin: Admin, brokers: set[int]) -> None:
    known = {node.id for node in admin.describe_cluster().nodes}
    if unknown := sorted(brokers - known):
        raise ToolError(f"Unknown broker id {unknown[0]}")


def _topics(admin: Admin, partitions: Collection[TopicPartition]) -> dict[str, TopicDescription]:
    names = sorted({partition.topic for partition in partitions})
    return admin.describe_topics(names) if names else {}


def _described(admin: Admin, names: list[str]) -> dict[str, TopicDescription]:
    topics, errors = results_and_errors(lambda: admin.describe_topics(names))
    for name, error in errors.items():
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise ToolError(f"Topic {name} not found.")
        raise error
    return topics


def _current_replicas(
    admin: Admin, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, list[int]]:
    replicas = _replicas(_described(admin, sorted({each.topic for each in partitions})).values())
    if missing := [partition for partition in partitions if partition not in replicas]:
        raise ToolError(f"Unable to find partition: {names_of(missing, ', ')}")
    return {partition: replicas[partition] for partition in partitions}


def _replicas(topics: Collection[TopicDescription]) -> dict[TopicPartition, list[int]]:
    return {
        TopicPartition(topic.name, info.partition): [node.id for node in info.replicas]
        for topic in topics
        for info in topic.partitions
    }


def _current_json(admin: Admin, replicas: dict[TopicPartition, list[int]]) -> str:
    """The replicas and their directories, to move them back with. The directories of a dead broker are not
    known."""
    living = {node.id for node in admin.describe_cluster().nodes}
    present = [
        TopicPartitionReplica(*partition, broker)
        for partition, brokers in replicas.items()
        for broker in brokers
        if broker in living
    ]
    states = states_of(admin, present)
    return reassignment_json(replicas, {replica: state.current for replica, state in states.items()})


def _error_lines(errors: dict[TopicPartition, KafkaError]) -> str:
    return "\n".join(f"{name_of(partition)}: {error.message}" for partition, error in sorted(errors.items()))
