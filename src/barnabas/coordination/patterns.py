"""Regular expressions of clients, on names of topics and ids of transactions.

Matched in time that grows with the name, never with its power.

Clients send RE2 expressions, which a backtracking matcher such as Python's could spend hours on. Here all
ways through an expression are followed at once. An expression must match the whole name, as in Kafka."""

from typing import NamedTuple, TypeAlias

from barnabas.coordination.pattern_parser import WORD, Chars, Choice, Edge, Node, Repeat, Sequence, parse
from barnabas.errors import ErrorCode, KafkaError

# How large an expression may become when its repetitions are written out.
PROGRAM_MAX = 5000


class _Fork(NamedTuple):
    """Go on at both places."""

    one: int
    other: int


class _Jump(NamedTuple):
    to: int


# A program is a list of these; the place after the last one is where a match ends.
_Instruction: TypeAlias = Chars | Edge | _Fork | _Jump


class Pattern:
    def __init__(self, expression: str) -> None:
        """Raises INVALID_REGULAR_EXPRESSION."""
        self._program: list[_Instruction] = []
        self._expression = expression
        self._write(parse(expression))

    def matches(self, name: str) -> bool:
        places = self._reach({0}, name, 0)
        for position, char in enumerate(name, start=1):
            moved = {place + 1 for place in places if self._takes(place, char)}
            if not moved:
                return False
            places = self._reach(moved, name, position)
        return len(self._program) in places

    def _takes(self, place: int, char: str) -> bool:
        if place == len(self._program):
            return False
        instruction = self._program[place]
        return isinstance(instruction, Chars) and char in instruction.chars

    def _reach(self, places: set[int], name: str, position: int) -> set[int]:
        """All places that can be reached from these without taking a character."""
        reached = set(places)
        todo = list(places)
        while todo:
            for place in self._ways(todo.pop(), name, position):
                if place not in reached:
                    reached.add(place)
                    todo.append(place)
        return reached

    def _ways(self, place: int, name: str, position: int) -> tuple[int, ...]:
        if place == len(self._program):
            return ()
        instruction = self._program[place]
        if isinstance(instruction, _Fork):
            return (instruction.one, instruction.other)
        if isinstance(instruction, _Jump):
            return (instruction.to,)
        if isinstance(instruction, Edge) and _holds(instruction.kind, name, position):
            return (place + 1,)
        return ()

    # ---- writing the program

    def _write(self, node: Node) -> None:
        if isinstance(node, Chars | Edge):
            self._add(node)
        elif isinstance(node, Sequence):
            for part in node.parts:
                self._write(part)
        elif isinstance(node, Choice):
            self._write_choice(node)
        else:
            self._write_repeat(node)

    def _write_choice(self, node: Choice) -> None:
        exits = []
        for branch in node.branches[:-1]:
            fork = self._add(_Jump(0))
            self._write(branch)
            exits.append(self._add(_Jump(0)))
            self._program[fork] = _Fork(fork + 1, len(self._program))
        self._write(node.branches[-1])
        for place in exits:
            self._program[place] = _Jump(len(self._program))

    def _write_repeat(self, node: Repeat) -> None:
        start = len(self._program)
        for _ in range(node.least):
            self._write(node.node)
            if len(self._program) == start:
                # Nothing, however often: do not spend time on saying it.
                break
        if node.most is None:
            fork = self._add(_Jump(0))
            self._write(node.node)
            self._add(_Jump(fork))
            self._program[fork] = _Fork(fork + 1, len(self._program))
            return
        forks = []
        for _ in range(node.most - node.least):
            forks.append(self._add(_Jump(0)))
            self._write(node.node)
        for fork in forks:
            self._program[fork] = _Fork(fork + 1, len(self._program))

    def _add(self, instruction: _Instruction) -> int:
        if len(self._program) >= PROGRAM_MAX:
            why = f"the regular expression {self._expression[:200]!r} is too large when written out"
            raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, why)
        self._program.append(instruction)
        return len(self._program) - 1


def _holds(kind: str, name: str, position: int) -> bool:
    if kind == "^":
        return position == 0
    if kind == "$":
        return position == len(name)
    before = position > 0 and name[position - 1] in WORD
    after = position < len(name) and name[position] in WORD
    return (before != after) == (kind == "b")
