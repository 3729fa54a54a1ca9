"""A protected ZooKeeper: over TLS, with a user, and with nodes that nobody else may read or change."""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from tests.support.certificates import Authority

from barnabas import Producer
from barnabas.client.admin import NewTopic
from barnabas.config.definition import ConfigError
from barnabas.config.values import BrokerConfig
from barnabas.metadata.opening import zookeeper_settings
from barnabas.metadata.store import StoreError, StoreUnreachable
from barnabas.metadata.zookeeper.settings import ZooKeeperSettings
from barnabas.metadata.zookeeper.store import ZooKeeperStore
from barnabas.security.tls import TlsSettings, server_context
from barnabas.testing import Cluster
from barnabas.testing.zookeeper import ZooKeeper

DIGEST = {"barnabas.zookeeper.digest": "brokers:zk-secret", "zookeeper.set.acl": "true"}


@pytest.fixture(scope="module")
def zookeeper() -> Iterator[ZooKeeper]:
    with ZooKeeper() as running:
        yield running


def settings_of(connect: str, overrides: Mapping[str, str]) -> ZooKeeperSettings:
    limits = {"zookeeper.connection.timeout.ms": "3000"}
    settings = zookeeper_settings(BrokerConfig({"zookeeper.connect": connect, **limits, **overrides}))
    assert settings is not None
    return settings


def open_and_close(settings: ZooKeeperSettings) -> str:
    async def story() -> str:
        store = await ZooKeeperStore.open(settings, cluster_id=None)
        try:
            return store.cluster_id
        finally:
            await store.close()

    return asyncio.run(story())


def test_only_the_user_that_created_the_nodes_may_use_them(zookeeper: ZooKeeper) -> None:
    connect = f"{zookeeper.connect}/owned"
    cluster_id = open_and_close(settings_of(connect, DIGEST))
    assert open_and_close(settings_of(connect, DIGEST)) == cluster_id
    others = ({}, {"barnabas.zookeeper.digest": "brokers:another"})
    for other in others:
        with pytest.raises(StoreError, match=r"does not let this broker use the nodes.*digest") as caught:
            open_and_close(settings_of(connect, other))
        assert "another" not in str(caught.value)


def all_paths(client: KazooClient, path: str) -> Iterator[str]:
    yield path
    for name in client.get_children(path):
        yield from all_paths(client, f"{path}/{name}")


def test_every_node_of_a_cluster_belongs_to_its_brokers() -> None:
    with Cluster(2, DIGEST) as cluster:
        with cluster.admin() as admin:
            admin.create_topics([NewTopic("orders", 2, 2)])
        with Producer(bootstrap_servers=cluster.bootstrap) as producer:
            producer.send("orders", b"v").result(30)
        owner = KazooClient(cluster.zookeeper_connect, auth_data=[("digest", "brokers:zk-secret")])
        stranger = KazooClient(cluster.zookeeper_connect)
        owner.start()
        stranger.start()
        try:
            roots = [f"/{name}" for name in owner.get_children("/") if name != "zookeeper"]
            paths = [path for root in roots for path in all_paths(owner, root)]
            assert len(paths) > 8
            for path in paths:
                with pytest.raises(NoAuthError):
                    stranger.get(path)
        finally:
            for client in (owner, stranger):
                client.stop()
                client.close()
        for output in cluster.outputs().values():
            assert "zk-secret" not in output


def test_acls_without_an_owner_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.set\.acl=true needs somebody"):
        settings_of("h:1", {"zookeeper.set.acl": "true"})
    with pytest.raises(ConfigError, match="user and a password with a colon") as caught:
        settings_of("h:1", {"barnabas.zookeeper.digest": "no-colon"})
    assert "no-colon" not in str(caught.value)


def test_a_digest_is_in_no_repr() -> None:
    assert "zk-secret" not in repr(settings_of("h:1", DIGEST))


# ---- TLS


def pump(source: socket.socket, target: socket.socket) -> None:
    try:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
    finally:
        for each in (source, target):
            each.close()


@contextmanager
def over_tls(context: ssl.SSLContext, port: int) -> Iterator[int]:
    """A server that takes TLS and passes what it gets to the port. Yields its own port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            try:
                secured = context.wrap_socket(plain, server_side=True)
                inner = socket.create_connection(("127.0.0.1", port))
            except OSError:
                plain.close()
                continue
            for pair in ((secured, inner), (inner, secured)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def test_zookeeper_over_tls(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    authority = Authority()
    server, client = authority.server(), authority.client("CN=brokers")
    served = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": server.write_pem(tmp_path / "server.pem"),
        "ssl.client.auth": "required",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.write_pem(tmp_path / "ca.pem"),
    }
    enabled = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": str(tmp_path / "ca.pem"),
        "zookeeper.ssl.keystore.location": client.write_pem(tmp_path / "client.pem"),
    }
    with over_tls(server_context(TlsSettings.from_config(served.get)), zookeeper.port) as port:
        connect = f"127.0.0.1:{port}/over-tls"
        cluster_id = open_and_close(settings_of(connect, enabled))
        assert cluster_id == open_and_close(settings_of(f"{zookeeper.connect}/over-tls", {}))
        another = Authority("CN=Another").write_pem(tmp_path / "another.pem")
        with pytest.raises(StoreUnreachable, match=r"TLS: .*certificate.*zookeeper\.ssl\.\*"):
            open_and_close(settings_of(connect, {**enabled, "zookeeper.ssl.truststore.location": another}))
        with pytest.raises(StoreUnreachable):
            open_and_close(settings_of(connect, {}))


def test_a_wrong_store_is_an_error_at_start(tmp_path: Path) -> None:
    enabled = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": str(tmp_path / "missing.pem"),
    }
    with pytest.raises(ConfigError, match=r"zookeeper\.ssl\.truststore\.location names .* cannot be read"):
        settings_of("h:1", enabled)
