"""Checks of CONTRIBUTING.md's rules: sizes, loose ends, tests of kernels, plain English, true documents."""

import ast
import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "barnabas"
SOURCES = sorted(
    path
    for folder in ("src", "tests", "tools")
    for path in (ROOT / folder).rglob("*.py")
    if ".venv" not in path.parts
)
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
MODULE_LINES_MAX, MODULE_LINES_AIM, MODULE_SHARE_MIN = 500, 400, 0.95
FUNCTION_LINES_MAX, FUNCTION_LINES_AIM, FUNCTION_SHARE_MIN = 70, 40, 0.99
LOOSE_END = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|raise NotImplementedError")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def function_sizes(path: Path) -> list[tuple[str, int]]:
    return [
        (node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_modules_and_functions_keep_the_limits(path: Path) -> None:
    assert path.read_text().count("\n") <= MODULE_LINES_MAX
    for name, lines in function_sizes(path):
        assert lines <= FUNCTION_LINES_MAX, f"{name} has {lines} lines"


def test_most_modules_and_functions_keep_the_aims() -> None:
    modules = [path.read_text().count("\n") for path in SOURCES]
    functions = [lines for path in SOURCES for _, lines in function_sizes(path)]
    assert sum(lines <= MODULE_LINES_AIM for lines in modules) >= MODULE_SHARE_MIN * len(modules)
    assert sum(lines <= FUNCTION_LINES_AIM for lines in functions) >= FUNCTION_SHARE_MIN * len(functions)


def test_the_limits_in_contributing_are_the_limits_that_are_checked() -> None:
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    for sentence in (
        f"at most {MODULE_LINES_MAX} lines; the aim is {MODULE_LINES_AIM}, and {MODULE_SHARE_MIN:.0%}",
        f"at most {FUNCTION_LINES_MAX} lines; the aim is {FUNCTION_LINES_AIM}, and {FUNCTION_SHARE_MIN:.0%}",
        f"complexity at most {ruff['lint']['mccabe']['max-complexity']}",
        f"at most {ruff['lint']['pylint']['max-args']}; no limit in kernels",
        f"at most {ruff['line-length']} characters",
    ):
        assert sentence.replace("%", " %") in CONTRIBUTING, f"CONTRIBUTING.md does not say: {sentence}"
    assert ruff["lint"]["per-file-ignores"] == {"src/barnabas/kernels/*": ["PLR0913"]}


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
def test_every_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "no module docstring"


# ---- kernels


KERNELS = sorted(path.stem for path in (PACKAGE / "kernels").glob("*.py") if path.stem != "__init__")


def kernels_with_both_forms(path: Path) -> set[str]:
    """The kernels that a test module loads with `interpreted(kernel)`, in addition to the compiled form."""
    tree = ast.parse(path.read_text())
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {each.asname or each.name: each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) == 1]
    arguments = [ast.unparse(call.args[0]) for call in calls if ast.unparse(call.func) == "interpreted"]
    named = [modules.get(argument, argument) for argument in arguments]
    return {name.rpartition(".")[2] for name in named if name.startswith("barnabas.kernels.")}


def test_every_kernel_is_tested_in_both_forms() -> None:
    tests = (ROOT / "tests" / "unit" / "kernels").glob("test_*.py")
    tested = set().union(*map(kernels_with_both_forms, tests))
    assert sorted(set(KERNELS) - tested) == []


# ---- plain English

NOT_PLAIN = re.compile(
    r"\btold_|_noteworthy|\bpart_with\b|_farewell|_tellers|\bBell\b|\bNAP_SECONDS\b|\bstrangers\b"
    r"|\b(Want|Asked)\b|# Of |\bwas to come\b|\bcould be had\b|\b(is|are|was|were) had\b"
    r"|cannot be asked of|in nobody's mind|reading were paused"
    r"|\b[Ww]hoever\b|\b[Ll]est\b|(?<![a-z])anew(?![a-z])|\bif need be\b"
    # Sentences without a subject, and verbs that have returned several times.
    r"|^ *\"\"\"Of |\bin vain\b|passed.over|\blawful|_s_(?=[a-z])|_told\b|_is_told|\b(is|are) heard of\b"
    r"|\bstands? (at|there|in|between)\b|\b(says|said) of\b|\b(wanted|wanting)\("
    # References to a list of tests that is not in this repository.
    r"|\bT\d\d: |\(T\d\d[,)]"
)


@pytest.mark.parametrize("name", ["src", "tests", "tools", "examples", "docs", "bin"])
def test_words_that_are_not_plain_english_are_not_used(name: str) -> None:
    paths = [
        path for path in (ROOT / name).rglob("*") if path.suffix in (".py", ".pyi", ".md", ".sh", ".yaml")
    ]
    pages = [*paths, *(ROOT.glob("*.md") if name == "docs" else ())]
    lines = [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in pages
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if NOT_PLAIN.search(line)
    ]
    assert lines == []


# ---- documents


def files_named_in(text: str) -> set[str]:
    """The paths in backquotes, with {a,b} expanded; those with placeholders such as <api> are left out."""
    paths = set()
    for quoted in re.findall(r"`([\w./*{},<>-]+)`", text):
        if "<" in quoted or not re.search(r"/$|\.(py|md|json|toml)$", quoted):
            continue
        choices = [part.split(",") for part in re.findall(r"\{([^}]*)\}", quoted)]
        pattern = re.sub(r"\{[^}]*\}", "{}", quoted)
        paths |= {pattern.format(*chosen) for chosen in itertools.product(*choices)}
    return paths


def exists(path: str) -> bool:
    if "*" in path:
        return any(any(base.glob(path)) for base in (ROOT, PACKAGE))
    return (ROOT / path).exists() or (PACKAGE / path).exists()


ABOUT_THE_CODE = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    *map(name_of, (ROOT / "docs" / "how-it-works").glob("*.md")),
]


@pytest.mark.parametrize("name", ABOUT_THE_CODE)
def test_files_named_in_the_documents_exist(name: str) -> None:
    missing = [path for path in files_named_in((ROOT / name).read_text()) if not exists(path)]
    assert missing == []


def test_ten_questions_are_answered_by_at_most_three_files() -> None:
    section = CONTRIBUTING.partition("## Where does it happen?")[2].partition("\n## ")[0]
    answers = [row.split("|")[2] for row in section.splitlines() if row.startswith("|") and "?" in row]
    assert len(answers) == 10
    for answer in answers:
        assert 1 <= len(files_named_in(answer)) <= 3, answer


def test_links_in_the_documents_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",), ("lint-imports",)],
    ids=" ".join,
)
def test_linters_find_nothing(command: tuple[str, ...]) -> None:
    tool = Path(sys.executable).parent / command[0]
    done = subprocess.run([tool, *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
