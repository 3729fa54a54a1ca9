"""The Java program in src/judge: runs one family of its scenarios and reads what it saw."""

import json
from typing import Any

from tests.java.jvm import compiled_sources, run_java

Scenarios = dict[str, dict[str, Any]]


def run_scenarios(bootstrap: str, family: str) -> Scenarios:
    """What the program saw, by scenario: each has a result or a failure."""
    compiled_sources()
    done = run_java("judge.Main", bootstrap, family, timeout=400)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["scenario"]: line for line in lines}


def result(scenarios: Scenarios, name: str) -> Any:
    outcome = scenarios[name]
    assert "failure" not in outcome, outcome["failure"]
    return outcome["result"]
