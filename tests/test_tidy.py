"""Style rules that a machine can keep: sizes of modules and functions, no loose ends, docs that exist."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(
    path
    for folder in ("src", "tests", "tools")
    for path in (ROOT / folder).rglob("*.py")
    if ".venv" not in path.parts
)
MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
LOOSE_END = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|raise NotImplementedError")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_modules_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= MODULE_LINES_MAX
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= FUNCTION_LINES_MAX, f"{node.name} has {lines} lines"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_loose_ends_and_no_swallowed_exceptions(path: Path) -> None:
    text = path.read_text()
    if path.name != "test_tidy.py":
        assert not LOOSE_END.search(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler):
            assert not isinstance(node.body[0], ast.Pass), f"line {node.lineno} swallows an exception"


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if path.stat().st_size and path.is_relative_to(ROOT / "src")],
    ids=name_of,
)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "no module docstring"


def test_links_in_the_documents_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",), ("lint-imports",)],
    ids=" ".join,
)
def test_linters_are_content(command: tuple[str, ...]) -> None:
    tool = Path(sys.executable).parent / command[0]
    done = subprocess.run([tool, *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
