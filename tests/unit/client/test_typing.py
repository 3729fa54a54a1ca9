"""Type checkers know the public names, the settings of the clients, and the types of results."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROGRAM = Path(__file__).parent / "typed_program.py"
MESSAGE = re.compile(r"\S+:(\d+): (?:note: Revealed type is \"(.*)\"|(error: .*?)(?:  \[[\w-]+\])?)")


def expected() -> dict[int, str]:
    """By line: the comment that says what mypy must find."""
    lines = enumerate(PROGRAM.read_text().splitlines(), start=1)
    return {number: line.rpartition("  # ")[2] for number, line in lines if "  # " in line}


def found() -> dict[int, list[str]]:
    """By line: what mypy finds, without the modules before the names of types."""
    tool = Path(sys.executable).parent / "mypy"
    done = subprocess.run([tool, PROGRAM], cwd=ROOT, capture_output=True, text=True)
    by_line: dict[int, list[str]] = defaultdict(list)
    for line in done.stdout.splitlines():
        if match := MESSAGE.fullmatch(line):
            number, revealed, error = match.groups()
            by_line[int(number)].append(error or re.sub(r"\b(?:[a-z_]\w*\.)+", "", revealed))
    assert by_line, done.stdout + done.stderr
    return by_line


def test_mypy_finds_what_the_program_says() -> None:
    checked = found()
    for number, text in expected().items():
        messages = checked.pop(number, [])
        assert any(message.startswith(text) for message in messages), f"line {number}: {text}: {messages}"
    assert checked == {}, "mypy finds more in a program that should be right"
