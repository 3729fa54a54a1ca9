"""The ZooKeeper store. barnabas.metadata.store says what it guarantees, layout.py where everything is.

    store = await ZooKeeperStore.open(ZooKeeperSettings("zk1:2181,zk2:2181/kafka"), cluster_id=None)

While ZooKeeper is away, calls wait for up to the session timeout and then raise StoreUnavailable, which says
where ZooKeeper should be and since when it is away. Only `campaign` waits for as long as it takes. A change
that raised StoreUnavailable may still happen."""

import asyncio
from collections.abc import Callable, Sequence

from barnabas.ids import random_uuid, uuid_to_string
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import MetadataRecord
from barnabas.metadata.secret_values import SecretValues
from barnabas.metadata.store import (
    BrokerRegistration,
    Cancel,
    ConnectionState,
    OffsetConflict,
    SessionWatcher,
    StoreError,
    Update,
    Watcher,
)
from barnabas.metadata.zookeeper.connection import Connection
from barnabas.metadata.zookeeper.election import Election, ZooKeeperLeadership
from barnabas.metadata.zookeeper.feed import Feed
from barnabas.metadata.zookeeper.layout import ClusterNode, Paths, create_cluster, paths_of, read_cluster
from barnabas.metadata.zookeeper.reader import LogReader
from barnabas.metadata.zookeeper.sessions import Sessions, ZooKeeperSession
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings
from barnabas.metadata.zookeeper.tasks import Tasks
from barnabas.metadata.zookeeper.trimming import Trimmer
from barnabas.metadata.zookeeper.writer import LogWriter


