"""The command line as a whole: help, errors, Kafka's names, completion."""

import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.clients.broker_process import PROGRAM

from barnabas.cli.main import COMMANDS

BIN = Path(__file__).parents[2] / "bin"


def test_overview_names_every_command(run: Run) -> None:
    ran = run("--help")
    assert ran.code == 0
    for name, row in COMMANDS.items():
        assert f"  {name} " in ran.out
        assert row.help in ran.out


def test_without_a_command_the_overview_is_shown_and_it_is_an_error(run: Run) -> None:
    assert run().code == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_examples(run: Run, name: str) -> None:
    ran = run(name, "--help")
    assert ran.code == 0
    assert f"barnabas {name}" in ran.out.partition("examples:")[2]


def test_the_error_for_a_wrong_command_suggests_one(run: Run) -> None:
    ran = run("strat")
    assert ran.code == 1
    assert "Did you mean start?" in ran.err


def test_the_error_for_a_wrong_option_is_one_sentence(run: Run) -> None:
    ran = run("start", "--wrong")
    assert (ran.code, ran.err) == (1, "Unrecognized arguments: --wrong. See `barnabas start --help`.\n")


def test_without_a_broker_the_error_is_one_sentence(run: Run) -> None:
    ran = run("start", "nowhere.properties")
    assert ran.code == 1
    assert ran.err.startswith("Error: ") and "nowhere.properties" in ran.err and ran.err.count("\n") == 1


@pytest.mark.parametrize("name, script", [(name, row.script) for name, row in COMMANDS.items() if row.script])
def test_the_name_of_kafkas_script_calls_the_command(name: str, script: str) -> None:
    path = BIN / f"{script}.sh"
    assert path.stat().st_mode & stat.S_IXUSR
    done = subprocess.run([path, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: barnabas {name} ")


def test_every_script_calls_an_existing_command() -> None:
    named = {row.script for row in COMMANDS.values()}
    assert {path.stem for path in BIN.glob("*.sh")} == named - {None}


def test_completion_of_bash_completes() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    script = (
        "source <(barnabas completion bash); COMP_WORDS=(barnabas sta); COMP_CWORD=1; _barnabas; "
        'echo "${COMPREPLY[@]}"; COMP_WORDS=(barnabas start --data); COMP_CWORD=2; _barnabas; '
        'echo "${COMPREPLY[@]}"'
    )
    path = f"{PROGRAM.parent}:/usr/bin:/bin"
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True, env={"PATH": path})
    assert done.stdout.splitlines() == ["start", "--data-dir"], done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_of_other_shells_names_every_command(run: Run, shell: str) -> None:
    ran = run("completion", shell)
    assert ran.code == 0
    assert all(name in ran.out for name in COMMANDS)
