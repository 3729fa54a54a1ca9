"""Reads RE2 expressions that are to match topic names. No I/O.

Topic names have letters, digits, '.', '_' and '-' only, so that a character class is a small set. What RE2
refuses (look-around, back references, possessive repetition) is refused here, too. Not done: Unicode classes
such as \\p{L}, and octal escapes."""

import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from barnabas.errors import ErrorCode, KafkaError

WORD = frozenset(string.ascii_letters + string.digits + "_")
ALPHABET = WORD | frozenset(".-")
# RE2's own limit.
REPEAT_MAX = 1000
# A group within a group takes six calls; Python allows a thousand, and the caller has some already.
_DEPTH_MAX = 50

_CLASSES = {"d": frozenset(string.digits), "w": WORD, "s": frozenset(string.whitespace)}
_POSIX = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "ascii": ALPHABET,
    "blank": frozenset(" \t"),
    "cntrl": frozenset[str](),
    "digit": frozenset(string.digits),
    "graph": ALPHABET,
    "lower": frozenset(string.ascii_lowercase),
    "print": ALPHABET,
    "punct": frozenset(string.punctuation),
    "space": frozenset(string.whitespace),
    "upper": frozenset(string.ascii_uppercase),
    "word": WORD,
    "xdigit": frozenset(string.hexdigits),
}
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    chars: frozenset[str]


@dataclass(frozen=True, slots=True)
class Edge:
    """Holds between characters: '^' at the start, '$' at the end, 'b' and 'B' at a word's edge or not."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    branches: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    node: "Node"
    least: int
    most: int | None


Node: TypeAlias = Chars | Edge | Sequence | Choice | Repeat


def parse(expression: str) -> Node:
    """The expression's tree; INVALID_REGULAR_EXPRESSION when RE2 would not read it."""
    parser = _Parser(expression)
    node = parser.choice(depth=0)
    if not parser.at_end:
        raise parser.wrong("there is a ')' too many")
    return node


