"""The parts of pipelines in docs/pipelines.md are valid."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from barnabas.spark.pipeline.loading import load

TEXT = (Path(__file__).parents[4] / "docs" / "pipelines.md").read_text()
PARTS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
SCHEMA = "id long, customer long, item string, country string"
REST: dict[str, Any] = {
    "name": "documented",
    "checkpoint": "./state",
    "sources": {
        name: {"topic": name, "decode": "json", "schema": SCHEMA} for name in ("orders", "customers")
    },
    "sinks": [{"from": "orders", "topic": "copies"}],
}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.split(":")[0])
def test_a_part_is_valid(part: str, tmp_path: Path) -> None:
    given = yaml.safe_load(part)
    sources = {**REST["sources"], **given.get("sources", {})}
    # A table and a source have different names.
    own = {name: source for name, source in sources.items() if name not in given.get("tables", {})}
    path = tmp_path / "pipeline.yaml"
    path.write_text(yaml.safe_dump({**REST, **given, "sources": own}))
    (tmp_path / "my_module.py").write_text("def publish(frame, batch):\n    return None\n")
    assert load(path).sinks


def test_there_are_parts() -> None:
    assert len(PARTS) >= 6
