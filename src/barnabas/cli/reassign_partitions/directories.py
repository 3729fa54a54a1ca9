"""Moves of replicas between the log directories of a broker."""

import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

from barnabas.cli.failures import ToolError
from barnabas.client.admin import Admin, TopicPartitionReplica
from barnabas.errors import ErrorCode

PAUSE_SECONDS = 0.1


class DirectoryState(NamedTuple):
    """The directory that a replica is in, and the one that it moves to; None if there is none."""

    current: str | None
    future: str | None


def start_moves(admin: Admin, directories: Mapping[TopicPartitionReplica, str], timeout_ms: int) -> None:
    """Ask until every broker has begun: a replica that has just been moved to a broker may be there later."""
    pending = dict(directories)
    deadline = time.monotonic() + timeout_ms / 1000
    while pending:
        outcomes = admin.alter_replica_log_dirs(pending)
        for replica in sorted(outcomes, key=_order):
            error = outcomes[replica]
            if error is None:
                print(
                    f"Successfully started moving log directory to {pending.pop(replica)} for replica "
                    f"{replica.topic}-{replica.partition} with broker {replica.broker_id} "
                )
            elif error.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
                raise ToolError(f"Failed to alter dir for {replica_name(replica)}: {error}")
        if pending and time.monotonic() >= deadline:
            raise ToolError(
                f"Timed out before log directory move{'' if len(pending) == 1 else 's'} could be started "
                "for: " + ",".join(map(replica_name, sorted(pending, key=_order)))
            )
        if pending:
            time.sleep(PAUSE_SECONDS)


def states_of(
    admin: Admin, replicas: Collection[TopicPartitionReplica]
) -> dict[TopicPartitionReplica, DirectoryState]:
    """Where each replica is now."""
    brokers = {replica.broker_id for replica in replicas}
    partitions = {replica.topic_partition for replica in replicas}
    described = admin.describe_log_dirs(brokers, partitions=partitions) if replicas else {}
    states = {}
    for replica in replicas:
        current = future = None
        for path, directory in described[replica.broker_id].items():
            info = directory.replicas.get(replica.topic_partition)
            if info is not None and info.is_future:
                future = path
            elif info is not None:
                current = path
        states[replica] = DirectoryState(current, future)
    return states


def verify_moves(admin: Admin, directories: Mapping[TopicPartitionReplica, str]) -> bool:
    """Print the state of each move. Returns whether all are done."""
    states = states_of(admin, directories)
    ordered = sorted(states, key=_order)
    print("\n".join(_sentence(replica, states[replica], directories[replica]) for replica in ordered))
    return all(state.future is None for state in states.values())


def _sentence(replica: TopicPartitionReplica, state: DirectoryState, target: str) -> str:
    name = f"{replica.topic}-{replica.partition}"
    if state.current is None:
        return (
            f"Partition {name} is not found in any live log dir on broker {replica.broker_id}. "
            "There is likely an offline log directory on the broker."
        )
    if state.future == target:
        return f"Reassignment of replica {replica_name(replica)} is still in progress."
    if state.future is not None:
        return (
            f"Partition {name} on broker {replica.broker_id} is being moved to log dir {state.future} "
            f"instead of {target}."
        )
    if state.current == target:
        return f"Reassignment of replica {replica_name(replica)} completed successfully."
    return (
        f"Partition {name} on broker {replica.broker_id} is not being moved from log dir {state.current} "
        f"to {target}."
    )


def replica_name(replica: TopicPartitionReplica) -> str:
    return f"{replica.topic}-{replica.partition}-{replica.broker_id}"


def _order(replica: TopicPartitionReplica) -> tuple[int, str, int]:
    return replica.broker_id, replica.topic, replica.partition
