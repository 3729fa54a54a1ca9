"""The whole benchmark with little work: every kind of load runs on a real broker; results are saved."""

import os
import subprocess
import sys
from pathlib import Path

from tests.bench.results import load_run

ROOT = Path(__file__).parent.parent.parent.parent
ROWS = [
    "start",
    "p8x16k",
    "fetch",
    "ack",
    "e2e",
    "fetch-disk",
    "connections",
    "lookup",
    "sessions",
    "recovery",
    "tls-p16k",
    "tls-fetch",
    "tls-ack",
    "tls-handshakes",
]


def test_a_tiny_run_measures_and_writes_its_file(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.bench",
        "--tiny",
        "--rows",
        ",".join(ROWS),
        "--out",
        str(tmp_path),
    ]
    environment = {**os.environ, "COLUMNS": "120"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("*.json")
    loaded = load_run(file)
    assert [row.name for row in loaded.rows] == ROWS
    assert [result.failure for row in loaded.rows for result in row.results] == [""] * len(ROWS)
    by_name = {row.name: row.summaries["barnabas"] for row in loaded.rows}
    assert by_name["p8x16k"]["megabytes_per_second"].middle > 0
    assert 0 < by_name["e2e"]["p50_us"].middle <= by_name["e2e"]["p99_us"].middle
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".svg"}


def test_the_error_for_an_unknown_row_lists_the_rows() -> None:
    command = [sys.executable, "-m", "tests.bench", "--rows", "p17k"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "there is no row p17k; rows start, memory, p16k" in done.stderr
