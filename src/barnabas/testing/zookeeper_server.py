"""How a ZooKeeper server is started: its jars, its settings and the command line of Java.

`barnabas zookeeper start` and the ZooKeeper of tests both use it. The jars are those in pyspark's wheel, or
those of a directory that the user names."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

# Only the jars that a server needs: with all jars of pyspark on the class path Java starts more slowly.
_PYSPARK_JARS = (
    "zookeeper-[0-9]*.jar",
    "zookeeper-jute-*.jar",
    "slf4j-api-*.jar",
    "log4j-api-*.jar",
    "log4j-core-*.jar",
    "log4j-slf4j2-impl-*.jar",
    "metrics-core-*.jar",
    "snappy-java-*.jar",
    "netty-*.jar",
)
_SINGLE_SERVER = "org.apache.zookeeper.server.ZooKeeperServerMain"
_ENSEMBLE_SERVER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# A server keeps its tree in the heap. A small server uses 60 MB of memory; this limit is reached only when
# the tree needs it.
_HEAP_MAX = "-Xmx512m"
# The quick compiler and the simplest collector make the start fast and the process small.
_JAVA_OPTIONS = (_HEAP_MAX, "-Xms16m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
CONFIG_NAME = "zoo.cfg"
ID_NAME = "myid"


class ZooKeeperUnavailable(Exception):
    """A ZooKeeper server cannot be started; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """One server. `servers` are the members of an ensemble by id, each host:port:port (ZooKeeper's own form);
    `server_id` is the id of this one. Without `sync_writes` a crash of the machine may lose changes."""

    port: int
    data_dir: Path
    host: str = "127.0.0.1"
    servers: Mapping[int, str] = field(default_factory=dict)
    server_id: int | None = None
    tick_ms: int = 500
    sync_writes: bool = True
    log_level: str = "WARN"

    def properties(self) -> dict[str, str]:
        tick_ms = self.tick_ms
        settings = {
            "tickTime": str(tick_ms),
            "dataDir": str(self.data_dir.absolute()),
            "clientPort": str(self.port),
            "clientPortAddress": self.host,
            "minSessionTimeout": str(2 * tick_ms),
            "maxSessionTimeout": "120000",
            "maxClientCnxns": "0",
            # More than the machine can have: ZooKeeper warns if there is no limit.
            "maxCnxns": "1000000",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr,ruok,stat,cons,mntr",
            "autopurge.snapRetainCount": "3",
            "autopurge.purgeInterval": "1",
        }
        if self.servers:
            # 20 s to load the tree from the leader, 10 s without news of it.
            settings |= {"initLimit": str(20_000 // tick_ms), "syncLimit": str(10_000 // tick_ms)}
            settings |= {f"server.{number}": address for number, address in self.servers.items()}
        return settings


def find_java() -> str:
    """The java program of JAVA_HOME or of the path."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    java = shutil.which("java")
    if java is None:
        raise ZooKeeperUnavailable(
            "ZooKeeper needs Java 11 or later, but there is no java on the path: install it or set JAVA_HOME"
        )
    return java


def class_path(jars: Path | None = None) -> str:
    """The jars of `jars` (a directory, such as lib/ of a ZooKeeper release) or of the installed pyspark."""
    if jars is not None:
        if not list(jars.glob("zookeeper*.jar")):
            raise ZooKeeperUnavailable(f"there is no zookeeper*.jar in {jars}")
        return str(jars / "*")
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise ZooKeeperUnavailable(
            "ZooKeeper's jars come with pyspark, which is not installed: pip install pyspark, or name a "
            "directory with ZooKeeper's jars (--jars)"
        )
    directory = Path(package.origin).parent / "jars"
    paths = [path for pattern in _PYSPARK_JARS for path in sorted(directory.glob(pattern))]
    if not any(path.name.startswith("zookeeper-") for path in paths):
        raise ZooKeeperUnavailable(
            f"there are no ZooKeeper jars in {directory}: install another pyspark, or name a directory with "
            "ZooKeeper's jars (--jars)"
        )
    return os.pathsep.join(map(str, paths))


def server_command(settings: ServerSettings, jars: Path | None = None) -> list[str]:
    """Write the settings to the data directory, and return the command line that runs the server."""
    java, path = find_java(), class_path(jars)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    config = settings.data_dir.absolute() / CONFIG_NAME
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.properties().items()))
    if settings.server_id is not None:
        (settings.data_dir / ID_NAME).write_text(f"{settings.server_id}\n")
    options = list(_JAVA_OPTIONS)
    options.append(f"-Dorg.apache.logging.log4j.level={settings.log_level}")
    if not settings.sync_writes:
        options.append("-Dzookeeper.forceSync=no")
    main_class = _ENSEMBLE_SERVER if settings.servers else _SINGLE_SERVER
    return [java, *options, "-cp", path, main_class, str(config)]
