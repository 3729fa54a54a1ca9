"""`barnabas cluster status`: brokers, the controller, and the partitions that need attention."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from barnabas.cli.cluster.connecting import admin_of_cluster
from barnabas.cli.failures import results_and_errors
from barnabas.cli.output import columns, print_json
from barnabas.cli.partition_states import Moves, PartitionStates, in_sync_min_of, running_moves, states_of
from barnabas.client.admin import Admin, ClusterDescription, ConfigResource, ConfigResourceType
from barnabas.client.errors import KafkaError
from barnabas.client.types import Node, TopicPartition, TopicPartitionInfo

# For each kind: a large cluster with a problem must not fill the terminal. --json prints all.
PARTITIONS_SHOWN_MAX = 20
CLEAR_SCREEN = "\x1b[H\x1b[2J"


class Partition(NamedTuple):
    topic: str
    info: TopicPartitionInfo
    states: PartitionStates


class Status(NamedTuple):
    cluster: ClusterDescription
    partitions: list[Partition]
    moves: Moves

    def problems(self) -> dict[str, list[Partition]]:
        """The partitions that need attention, by what is wrong with them, the worst first."""
        kinds = {
            "offline": "is_unavailable",
            "under min ISR": "is_under_min_isr",
            "at min ISR": "is_at_min_isr",
            "under-replicated": "is_under_replicated",
        }
        return {
            kind: [
                each for each in self.partitions if getattr(each.states, field) and self._counts(kind, each)
            ]
            for kind, field in kinds.items()
        }

    def _counts(self, kind: str, partition: Partition) -> bool:
        """A partition that is at its minimum because all its replicas are in sync needs no attention."""
        return kind != "at min ISR" or partition.states.is_under_replicated


def show(options: argparse.Namespace) -> int:
    with admin_of_cluster(options) as admin:
        if options.watch is None:
            _print(read_status(admin), options)
            return 0
        while True:
            _print_again(admin, options)
            time.sleep(options.watch)


def _print_again(admin: Admin, options: argparse.Namespace) -> None:
    """While it watches, a failure is one more thing to show: the cluster may come back."""
    try:
        status = read_status(admin)
    except KafkaError as error:
        print(f"Error: {error}", file=sys.stderr)
        return
    if sys.stdout.isatty():
        print(CLEAR_SCREEN, end="")
    _print(status, options)
    sys.stdout.flush()


def read_status(admin: Admin) -> Status:
    cluster = admin.describe_cluster(include_fenced_brokers=True)
    live = {node.id for node in cluster.nodes} - cluster.fenced
    names = list(admin.list_topics(include_internal=True))
    # A topic that is deleted while we ask is left out.
    topics, _ = results_and_errors(lambda: admin.describe_topics(names))
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in topics]
    configs, _ = results_and_errors(lambda: admin.describe_configs(resources, include_synonyms=False))
    in_sync_mins = {resource.name: in_sync_min_of(entries) for resource, entries in configs.items()}
    moves = running_moves(admin)
    partitions = [
        Partition(
            name,
            info,
            states_of(info, moves.get(TopicPartition(name, info.partition)), in_sync_mins.get(name, 1), live),
        )
        for name, topic in sorted(topics.items())
        for info in topic.partitions
    ]
    return Status(cluster, partitions, moves)


def _print(status: Status, options: argparse.Namespace) -> None:
    if options.json:
        print_json(as_json(status))
    else:
        print(as_text(status))


def as_text(status: Status) -> str:
    cluster, problems = status.cluster, status.problems()
    controller = "none" if cluster.controller is None else str(cluster.controller.id)
    rows = [
        (node.id, f"{node.host}:{node.port}" if node.host else None, node.rack, state, leaders, replicas)
        for node, state, leaders, replicas in _brokers(status)
    ]
    counts = ", ".join(f"{len(partitions)} {kind}" for kind, partitions in problems.items())
    sections = [
        f"Cluster {cluster.cluster_id}, controller: {controller}",
        columns(("BROKER", "ADDRESS", "RACK", "STATE", "LEADERS", "REPLICAS"), rows, gap=2),
        f"{len(status.partitions)} partitions: {counts}, {len(status.moves)} moving",
    ]
    sections += [_partition_table(kind, partitions) for kind, partitions in problems.items() if partitions]
    if status.moves:
        sections.append("Moving:\n" + _move_table(status.moves))
    return "\n\n".join(sections)


def _brokers(status: Status) -> list[tuple[Node, str, int, int]]:
    """Each broker, its state, how many partitions it leads and how many replicas it has."""
    leaders = Counter(each.info.leader.id for each in status.partitions if each.info.leader is not None)
    replicas = Counter(node.id for each in status.partitions for node in each.info.replicas)
    known = {node.id: node for node in status.cluster.nodes}
    # Replicas may be on brokers that are not there: they are what a user looks for.
    missing = [Node(id_, "", -1) for id_ in replicas if id_ not in known]
    return [
        (node, _state(node, status.cluster), leaders[node.id], replicas[node.id])
        for node in sorted([*known.values(), *missing])
    ]


def _state(node: Node, cluster: ClusterDescription) -> str:
    if not node.host:
        return "down"
    return "fenced" if node.id in cluster.fenced else "up"


def _partition_table(kind: str, partitions: Sequence[Partition]) -> str:
    rows = [
        (
            each.topic,
            each.info.partition,
            "none" if each.info.leader is None else each.info.leader.id,
            _ids(each.info.replicas),
            _ids(each.info.in_sync_replicas),
        )
        for each in partitions[:PARTITIONS_SHOWN_MAX]
    ]
    table = columns(("TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR"), rows, gap=2)
    more = len(partitions) - len(rows)
    return f"{kind[0].upper()}{kind[1:]}:\n{table}" + (f"\nand {more} more" if more > 0 else "")


def _move_table(moves: Moves) -> str:
    rows = [
        (
            partition.topic,
            partition.partition,
            _joined(move.replicas),
            _joined(move.adding_replicas),
            _joined(move.removing_replicas),
        )
        for partition, move in sorted(moves.items())[:PARTITIONS_SHOWN_MAX]
    ]
    return columns(("TOPIC", "PARTITION", "REPLICAS", "ADDING", "REMOVING"), rows, gap=2)


def _ids(nodes: Sequence[Node]) -> str:
    return _joined([node.id for node in nodes])


def _joined(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids)) or "-"


def as_json(status: Status) -> dict[str, Any]:
    cluster, problems = status.cluster, status.problems()
    return {
        "clusterId": cluster.cluster_id,
        "controller": None if cluster.controller is None else cluster.controller.id,
        "brokers": [
            {
                "id": node.id,
                "host": node.host or None,
                "port": node.port if node.host else None,
                "rack": node.rack,
                "state": state,
                "leaders": leaders,
                "replicas": replicas,
            }
            for node, state, leaders, replicas in _brokers(status)
        ],
        "partitions": len(status.partitions),
        "offline": _partitions_json(problems["offline"]),
        "underMinIsr": _partitions_json(problems["under min ISR"]),
        "atMinIsr": _partitions_json(problems["at min ISR"]),
        "underReplicated": _partitions_json(problems["under-replicated"]),
        "reassignments": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "replicas": list(move.replicas),
                "adding": list(move.adding_replicas),
                "removing": list(move.removing_replicas),
            }
            for partition, move in sorted(status.moves.items())
        ],
    }


def _partitions_json(partitions: Sequence[Partition]) -> list[dict[str, Any]]:
    return [
        {
            "topic": each.topic,
            "partition": each.info.partition,
            "leader": None if each.info.leader is None else each.info.leader.id,
            "replicas": [node.id for node in each.info.replicas],
            "isr": [node.id for node in each.info.in_sync_replicas],
        }
        for each in partitions
    ]
