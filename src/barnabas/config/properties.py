"""Java's .properties syntax, as server.properties has it. Works on text; reads no file."""

from barnabas.config.definition import ConfigError

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def load_properties(text: str) -> dict[str, str]:
    """The keys and values of a properties file; the last of several values for a key counts."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split(line)
        properties[_unescape(key)] = _unescape(value)
    return properties


def dump_properties(properties: dict[str, str]) -> str:
    """The text that `load_properties` reads back as the same mapping, one line per key."""
    return "".join(
        f"{_escape(key, key=True)}={_escape(value, key=False)}\n" for key, value in properties.items()
    )


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending: str | None = None
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_BLANK)
        if pending is None and (not line or line[0] in "#!"):
            continue
        joined = line if pending is None else pending + line
        if _is_continued(line):
            pending = joined[:-1]
        else:
            lines.append(joined)
            pending = None
    if pending:
        lines.append(pending)
    return lines


def _is_continued(line: str) -> bool:
    """An odd number of backslashes at the end: the last one escapes the line break."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    """The key ends at the first unescaped `=`, `:` or blank; blanks around one separator do not count."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANK:
        position += 2 if line[position] == "\\" else 1
    key, rest = line[:position], line[position:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return key, rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    pieces: list[str] = []
    position = 0
    while position < len(text):
        if text[position] != "\\":
            pieces.append(text[position])
            position += 1
            continue
        letter = text[position + 1 : position + 2]
        if letter == "u":
            pieces.append(_code_unit(text[position + 2 : position + 6]))
            position += 6
        else:
            pieces.append(_ESCAPES.get(letter, letter))
            position += 2
    # Java writes a character beyond 16 bits as two escapes; together they are one character of ours.
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _code_unit(digits: str) -> str:
    if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
        raise ConfigError(f"\\u{digits} in a properties file needs four hexadecimal digits after \\u.")
    return chr(int(digits, 16))


def _escape(text: str, *, key: bool) -> str:
    pieces: list[str] = []
    for position, character in enumerate(text):
        if character in "\\=:#!" or (character == " " and (key or position == 0)):
            pieces.append("\\" + character)
        elif character in "\t\n\r\f":
            pieces.append("\\" + "tnrf"["\t\n\r\f".index(character)])
        elif " " <= character <= "~":
            pieces.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            pieces.extend(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    return "".join(pieces)