class _Parser:
    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._position = 0
        self._ignores_case = False

    @property
    def at_end(self) -> bool:
        return self._position >= len(self._expression)

    def wrong(self, why: str) -> KafkaError:
        where = f"{self._expression!r} is not a regular expression: {why} at {self._position}"
        return KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, where)

    # ---- structure

    def choice(self, depth: int) -> Node:
        if depth > _DEPTH_MAX:
            raise self.wrong("it is nested too deeply")
        branches = [self._sequence(depth)]
        while self._take("|"):
            branches.append(self._sequence(depth))
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while not self.at_end and self._expression[self._position] not in "|)":
            parts.append(self._repeated(depth))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, depth: int) -> Node:
        if self._expression[self._position] in "*+?":
            raise self.wrong("there is nothing to repeat")
        node = self._single(depth)
        bounds = self._bounds()
        if bounds is None:
            return node
        # Being lazy changes what a group captures, not what matches.
        self._take("?")
        repeated = Repeat(node, *bounds)
        if not self.at_end and self._expression[self._position] in "*+?":
            raise self.wrong("a repetition is repeated")
        return repeated

    def _bounds(self) -> tuple[int, int | None] | None:
        if self._take("*"):
            return (0, None)
        if self._take("+"):
            return (1, None)
        if self._take("?"):
            return (0, 1)
        return self._counted()

    def _counted(self) -> tuple[int, int | None] | None:
        """{n}, {n,} or {n,m}; anything else that starts with a brace stands for itself."""
        rest = self._expression[self._position :]
        closing = rest.find("}")
        if not rest.startswith("{") or closing < 0:
            return None
        first, comma, last = rest[1:closing].partition(",")
        if not _is_number(first) or (last and not _is_number(last)):
            return None
        least = int(first)
        most = least if not comma else int(last) if last else None
        if max(least, most or 0) > REPEAT_MAX or (most is not None and most < least):
            raise self.wrong("the bounds of a repetition are not allowed")
        self._position += closing + 1
        return (least, most)

    def _single(self, depth: int) -> Node:
        char = self._next()
        readers: dict[str, Callable[[], Node]] = {
            "(": lambda: self._group(depth),
            "[": lambda: Chars(self._cased(self._class())),
            ".": lambda: Chars(ALPHABET),
            "^": lambda: Edge("^"),
            "$": lambda: Edge("$"),
            "\\": self._escape,
        }
        reader = readers.get(char)
        return reader() if reader is not None else Chars(self._cased(frozenset(char)))

    def _group(self, depth: int) -> Node:
        ignored_case = self._ignores_case
        if self._take("?") and self._modifiers():
            # (?i) holds up to the end of the group it stands in.
            return Sequence(())
        node = self.choice(depth + 1)
        if not self._take(")"):
            raise self.wrong("a ')' is missing")
        self._ignores_case = ignored_case
        return node

    def _modifiers(self) -> bool:
        """What follows '(?': a name, or flags. True when flags were all there was."""
        rest = self._expression[self._position :]
        for opening in ("P<", "<"):
            if rest.startswith(opening):
                name, closed, _ = rest[len(opening) :].partition(">")
                if not closed or not name.isidentifier():
                    raise self.wrong("a group's name is not allowed")
                self._position += len(opening) + len(name) + 1
                return False
        value = True
        while not self.at_end:
            char = self._next()
            if char in ":)":
                return char == ")"
            if char == "-" and value:
                value = False
            elif char == "i":
                self._ignores_case = value
            elif char not in "msU":
                break
        raise self.wrong("what follows '(?' is unknown")

    # ---- characters

    def _escape(self) -> Node:
        char = self._next("a '\\' ends it")
        if char == "Q":
            literal, _, _ = self._expression[self._position :].partition("\\E")
            self._position = min(self._position + len(literal) + 2, len(self._expression))
            return Sequence(tuple(Chars(self._cased(frozenset(each))) for each in literal))
        if char in "Az":
            return Edge("^" if char == "A" else "$")
        if char in "bB":
            return Edge(char)
        return Chars(self._cased(self._escaped_set(char)))

    def _escaped_set(self, char: str) -> frozenset[str]:
        if char.lower() in _CLASSES:
            chars = _CLASSES[char.lower()]
            return chars if char.islower() else ALPHABET - chars
        if char == "x":
            return frozenset(self._hexadecimal())
        if char in _ESCAPED:
            return frozenset(_ESCAPED[char])
        if char.isascii() and char.isalnum():
            raise self.wrong(f"the escape \\{char} is unknown")
        return frozenset(char)

    def _hexadecimal(self) -> str:
        rest = self._expression[self._position :]
        if rest.startswith("{"):
            digits, closed, _ = rest[1:].partition("}")
            width = len(digits) + 2
        else:
            digits, closed, width = rest[:2], "yes", 2
        is_hex = bool(digits) and len(digits) <= 6 and all(each in string.hexdigits for each in digits)
        if not closed or width == 2 > len(digits) or not is_hex or int(digits, 16) > 0x10FFFF:
            raise self.wrong("a \\x escape is not a number")
        self._position += width
        return chr(int(digits, 16))

    def _class(self) -> frozenset[str]:
        negated = self._take("^")
        chars: set[str] = set()
        first = True
        while first or not self._take("]"):
            first = False
            chars |= self._class_item()
        found = self._cased(frozenset(chars))
        return ALPHABET - found if negated else found

    def _class_item(self) -> frozenset[str]:
        if self._expression.startswith("[:", self._position):
            posix = self._posix()
            if posix is not None:
                return posix
        low = self._class_char()
        rest = self._expression[self._position :]
        if len(low) != 1 or not rest.startswith("-") or rest.startswith("-]"):
            return low
        self._position += 1
        high = self._class_char()
        if len(high) != 1 or min(high) < min(low):
            raise self.wrong("a range of characters is not allowed")
        return frozenset(each for each in ALPHABET if min(low) <= each <= min(high))

    def _class_char(self) -> frozenset[str]:
        char = self._next("a ']' is missing")
        return self._escaped_set(self._next("a '\\' ends it")) if char == "\\" else frozenset(char)

    def _posix(self) -> frozenset[str] | None:
        name, closed, _ = self._expression[self._position + 2 :].partition(":]")
        if not closed:
            return None
        chars = _POSIX.get(name.removeprefix("^"))
        if chars is None:
            raise self.wrong("a class of characters is unknown")
        self._position += len(name) + 4
        return ALPHABET - chars if name.startswith("^") else chars

    def _cased(self, chars: frozenset[str]) -> frozenset[str]:
        if not self._ignores_case:
            return chars
        return chars | {each.lower() for each in chars} | {each.upper() for each in chars}

    # ---- text

    def _take(self, text: str) -> bool:
        if self._expression.startswith(text, self._position):
            self._position += len(text)
            return True
        return False

    def _next(self, missing: str = "it ends too early") -> str:
        if self.at_end:
            raise self.wrong(missing)
        self._position += 1
        return self._expression[self._position - 1]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
