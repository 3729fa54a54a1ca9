"""Opens the metadata store of a broker: ZooKeeper if `zookeeper.connect` is set, otherwise the embedded one.

The broker of a cluster keeps a small file in its metadata directory: to which ZooKeeper it belongs, and the
incarnation of its last start. With that file a restart after a crash replaces its old registration at once,
and a broker without `zookeeper.connect` refuses the directory: its topics are known only to the cluster."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.config.values import BrokerConfig
from barnabas.ids import Uuid, uuid_from_string, uuid_to_string
from barnabas.metadata.embedded import EmbeddedStore
from barnabas.metadata.files import Files, RealFiles
from barnabas.metadata.logfile import LOCK_NAME, in_use
from barnabas.metadata.store import MetadataStore, StoreError
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings

if TYPE_CHECKING:
    from barnabas.metadata.zookeeper.security import ZooKeeperSecurity
    from barnabas.metadata.zookeeper.store import ZooKeeperStore

MEMBERSHIP_NAME = "cluster.json"


@dataclass(frozen=True, slots=True)
class Membership:
    """The content of the file: the broker belongs to a cluster. No incarnation: it has not started there."""

    zookeeper: str
    incarnation: Uuid | None = None


@dataclass(frozen=True, slots=True)
class OpenedStore:
    store: MetadataStore
    previous_incarnation: Uuid | None = None


def zookeeper_settings(config: BrokerConfig) -> ZooKeeperSettings | None:
    """The settings of a broker of a cluster; None for a broker that runs alone."""
    connect = config["zookeeper.connect"]
    if connect is None:
        return None
    return ZooKeeperSettings(
        connect,
        config["zookeeper.session.timeout.ms"],
        config["zookeeper.connection.timeout.ms"],
        config["metadata.log.max.record.bytes.between.snapshots"],
        encoder_secrets(config),
        _zookeeper_security(config),
    )


def encoder_secrets(config: BrokerConfig) -> tuple[str | None, ...]:
    """What secrets are encrypted with, and what they were encrypted with before."""
    return config["password.encoder.secret"], config["password.encoder.old.secret"]


def _zookeeper_security(config: BrokerConfig) -> "ZooKeeperSecurity | None":
    # Imported late: a broker that runs alone does not need kazoo.
    from barnabas.metadata.zookeeper.security import zookeeper_security

    return zookeeper_security(config)


async def open_store(
    directory: Path,
    zookeeper: ZooKeeperSettings | None,
    *,
    incarnation: Uuid,
    cluster_id: str | None = None,
    secrets: tuple[str | None, ...] = (),
    files: Files | None = None,
) -> OpenedStore:
    """Open the store of a broker whose metadata directory is `directory`.

    `cluster_id` is the id in the meta.properties of the data directory; `incarnation` is that of this start.
    `secrets` are for the embedded store; the settings of ZooKeeper have them too."""
    files = files or RealFiles()
    membership = await asyncio.to_thread(read_membership, files, directory)
    if zookeeper is None:
        if membership is not None:
            raise StoreError(
                f"the broker of {directory} belongs to the cluster in ZooKeeper at {membership.zookeeper}; "
                "set zookeeper.connect, because only the cluster knows its topics"
            )
        return OpenedStore(
            await EmbeddedStore.open(directory, cluster_id=cluster_id, files=files, secrets=secrets)
        )
    lock = await asyncio.to_thread(_lock, files, directory)
    try:
        store = await _open_zookeeper(zookeeper, cluster_id)
    except BaseException:
        files.close(lock)
        raise
    store.when_closed(lambda: files.close(lock))
    await asyncio.to_thread(write_membership, files, directory, Membership(zookeeper.connect, incarnation))
    return OpenedStore(store, None if membership is None else membership.incarnation)


async def _open_zookeeper(settings: ZooKeeperSettings, cluster_id: str | None) -> "ZooKeeperStore":
    # Imported late: a single broker does not need kazoo.
    from barnabas.metadata.zookeeper.store import ZooKeeperStore

    return await ZooKeeperStore.open(settings, cluster_id=cluster_id)


def _lock(files: Files, directory: Path) -> int:
    try:
        files.make_directory(directory)
        lock = files.lock(directory / LOCK_NAME)
    except OSError as error:
        raise StoreError(f"cannot open the metadata in {directory}: {error}") from error
    if lock is None:
        raise StoreError(in_use(directory))
    return lock


def read_membership(files: Files, directory: Path) -> Membership | None:
    path = directory / MEMBERSHIP_NAME
    if not files.exists(path):
        return None
    try:
        fields = json.loads(files.read(path))
        incarnation = fields.get("incarnation")
        return Membership(fields["zookeeper"], None if incarnation is None else uuid_from_string(incarnation))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"cannot read {path}: {error}; delete it if this broker is of a cluster") from error


def write_membership(files: Files, directory: Path, membership: Membership) -> None:
    """Replace the file; after a crash it is the old or the new one."""
    fields = {"zookeeper": membership.zookeeper}
    if membership.incarnation is not None:
        fields["incarnation"] = uuid_to_string(membership.incarnation)
    path = directory / MEMBERSHIP_NAME
    partial = path.with_name(f"{MEMBERSHIP_NAME}.new")
    try:
        descriptor = files.create(partial)
        try:
            files.write(descriptor, json.dumps(fields).encode() + b"\n", 0)
            files.sync(descriptor)
        finally:
            files.close(descriptor)
        files.rename(partial, path)
        files.sync_directory(directory)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error}") from error
