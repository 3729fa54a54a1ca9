"""`barnabas pipeline` where no Spark is needed: mistakes with their lines, a status of what has not run."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run

EXAMPLE = Path(__file__).parents[2] / "examples" / "orders" / "pipeline.yaml"
SMALL = """\
name: small-{name}
bootstrap: {bootstrap}
checkpoint: ./state
sources:
  orders: {{topic: orders}}
sinks:
  - {{from: orders, topic: copies}}
"""


@pytest.fixture
def file(tmp_path: Path, bootstrap: str, topic_name: str) -> Path:
    path = tmp_path / "pipeline.yaml"
    path.write_text(SMALL.format(name=topic_name, bootstrap=bootstrap))
    return path


def test_the_example_is_in_order(run: Run) -> None:
    ran = run("pipeline", "validate", str(EXAMPLE))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"{EXAMPLE} is in order: 1 sources, 3 steps, 3 sinks.\n"


def test_mistakes_are_told_with_their_lines(run: Run, file: Path) -> None:
    file.write_text(
        file.read_text().replace("from: orders", "from: oders").replace("topic: orders", "topc: orders")
    )
    ran = run("pipeline", "validate", str(file))
    assert ran.code == 1
    assert ran.err.splitlines() == [
        f"{file}:5: source orders has no field 'topc'; did you mean topic?",
        f"{file}:5: Source orders needs either topics or a pattern.",
        f"{file}:7: A sink takes 'oders', which is no source or step; did you mean orders?",
        f"Error: {file} has 3 mistakes; nothing was started.",
    ]


def test_a_file_that_is_not_there(run: Run, tmp_path: Path) -> None:
    ran = run("pipeline", "run", str(tmp_path / "none.yaml"))
    assert (ran.code, ran.err) == (1, f"Error: {tmp_path / 'none.yaml'}: there is no such file.\n")


def test_the_status_of_what_has_not_run(run: Run, file: Path) -> None:
    ran = run("pipeline", "status", str(file))
    assert ran.code == 0
    header, line = ran.lines
    assert header.split() == ["QUERY", "GROUP", "TOPIC", "LAG", "BATCHES", "LAST-BATCH"]
    assert line.split()[0] == "orders-to-copies"
    assert line.split()[2:] == ["-", "-", "0", "-"]


def test_the_status_as_json(run: Run, file: Path) -> None:
    assert '"query": "orders-to-copies"' in run("pipeline", "status", str(file), "--json").out


def test_nothing_to_replay(run: Run, file: Path) -> None:
    ran = run("pipeline", "replay-dlq", str(file))
    assert ran.code == 1
    assert "has no dead_letters" in ran.err