class ZooKeeperStore:
    """Create it with `open`. Used by one event loop."""

    def __init__(
        self, connection: Connection, paths: Paths, cluster: ClusterNode, secrets: SecretValues
    ) -> None:
        self.cluster_id = cluster.cluster_id
        self.connection = connection
        self._closing: list[Callable[[], None]] = []
        self._within_seconds = connection.settings.session_timeout_seconds
        self._tasks = Tasks()
        self._turn = asyncio.Lock()
        self._snapshot_turn = asyncio.Lock()
        self._reader = LogReader(connection, paths, secrets)
        self._writer = LogWriter(connection, paths, self._reader, secrets)
        self._trimmer = Trimmer(self._writer)
        self._feed = Feed(connection, self._reader)
        self._sessions = Sessions(connection, paths, self._tasks)
        self._election = Election(connection, paths, cluster.epoch_base, self._tasks)

    @classmethod
    async def open(cls, settings: ZooKeeperSettings, *, cluster_id: str | None = None) -> "ZooKeeperStore":
        """Connect to the cluster below the chroot. If there is none, create it.

        `cluster_id` is the id that the data directory of the broker belongs to, if it has one. Then the
        cluster must exist and have this id: a wrong path would otherwise give an empty cluster, in which
        all topics of the directory are unknown."""
        settings.check()
        connection = Connection(settings)
        await connection.open()
        paths = paths_of(settings.chroot)
        try:
            cluster = await connection.until_answered(
                lambda: _cluster(connection, paths, cluster_id), settings.connection_timeout_seconds
            )
            secrets = await asyncio.to_thread(SecretValues.of, settings.secrets, cluster.cluster_id)
            return cls(connection, paths, cluster, secrets)
        except BaseException:
            await connection.close()
            raise

    def when_closed(self, callback: Callable[[], None]) -> None:
        """Call this once, at the end of `close`."""
        self._closing.append(callback)

    @property
    def connection_state(self) -> ConnectionState:
        connection = self.connection
        return ConnectionState(connection.is_connected, connection.disconnects, connection.generation)

    async def append(self, records: Sequence[MetadataRecord], expected_offset: int, epoch: int) -> int:
        return await self._tasks.run_to_completion(self._append(tuple(records), expected_offset, epoch))

    async def _append(self, records: tuple[MetadataRecord, ...], expected_offset: int, epoch: int) -> int:
        async with self._turn:
            claim = self._election.claim(epoch)
            if not records:
                await self._check_end(expected_offset)
                return expected_offset
            stored = await self._writer.append(records, expected_offset, claim, self._within_seconds)
            self._trimmer.saw(stored)
            self._feed.appended(stored)
            return stored.batch.end_offset

    async def _check_end(self, expected_offset: int) -> None:
        head = await self.connection.until_answered(self._writer.refresh, self._within_seconds)
        if head.end != expected_offset:
            raise OffsetConflict(head.end)

    async def read(self, from_offset: int) -> Sequence[Update]:
        part = await self.connection.until_answered(
            lambda: self._reader.from_offset(from_offset), self._within_seconds
        )
        return part.updates(from_offset)

    async def newest_end(self) -> int:
        head = await self.connection.until_answered(self._reader.newest_head, self._within_seconds)
        return head.end

    async def watch(self, from_offset: int, watcher: Watcher) -> Cancel:
        # A broker that starts ends with an error if this fails: it is to be as patient as `open`.
        within_seconds = max(self._within_seconds, self.connection.settings.connection_timeout_seconds)
        return await self._feed.watch(from_offset, watcher, within_seconds)

    @property
    def snapshot_due(self) -> bool:
        return self._trimmer.is_due(self.connection.settings.snapshot_bytes)

    async def snapshot(self, image: MetadataImage, epoch: int) -> None:
        await self._tasks.run_to_completion(self._snapshot(image, epoch))

    async def _snapshot(self, image: MetadataImage, epoch: int) -> None:
        async with self._snapshot_turn:
            claim = self._election.claim(epoch)
            await self._trimmer.snapshot(image, claim, self._turn, self._within_seconds)

    async def register_broker(self, registration: BrokerRegistration) -> ZooKeeperSession:
        return await self._sessions.register(registration, registration.previous_incarnation)

    async def watch_sessions(self, watcher: SessionWatcher) -> Cancel:
        return await self._sessions.watch(watcher, self._within_seconds)

    async def campaign(self, broker_id: int) -> ZooKeeperLeadership:
        leadership = await self._election.campaign(broker_id)
        self._tasks.start(self._clean(leadership))
        return leadership

    async def depose(self, epoch: int) -> None:
        await self._election.depose(epoch, self._within_seconds)

    async def _clean(self, leadership: ZooKeeperLeadership) -> None:
        """Remove what an earlier controller staged and did not commit."""
        async with self._snapshot_turn:
            if not leadership.lost.is_set():
                await self._trimmer.clean(leadership.claim, self._within_seconds)

    async def close(self) -> None:
        self._sessions.stop_watching()
        self._election.end_all()
        self._sessions.end_all()
        await self._feed.close()
        await self._tasks.close()
        await self.connection.close()
        while self._closing:
            self._closing.pop()()


async def _cluster(connection: Connection, paths: Paths, expected_id: str | None) -> ClusterNode:
    where = connection.settings.connect
    cluster = await read_cluster(connection, paths)
    if cluster is None:
        if expected_id is not None:
            raise StoreError(
                f"there is no cluster in ZooKeeper at {where}, but the data directory belongs to cluster "
                f"{expected_id}: correct zookeeper.connect, or bring the metadata of a single broker to "
                "ZooKeeper with `barnabas cluster adopt`"
            )
        await create_cluster(connection, paths, ClusterNode(uuid_to_string(random_uuid())))
        cluster = await read_cluster(connection, paths)
    if cluster is None:
        raise StoreError(f"the cluster in ZooKeeper at {where} was deleted while it was opened")
    if not cluster.is_complete:
        raise StoreError(
            f"the cluster in ZooKeeper at {where} is not complete: run `barnabas cluster adopt` again"
        )
    if expected_id is not None and cluster.cluster_id != expected_id:
        raise StoreError(
            f"the cluster in ZooKeeper at {where} is {cluster.cluster_id}, but the data directory belongs to "
            f"cluster {expected_id}: correct zookeeper.connect or log.dirs"
        )
    return cluster
