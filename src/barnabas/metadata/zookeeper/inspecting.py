"""Reads the metadata of a cluster without being part of it; changes nothing in ZooKeeper."""

from barnabas.metadata.secret_values import SecretValues
from barnabas.metadata.store import StoreError, Update
from barnabas.metadata.zookeeper.connection import Connection
from barnabas.metadata.zookeeper.layout import paths_of, read_cluster
from barnabas.metadata.zookeeper.reader import LogReader
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings


async def read_metadata(settings: ZooKeeperSettings) -> tuple[str, list[Update]]:
    """The id of the cluster and its log: a snapshot, if the log was trimmed, and the batches after it."""
    settings.check()
    connection = Connection(settings)
    await connection.open()
    paths = paths_of(settings.chroot)

    async def read() -> tuple[str, list[Update]]:
        cluster = await read_cluster(connection, paths)
        if cluster is None:
            raise StoreError(f"there is no cluster in ZooKeeper at {settings.connect}")
        return cluster.cluster_id, (
            await LogReader(connection, paths, SecretValues()).from_offset(0)
        ).updates(0)

    try:
        return await connection.until_answered(read, settings.connection_timeout_seconds)
    finally:
        await connection.close()
