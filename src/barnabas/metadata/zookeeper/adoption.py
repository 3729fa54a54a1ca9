"""Brings the metadata of a single broker to ZooKeeper: it becomes the first state of a cluster.

The whole image is stored as a snapshot with the offset that the broker's own log had, so broker epochs and
controller epochs go on rising. Until everything is there the root node says so, and brokers refuse the
cluster. If the adoption is interrupted, it can be done again."""

from dataclasses import replace

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.secret_values import SecretValues
from barnabas.metadata.store import StoreError
from barnabas.metadata.zookeeper.connection import Connection
from barnabas.metadata.zookeeper.documents import encode_snapshot
from barnabas.metadata.zookeeper.layout import (
    ClusterNode,
    Head,
    Paths,
    create_cluster,
    paths_of,
    read_cluster,
)
from barnabas.metadata.zookeeper.reader import LogReader
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings
from barnabas.metadata.zookeeper.writer import LogWriter


async def adopt_image(settings: ZooKeeperSettings, image: MetadataImage, epoch: int) -> None:
    """Create the cluster from the image; `epoch` is the newest controller epoch of the single broker."""
    settings.check()
    connection = Connection(settings)
    await connection.open()
    paths = paths_of(settings.chroot)
    cluster = ClusterNode(image.cluster_id, epoch, is_complete=False)
    secrets = SecretValues.of(settings.secrets, image.cluster_id)
    try:
        await connection.until_answered(
            lambda: _adopt(connection, paths, image, cluster, secrets),
            settings.session_timeout_seconds,
        )
    finally:
        await connection.close()


async def _adopt(
    connection: Connection, paths: Paths, image: MetadataImage, cluster: ClusterNode, secrets: SecretValues
) -> None:
    where = connection.settings.connect
    existing = await read_cluster(connection, paths)
    if existing is not None and (existing.is_complete or existing.cluster_id != cluster.cluster_id):
        raise StoreError(
            f"there is a cluster in ZooKeeper at {where} already ({existing.cluster_id}); choose another path"
        )
    # Before anything is created: this refuses secrets that cannot be encrypted.
    snapshot = encode_snapshot(image.offset, secrets.sealed(image.records()))
    if existing is None:
        await create_cluster(connection, paths, cluster)
    writer = LogWriter(connection, paths, LogReader(connection, paths, secrets), secrets)
    name = f"snapshot-{image.offset}-{cluster.epoch_base}-adopted"
    staged = await writer.stage(name, snapshot)
    head = Head(start=image.offset, end=image.offset, snapshot=staged)
    results = await connection.transaction(
        [
            ("set_data", paths.head, head.to_bytes(), 0),
            ("set_data", paths.root, replace(cluster, is_complete=True).to_bytes(), 0),
        ]
    )
    if any(isinstance(result, Exception) for result in results):
        raise StoreError(f"another program changed the cluster in ZooKeeper at {where} during the adoption")
