"""The problems of a pipeline's file: all at once, each with its line and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple


class Problem(NamedTuple):
    """A mistake at a line of the pipeline's file, or of another file that it names."""

    sentence: str
    line: int | None = None
    file: str | None = None


class PipelineError(Exception):
    """One line per problem: file:line: sentence."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.file = file
        self.problems = sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0))
        super().__init__("\n".join(map(self._line, self.problems)))

    def _line(self, problem: Problem) -> str:
        file = problem.file or self.file
        place = file if problem.line is None else f"{file}:{problem.line}"
        return f"{place}: {problem.sentence}"


def meant(name: str, known: Iterable[str]) -> str:
    """A hint: the most similar name, or all names."""
    choices = list(known)
    near = get_close_matches(name, choices, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    return f"it must be one of {', '.join(choices)}." if choices else "there is none."
