"""The machine and the versions that a run's figures belong to."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from xml.etree import ElementTree

from tests.java.jvm import POM

PACKAGES = ("barnabas", "confluent-kafka", "kafka-python", "aiokafka", "pyarrow", "pyspark")
NAMESPACE = "{http://maven.apache.org/POM/4.0.0}"


def machine() -> dict[str, str]:
    """What influences the figures; nothing that identifies the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory / 2**30:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "load before": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def versions(*, with_kafka: bool = False) -> dict[str, str]:
    names = {"python": platform.python_version()}
    names |= {name: importlib.metadata.version(name) for name in PACKAGES}
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    if commit.returncode == 0:
        names["commit"] = commit.stdout.strip()
    if with_kafka:
        version = ElementTree.parse(POM).find(f".//{NAMESPACE}kafka.version")
        java = subprocess.run(["java", "-version"], capture_output=True, text=True)
        names["kafka"] = (version.text or "") if version is not None else ""
        names["java"] = java.stderr.splitlines()[0]
    return names
