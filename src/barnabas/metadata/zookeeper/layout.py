"""The nodes of a cluster in ZooKeeper, all below <chroot>/barnabas:

    barnabas                 {"layout": 1, "cluster_id": ..., "epoch_base": ...}; created once, never changed
    barnabas/head            where the log begins and ends (Head); changes with every append and snapshot
    barnabas/log/<sequence>  one node per append (documents.py)
    barnabas/staged/<name>   parts of an append or a snapshot that is too large for one node
    barnabas/epoch           the controller epoch is the version of this node, plus epoch_base
    barnabas/candidates/...  one ephemeral, sequential node per candidate for controller; the first one leads
    barnabas/brokers/<id>    one ephemeral node per living broker, with its registration

Sequences count appends: an append of many records is one sequence, so all entries can be read without a
list of their names."""

import json
import time
from dataclasses import dataclass, replace
from typing import Any

from barnabas.metadata.store import StoreError
from barnabas.metadata.zookeeper.connection import Connection, NodeExistsError, NoNodeError

LAYOUT_VERSION = 1
_ROOT = "barnabas"
# Nodes that only Apache Kafka creates.
_KAFKA_NODES = frozenset({"controller_epoch", "isr_change_notification", "log_dir_event_notification"})


@dataclass(frozen=True, slots=True)
class Paths:
    root: str

    @property
    def head(self) -> str:
        return f"{self.root}/head"

    @property
    def log(self) -> str:
        return f"{self.root}/log"

    @property
    def staged(self) -> str:
        return f"{self.root}/staged"

    @property
    def epoch(self) -> str:
        return f"{self.root}/epoch"

    @property
    def candidates(self) -> str:
        return f"{self.root}/candidates"

    @property
    def brokers(self) -> str:
        return f"{self.root}/brokers"

    def entry(self, sequence: int) -> str:
        return f"{self.log}/{sequence:010d}"

    def part(self, name: str, index: int) -> str:
        return f"{self.staged}/{name}/{index:06d}"

    def broker(self, broker_id: int) -> str:
        return f"{self.brokers}/{broker_id}"

    def candidate(self, name: str) -> str:
        return f"{self.candidates}/{name}"


@dataclass(frozen=True, slots=True)
class Staged:
    """Where a large document is: the name of its parts, and their number."""

    name: str
    parts: int


@dataclass(frozen=True, slots=True)
class Head:
    """The log has the entries [first, next), with the records [start, end). `snapshot` has the records below
    `start`. `size` is that of the entries in bytes. `version` is the version of the node itself."""

    first: int = 0
    next: int = 0
    start: int = 0
    end: int = 0
    size: int = 0
    snapshot: Staged | None = None
    version: int = -1

    def to_bytes(self) -> bytes:
        fields: dict[str, Any] = {"first": self.first, "next": self.next, "start": self.start}
        fields |= {"end": self.end, "size": self.size}
        if self.snapshot is not None:
            fields["snapshot"] = [self.snapshot.name, self.snapshot.parts]
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes, version: int) -> "Head":
        fields = json.loads(data)
        snapshot = fields.get("snapshot")
        return cls(
            fields["first"],
            fields["next"],
            fields["start"],
            fields["end"],
            fields["size"],
            None if snapshot is None else Staged(*snapshot),
            version,
        )

    def after_append(self, records: int, size: int) -> "Head":
        return replace(self, next=self.next + 1, end=self.end + records, size=self.size + size)


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """The content of the root node. `is_complete` is false while a single broker's metadata is copied."""

    cluster_id: str
    epoch_base: int = 0
    is_complete: bool = True

    def to_bytes(self) -> bytes:
        fields: dict[str, Any] = {"layout": LAYOUT_VERSION, "cluster_id": self.cluster_id}
        fields |= {"epoch_base": self.epoch_base, "created_ms": int(time.time() * 1000)}
        if not self.is_complete:
            fields["is_complete"] = False
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "ClusterNode":
        return cls(fields["cluster_id"], fields["epoch_base"], fields.get("is_complete", True))


def paths_of(chroot: str) -> Paths:
    return Paths(f"{chroot}/{_ROOT}")


async def read_cluster(connection: Connection, paths: Paths) -> ClusterNode | None:
    """The cluster below the chroot, or None if there is none. StoreError if something else is there."""
    where = connection.settings.connect
    try:
        data, _ = await connection.call("get", paths.root)
    except NoNodeError:
        await _refuse_kafka(connection)
        return None
    try:
        fields = json.loads(data)
        layout, cluster = fields["layout"], ClusterNode.from_json(fields)
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"the node {paths.root} of ZooKeeper at {where} is not a cluster of Barnabas; choose another "
            "path in zookeeper.connect"
        ) from error
    if layout != LAYOUT_VERSION:
        raise StoreError(
            f"the cluster in ZooKeeper at {where} has layout {layout!r}; this version of Barnabas reads "
            f"layout {LAYOUT_VERSION}"
        )
    return cluster


async def create_cluster(connection: Connection, paths: Paths, cluster: ClusterNode) -> None:
    """Create all nodes at once; returns also if another broker has just created them."""
    chroot = connection.settings.chroot
    if chroot:
        await connection.call("ensure_path", chroot)
    results = await connection.transaction(
        [
            ("create", paths.root, cluster.to_bytes()),
            ("create", paths.head, Head().to_bytes()),
            *(("create", path, b"") for path in (paths.log, paths.staged, paths.epoch)),
            *(("create", path, b"") for path in (paths.candidates, paths.brokers)),
        ]
    )
    for result in results:
        if isinstance(result, Exception) and not isinstance(result, NodeExistsError):
            if any(isinstance(other, NodeExistsError) for other in results):
                return
            raise StoreError(f"cannot create the cluster in ZooKeeper: {result!r}")


async def _refuse_kafka(connection: Connection) -> None:
    try:
        names = set(await connection.call("get_children", connection.settings.chroot or "/"))
    except NoNodeError:
        return
    if names & _KAFKA_NODES:
        raise StoreError(
            f"ZooKeeper at {connection.settings.connect} holds the metadata of an Apache Kafka cluster; "
            "choose another path in zookeeper.connect"
        )
