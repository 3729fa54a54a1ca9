"""One ZooKeeper for all tests of a process, and ways to break the sessions of a store."""

import asyncio
import atexit
from functools import cache

from kazoo.client import KazooClient

from barnabas.metadata.zookeeper.store import ZooKeeperStore
from barnabas.testing.zookeeper import ZooKeeper


@cache
def zookeeper() -> ZooKeeper:
    """A ZooKeeper that runs until the end of this process."""
    server = ZooKeeper().start()
    atexit.register(server.__exit__, None, None, None)
    return server


async def expire_session(store: ZooKeeperStore) -> None:
    """End the session of a store from another connection, as ZooKeeper does when it expires."""
    await asyncio.to_thread(
        _close_session, store.connection._client.client_id, store.connection.settings.servers
    )


def _close_session(client_id: tuple[int, bytes] | None, servers: str) -> None:
    other = KazooClient(hosts=servers, client_id=client_id)
    other.start(timeout=30)
    other.stop()
    other.close()
