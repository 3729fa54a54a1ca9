"""Tables of groups: columns that are at least as wide as Kafka's, `-` where there is nothing."""

from collections.abc import Sequence

MISSING = "-"


def print_table(lines: Sequence[Sequence[str]], minima: Sequence[int]) -> None:
    """A column is as wide as its widest cell, and at least as its minimum; one below 0 is a fixed width, 0 no
    padding at all."""
    widths = [
        max(minimum, *(len(line[index]) for line in lines)) if minimum > 0 else -minimum
        for index, minimum in enumerate(minima)
    ]
    for line in lines:
        print(" ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))


def cell(value: object) -> str:
    return MISSING if value is None else str(value)
