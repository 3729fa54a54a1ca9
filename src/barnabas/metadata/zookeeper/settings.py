"""How to reach ZooKeeper: the settings of a store, and the form of zookeeper.connect."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.metadata.store import StoreError

if TYPE_CHECKING:
    from barnabas.metadata.zookeeper.security import ZooKeeperSecurity

SNAPSHOT_BYTES_MIN = 20 << 20


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """`connect` is Kafka's zookeeper.connect: host:port items, then an optional path. A snapshot is due when
    the log has grown by `snapshot_bytes`. `secrets` are password.encoder.secret and its predecessor."""

    connect: str
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int | None = None
    snapshot_bytes: int = SNAPSHOT_BYTES_MIN
    secrets: tuple[str | None, ...] = field(default=(), repr=False)
    security: "ZooKeeperSecurity | None" = None
    """TLS, a user, and ACLs; None if ZooKeeper is not protected."""

    @property
    def session_timeout_seconds(self) -> float:
        return self.session_timeout_ms / 1000

    @property
    def connection_timeout_seconds(self) -> float:
        """How long to try to reach ZooKeeper when the store is opened."""
        timeout_ms = self.connection_timeout_ms
        return (self.session_timeout_ms if timeout_ms is None else timeout_ms) / 1000

    @property
    def servers(self) -> str:
        """The host:port items, without the path."""
        return self.connect.partition("/")[0]

    @property
    def chroot(self) -> str:
        """The path below which everything is stored: empty, or a path that does not end with a slash."""
        path = self.connect.partition("/")[2].strip("/")
        return f"/{path}" if path else ""

    def check(self) -> None:
        """Raises StoreError if `connect` does not have the right form."""
        problem = _problem(self.servers, self.chroot)
        if problem is not None:
            raise StoreError(
                f"zookeeper.connect={self.connect}: {problem}; "
                "expected host:port,host:port and an optional path, such as zk1:2181,zk2:2181/kafka"
            )


def _problem(servers: str, chroot: str) -> str | None:
    for server in servers.split(","):
        host, separator, port = server.strip().rpartition(":")
        if not separator or not host:
            return f"{server.strip()!r} has no port" if server.strip() else "a server is missing"
        if not port.isdigit() or not 0 < int(port) < 1 << 16:
            return f"{port!r} is not a port"
    if "//" in chroot or any(part in (".", "..") for part in chroot.split("/")):
        return f"{chroot!r} is not a path of ZooKeeper"
    return None
