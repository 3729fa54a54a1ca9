"""Spark's own Kafka connector from Maven: the four jars that pom.xml names.

Touches target/ beside this file and Maven's own cache; starts mvn."""

import functools
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
ANSWER = HERE / "target" / "classpath.txt"
NEEDS = "need Java 17 or newer (java) and Maven (mvn) with access to Maven Central"


class JarsMissing(Exception):
    """Java, Maven or the jars are not there; the text says what is needed."""


@functools.cache
def connector_jars() -> list[str]:
    """Asks Maven only when pom.xml is newer than its last answer."""
    missing = [name for name in ("java", "mvn") if shutil.which(name) is None]
    if missing:
        raise JarsMissing(f"{', '.join(missing)} not found: the tests of Spark's Kafka connector {NEEDS}")
    if not ANSWER.exists() or ANSWER.stat().st_mtime < POM.stat().st_mtime:
        _resolve()
    return ANSWER.read_text().strip().split(":")


def _resolve() -> None:
    goal = ["dependency:build-classpath", f"-Dmdep.outputFile={ANSWER}"]
    command = ["mvn", "-q", "-B", "-f", str(POM), *goal]
    if subprocess.run([*command, "-o"], capture_output=True, text=True).returncode == 0:
        return
    online = subprocess.run(command, capture_output=True, text=True)
    if online.returncode != 0:
        raise JarsMissing(
            f"mvn could not resolve the jars; the tests of Spark's Kafka connector {NEEDS}:\n"
            f"{online.stdout[-2000:]}"
        )
