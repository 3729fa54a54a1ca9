"""The examples of docs/cluster.md and README.md run as they are there."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.clients.broker_process import PROGRAM

from barnabas.config.properties import load_properties
from barnabas.config.values import BrokerConfig
from barnabas.testing import Cluster

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cluster.md").read_text()
(COMMANDS,) = re.findall(r"<!-- run -->\n```sh\n(.*?)```", PAGE, re.DOTALL)
EXAMPLES = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))
(PROPERTIES,) = re.findall(r"<!-- properties -->\n```properties\n(.*?)```", PAGE, re.DOTALL)
LINES = [line for line in COMMANDS.splitlines() if line and not line.startswith("#")]


def test_every_command_runs(cluster: Cluster, tmp_path: Path) -> None:
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    printed = {}
    for line in LINES:
        done = subprocess.run(
            ["sh", "-c", line.replace("localhost:9092", cluster.bootstrap)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        printed[line] = done.stdout
    assert printed[LINES[0]].startswith("Cluster ")
    (consumed,) = [out for line, out in printed.items() if "console-consumer" in line]
    assert consumed == "one coffee\n"


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_test_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(EXAMPLES[name], name, "exec"), {})
    assert re.fullmatch(r"\d\n", capsys.readouterr().out)


def test_the_settings_of_the_example_are_known() -> None:
    config = BrokerConfig(load_properties(PROPERTIES))
    assert list(config.unknown_sentences()) == []
    assert config["zookeeper.connect"] == "zk1:2181,zk2:2181,zk3:2181/production"
