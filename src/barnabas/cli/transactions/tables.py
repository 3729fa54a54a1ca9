"""Tables as kafka-transactions prints them: padded columns with a tab behind each, so that `cut -f` works."""

from collections.abc import Sequence


def print_tabbed(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    lines = [list(headers), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(headers))]
    for line in lines:
        print("".join(f"{cell:{width}}\t" for cell, width in zip(line, widths, strict=True)))
