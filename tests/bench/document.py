"""`python -m tests.bench.document FILE...`: put the figures of runs into docs/performance.md.

Every group of rows in a file replaces what is between `<!-- begin GROUP -->` and `<!-- end GROUP -->`; the
pictures beside the file are copied to docs/pictures/. Parts of the page without a file are not changed."""

import argparse
import shutil
from pathlib import Path

from tests.bench.lines import Lines, failures, tables
from tests.bench.results import Run, load_run

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = DOCS / "performance.md"
PICTURES = ("ratios", "latencies", "growth")
CAPTIONS = {
    "ratios": "Times better, with the goals",
    "latencies": "Curves of the latencies",
    "growth": "Growth",
}


def section(run: Run, table: Lines, pictures: list[str]) -> str:
    """A group's part of the page."""
    parts = [_provenance(run), _markdown(table)]
    if missed := failures([row for row in run.rows if row.group == table.group]):
        parts.append("What we lose:\n\n" + "\n".join(f"- {phrase}" for phrase in missed))
    elif any(line.met for line in table.lines):
        parts.append("Every goal that was compared is met.")
    parts += [f"![{CAPTIONS[name.rpartition('-')[2]]}](pictures/{name}.svg)" for name in pictures]
    return "\n\n".join(parts)


def _provenance(run: Run) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in run.machine.items())
    versions = ", ".join(f"{name} {value}" for name, value in run.versions.items())
    return f"Run of {run.date}. Machine: {machine}.\n\nVersions: {versions}."


def _markdown(table: Lines) -> str:
    rows = [table.columns, ["---"] * len(table.columns), *(line.cells for line in table.lines)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |" for cells in rows)


def place(page: str, group: str, content: str) -> str:
    """The page with the group's part replaced."""
    begin, end = f"<!-- begin {group} -->", f"<!-- end {group} -->"
    before, opened, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not opened or not closed:
        raise ValueError(
            f"docs/performance.md has no place for {group}: write {begin} and {end} where it goes"
        )
    return f"{before}{begin}\n{content}\n{end}{after}"


def _copied_pictures(file: Path, group: str) -> list[str]:
    """Pictures of a file go with the group they show."""
    names = []
    for name in PICTURES:
        picture = file.with_name(f"{file.stem}-{name}.svg")
        if picture.exists() and (name == "growth") == (group == "growth"):
            (DOCS / "pictures").mkdir(exist_ok=True)
            shutil.copyfile(picture, DOCS / "pictures" / f"{group}-{name}.svg")
            names.append(f"{group}-{name}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.document", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a JSON file of build/bench")
    page = PAGE.read_text()
    for file in parser.parse_args().files:
        run = load_run(file)
        for number, table in enumerate(tables(run)):
            # All groups of a run share its pictures, which are shown with the first group.
            pictures = _copied_pictures(file, table.group) if number == 0 else []
            page = place(page, table.group, section(run, table, pictures))
    PAGE.write_text(page)
    print(f"{PAGE.name} shows {len(page.splitlines())} lines now")


if __name__ == "__main__":
    main()
