"""The wheel installs into an empty environment without a compiler; the README's first commands work there.

Without a compiler, building the wheel says what to install."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = {path.stem for path in (ROOT / "src/barnabas/kernels").glob("*.py")} - {"__init__"}

# Builds and installs: on a busy machine that takes minutes.
pytestmark = pytest.mark.timeout(1800)

Done = subprocess.CompletedProcess[str]


def run(*command: str | Path, environment: Mapping[str, str] | None = None, folder: Path = ROOT) -> Done:
    return subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel that `make wheel` builds. Kernels of an earlier installation are not built again."""
    done = run(ROOT / "scripts" / "wheel", sys.executable, "--no-build-isolation")
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / done.stdout.split()[0]


def test_the_wheel_has_every_kernel_compiled_and_every_tool(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    compiled = {Path(name).name.partition(".")[0] for name in names if name.endswith(".so")}
    assert compiled == KERNELS | {"views"}
    assert "barnabas/py.typed" in names
    scripts = {Path(name).name for name in names if ".data/scripts/" in name}
    assert scripts == {path.name for path in (ROOT / "bin").iterdir()}
    assert not [name for name in names if name.startswith(("tests/", "tools/"))]


def test_the_first_commands_of_the_readme_work_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment)
    python = environment / "bin" / "python"
    # No compiler can be found, and nothing that is needed may need one.
    no_compiler = {**os.environ, "PATH": str(environment / "bin")}
    no_compiler.pop("PYTHONPATH", None)
    install = ("-m", "pip", "--python", python, "install", "--quiet", "--only-binary", ":all:", wheel)
    installed = run(sys.executable, *install, environment=no_compiler)
    assert installed.returncode == 0, installed.stderr
    walked = run(python, ROOT / "tests" / "packaging" / "first_commands.py", environment=no_compiler)
    assert walked.returncode == 0, walked.stdout + walked.stderr


@pytest.fixture
def checkout(wheel: Path, tmp_path: Path) -> Path:
    """A copy of what a build needs, with the kernels of an earlier build. All files have new times, as after
    a `git clone`, or as those of the Cython that pip installs for each build."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, folder / name)
    shutil.copytree(ROOT / "bin", folder / "bin")
    shutil.copytree(ROOT / "build" / "kernels", folder / "build" / "kernels")
    unneeded = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=unneeded)
    for path in folder.rglob("*.p*"):
        path.touch()
    return folder


def test_kernels_that_did_not_change_are_not_built_again(checkout: Path, tmp_path: Path) -> None:
    """The compiler of this test notes what it gets, and fails."""
    compiler = tmp_path / "bin" / Path(shlex.split(sysconfig.get_config_var("CC"))[0]).name
    compiler.parent.mkdir()
    compiled = tmp_path / "compiled"
    compiled.touch()
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {compiled}\nexit 1\n')
    compiler.chmod(0o755)
    environment = {**os.environ, "PATH": f"{compiler.parent}:{os.environ['PATH']}"}
    build = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir")
    done = run(*build, tmp_path, ".", environment=environment, folder=checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert compiled.read_text() == ""
    with (checkout / "src/barnabas/kernels/hashing.py").open("a") as source:
        source.write("# changed\n")
    assert run(*build, tmp_path, ".", environment=environment, folder=checkout).returncode != 0
    assert re.findall(r"(\w+)\.c\b", compiled.read_text()) == ["hashing"]


def test_without_a_compiler_building_says_what_to_install(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir")
    without = {**os.environ, "PATH": str(tmp_path)}
    without.pop("CC", None)
    done = run(*command, tmp_path, ROOT, environment=without)
    assert done.returncode != 0
    sentence = "gcc is missing, which builds the kernels of Barnabas: install it (apt install gcc,"
    assert sentence in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
