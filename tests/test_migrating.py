"""The programs of docs/migrating.md run unchanged and print the same, and the names on that page exist."""

import re
from pathlib import Path

import pytest

import barnabas
from barnabas.testing import Broker

PAGE = (Path(__file__).parent.parent / "docs" / "migrating.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))


def test_the_page_has_one_program_for_each_library() -> None:
    assert list(EXAMPLES) == ["kafka_python", "confluent", "own"]


# kafka-python uses a call that is deprecated, and wants serializers to be objects.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", EXAMPLES)
def test_each_program_prints_the_same(
    name: str, barnabas_broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    program = EXAMPLES[name].replace("127.0.0.1:9092", barnabas_broker.bootstrap)
    program = program.replace("letters", f"letters-{name}").replace("castle", f"castle-{name}")
    exec(compile(program, name, "exec"), {"__name__": name})
    assert capsys.readouterr().out == "0\nb'K.' to Klamm\n"


def test_the_names_that_the_page_gives_as_ours_exist() -> None:
    rows = [line.split(" | ")[-1] for line in PAGE.partition("## Names")[2].splitlines() if "|" in line]
    used = {name for row in rows for name in re.findall(r"`(?:\w+\(\)\.)?([a-z_]+)\(", row)}
    kinds = [getattr(barnabas, kind) for kind in ("Producer", "Consumer", "Admin", "RecordFuture")]
    assert len(used) > 10
    assert [name for name in used if not any(hasattr(kind, name) for kind in kinds)] == []
