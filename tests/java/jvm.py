"""Apache Kafka's classes from Maven: their class path, and how to run one of them.

Writes to target/ next to this file and to Maven's own cache; starts mvn, javac and java."""

import functools
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
TARGET = HERE / "target"
SOURCES = HERE / "src"
# Clients that every release since 2.8 can run.
CLIENTS = HERE / "clients"
NEEDS = "need Java 17 or newer (java, javac) and Maven (mvn) with access to Maven Central"
# For short-lived tools: with one compiler tier and the serial collector they start twice as fast.
TOOL_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Xmx256m",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)


class JavaMissing(Exception):
    """Java, Maven or the jars are missing; the text says what is needed."""


def missing_programs() -> list[str]:
    return [name for name in ("java", "javac", "mvn") if shutil.which(name) is None]


@functools.cache
def class_path() -> str:
    """The jars of the Kafka that our broker is compared with."""
    return _class_path(POM, TARGET / "classpath.txt")


@functools.cache
def client_class_path(version: str) -> str:
    """The jars of one release of kafka-clients, and nothing else of Kafka."""
    return _class_path(
        CLIENTS / "pom.xml", TARGET / f"classpath-clients-{version}.txt", f"-Dclient.version={version}"
    )


def _class_path(pom: Path, answer: Path, *properties: str) -> str:
    """The jars as Maven resolves them; asks Maven only when the pom is newer than the last answer."""
    missing = missing_programs()
    if missing:
        raise JavaMissing(f"{', '.join(missing)} not found: the Java tests {NEEDS}")
    if not answer.exists() or answer.stat().st_mtime < pom.stat().st_mtime:
        _resolve(pom, answer, properties)
    return answer.read_text().strip()


def _resolve(pom: Path, answer: Path, properties: Sequence[str]) -> None:
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:build-classpath", f"-Dmdep.outputFile={answer}"]
    offline = subprocess.run([*command, *properties, "-o"], capture_output=True, text=True)
    if offline.returncode == 0:
        return
    online = subprocess.run([*command, *properties], capture_output=True, text=True)
    if online.returncode != 0:
        raise JavaMissing(
            f"mvn could not resolve Kafka's jars; the Java tests {NEEDS}:\n{online.stdout[-2000:]}"
        )


@functools.cache
def compiled_sources() -> Path:
    """Compile our Java sources against Kafka's jars; the directory of the classes."""
    return _compiled(SOURCES, TARGET / "classes", class_path())


@functools.cache
def compiled_clients(oldest_version: str) -> Path:
    """Compile the clients against the oldest release that runs them; the directory of the classes."""
    return _compiled(CLIENTS / "src", TARGET / "classes-clients", client_class_path(oldest_version))


def _compiled(sources: Path, classes: Path, jars: str) -> Path:
    command = ["javac", "-Xlint:all,-processing,-classfile", "-Werror", "-proc:none", "-d", str(classes)]
    files = [str(path) for path in sources.rglob("*.java")]
    done = subprocess.run([*command, "-cp", jars, *files], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"javac failed:\n{done.stdout}{done.stderr}")
    return classes


def java_command(
    main_class: str, arguments: Sequence[str], options: Sequence[str] = TOOL_OPTIONS
) -> list[str]:
    path = f"{TARGET / 'classes'}:{class_path()}"
    return ["java", *options, "-cp", path, main_class, *arguments]


def run_client(version: str, classes: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program of `clients/` with one release of kafka-clients, in a JVM of its own."""
    path = f"{classes}:{client_class_path(version)}"
    command = ["java", *TOOL_OPTIONS, "-cp", path, "clients.Main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def run_java(
    main_class: str, *arguments: str, stdin: str | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run one class to its end and return what it printed; the caller checks the exit status."""
    command = java_command(main_class, arguments)
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout)


if __name__ == "__main__":
    try:
        class_path()
    except JavaMissing as reason:
        sys.exit(str(reason))
    print(f"Kafka's class path is in {TARGET / 'classpath.txt'}")
