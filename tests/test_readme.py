"""The examples of the README run unchanged."""

import re
from pathlib import Path

import pytest

from barnabas.testing import Broker

README = (Path(__file__).parent.parent / "README.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", README, re.DOTALL))


def test_the_readme_has_its_examples() -> None:
    assert set(EXAMPLES) == {"confluent", "own", "testing"}


def test_the_confluent_example_prints_the_record(
    barnabas_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(EXAMPLES["confluent"].replace("127.0.0.1:9092", barnabas_broker.bootstrap), {})
    assert capsys.readouterr().out == "0 b'42' b'one coffee' [('table', b'7')]\n"


def test_the_example_of_our_own_client_prints_the_record(
    barnabas_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(EXAMPLES["own"].replace("127.0.0.1:9092", barnabas_broker.bootstrap), {})
    assert capsys.readouterr().out == "0\n0 b'42' b'3.50'\n"


def test_the_testing_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(EXAMPLES["testing"], {})
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", capsys.readouterr().out)
