"""The value of `sasl.jaas.config`: the name of a login module, a flag, and options.

    org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="...";

Java runs the class that is named; here the name only says which mechanism the options belong to. An error
never repeats the text: it has passwords in it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | "(?P<quoted>(?:[^"\\]|\\.)*)" | (?P<mark>[=;]) | (?P<word>[^\s"=;]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class JaasError(ValueError):
    """One sentence for the person who wrote the value."""


@dataclass(frozen=True, slots=True)
class LoginModule:
    """`name` is the class without its package. The options may be secrets, so they are not in the repr."""

    name: str
    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_mark: bool


def parse_jaas(text: str) -> LoginModule:
    """The one module of a value; JaasError if there is none, more than one, or it is not well formed."""
    tokens = list(_tokens(text))
    if not tokens:
        raise JaasError("sasl.jaas.config is empty: it must name a login module, its flag and options.")
    name, flag = _word(tokens, 0, "a login module"), _word(tokens, 1, "the flag `required`")
    if flag.lower() not in _FLAGS:
        raise JaasError("sasl.jaas.config must have the flag `required` after the login module.")
    options: dict[str, str] = {}
    at = 2
    while not _is_mark(tokens, at, ";"):
        key = _word(tokens, at, "an option or a final `;`")
        if not _is_mark(tokens, at + 1, "="):
            raise JaasError(
                f'sasl.jaas.config has an option without a value after {_place(at)}: write key="value".'
            )
        options[key] = _word(tokens, at + 2, "a value after `=`")
        at += 3
    if at + 1 != len(tokens):
        raise JaasError("sasl.jaas.config has more than one login module; it must have one.")
    return LoginModule(name.rpartition(".")[2], options)


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise JaasError('sasl.jaas.config has a quotation mark (") that is not closed.')
        at = match.end()
        if match["quoted"] is not None:
            yield _Token(_ESCAPED.sub(lambda each: _ESCAPES.get(each[1], each[1]), match["quoted"]), False)
        elif match["mark"] or match["word"]:
            yield _Token(match["mark"] or match["word"], match["mark"] is not None)


def _is_mark(tokens: list[_Token], at: int, mark: str) -> bool:
    return at < len(tokens) and tokens[at].is_mark and tokens[at].text == mark


def _word(tokens: list[_Token], at: int, what: str) -> str:
    if at >= len(tokens) or tokens[at].is_mark:
        raise JaasError(f"sasl.jaas.config is not complete: {what} is missing.")
    return tokens[at].text


def _place(at: int) -> str:
    return "the flag" if at == 2 else f"option {(at - 2) // 3}"
