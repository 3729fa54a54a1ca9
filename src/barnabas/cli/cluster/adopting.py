"""`barnabas cluster adopt`: the metadata of a single broker becomes the first state of a cluster."""

import argparse
import asyncio
from pathlib import Path

from barnabas.cli.failures import ToolError
from barnabas.cli.zookeeper_access import settings_of
from barnabas.log.checkpoints import read_meta_properties
from barnabas.log.disk import RealDisk
from barnabas.metadata.embedded import DIRECTORY_NAME, EmbeddedStore
from barnabas.metadata.files import RealFiles
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.logfile import LOG_NAME
from barnabas.metadata.opening import (
    MEMBERSHIP_NAME,
    Membership,
    read_membership,
    write_membership,
)
from barnabas.metadata.replaying import image_of
from barnabas.metadata.store import StoreError
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings


def adopt(options: argparse.Namespace) -> int:
    try:
        settings = settings_of(options.zookeeper, options.config)
        image = asyncio.run(adopt_directory(options.data_dir, settings))
    except StoreError as error:
        raise ToolError(f"{error}.") from error
    print(
        f"Cluster {image.cluster_id} with {len(image.topics)} topics is in ZooKeeper at {options.zookeeper}."
    )
    print(
        f"Start the broker again with zookeeper.connect={options.zookeeper}, then start more brokers and "
        "move partitions to them with `barnabas reassign-partitions`."
    )
    return 0


async def adopt_directory(data_dir: Path, settings: ZooKeeperSettings) -> MetadataImage:
    """Copy the metadata to ZooKeeper. Records, offsets, ids and configs stay as they are."""
    # Imported late: other verbs do not need kazoo.
    from barnabas.metadata.zookeeper.adoption import adopt_image

    connect = settings.connect
    directory, files = data_dir / DIRECTORY_NAME, RealFiles()
    if not files.exists(directory / LOG_NAME):
        raise StoreError(f"there is no metadata of a single broker in {data_dir}")
    membership = read_membership(files, directory)
    if membership is not None and (membership.incarnation is not None or membership.zookeeper != connect):
        raise StoreError(
            f"the broker of {data_dir} belongs to the cluster in ZooKeeper at {membership.zookeeper} already"
        )
    store = await EmbeddedStore.open(directory, secrets=settings.secrets)
    try:
        _check_cluster_id(data_dir, store.cluster_id)
        image = image_of(store.cluster_id, await store.read(0))
        # The marker comes first: from here on a broker that runs alone refuses the directory.
        write_membership(files, directory, Membership(connect))
        try:
            await adopt_image(settings, image, store.election.epoch)
        except StoreError:
            if membership is None:
                files.remove(directory / MEMBERSHIP_NAME)
            raise
    finally:
        await store.close()
    return image


def _check_cluster_id(data_dir: Path, cluster_id: str) -> None:
    try:
        meta = read_meta_properties(RealDisk(), data_dir)
    except ValueError as error:
        raise StoreError(str(error)) from error
    if meta is not None and meta.cluster_id != cluster_id:
        raise StoreError(
            f"{data_dir} belongs to cluster {meta.cluster_id}, but its metadata is of cluster {cluster_id}"
        )
