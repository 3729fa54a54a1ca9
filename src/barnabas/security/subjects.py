"""From the subject of a certificate to a principal: the subject's text, and the mapping rules of KIP-371."""

import re
from functools import lru_cache
from typing import NamedTuple

from barnabas.security.key_stores import TlsError
from barnabas.security.principal import USER, Principal

# The attributes that RFC 2253 names; all others are written as an OID and the bytes of the value.
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# ASN.1 tags of texts: UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString.
_TEXTS = {12: "utf-8", 19: "ascii", 20: "latin-1", 22: "ascii", 27: "latin-1", 30: "utf-16-be"}
_ESCAPED = frozenset(',=+<>#;"\\')

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?)"
    r"|)\s*(?:,|$)"
)
_REFERENCE = re.compile(r"\\(.)|\$([0-9]+)", re.DOTALL)


class _Rule(NamedTuple):
    """`pattern` is None for DEFAULT."""

    pattern: re.Pattern[str] | None
    replacement: str
    case: str

    def apply(self, subject: str) -> str | None:
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        name = self.pattern.sub(self._name, subject)
        return {"L": name.lower(), "U": name.upper()}.get(self.case, name)

    def _name(self, match: re.Match[str]) -> str:
        return _REFERENCE.sub(lambda found: _referred(found, match), self.replacement)


def principal_of(subject: str, rules: str) -> Principal:
    """The principal of a certificate's subject by `ssl.principal.mapping.rules`; TlsError if no rule fits."""
    for rule in parse_rules(rules):
        name = rule.apply(subject)
        if name is not None:
            return Principal(USER, name)
    raise TlsError(f"No rule of ssl.principal.mapping.rules fits the certificate's subject {subject!r}.")


@lru_cache(maxsize=64)
def parse_rules(text: str) -> tuple[_Rule, ...]:
    """The rules in order; TlsError if one of them is malformed."""
    rules = []
    at, text = 0, text.strip()
    while at < len(text):
        match = _RULE.match(text, at)
        if match is None or match.end() == at:
            raise TlsError(
                f"ssl.principal.mapping.rules has a malformed rule: {text[at:]!r} must begin with DEFAULT or "
                "RULE:pattern/replacement/ with L or U after it or nothing."
            )
        at = match.end()
        if match["default"]:
            rules.append(_Rule(None, "", ""))
        elif match["pattern"] is not None:
            rules.append(_Rule(_compiled(match["pattern"]), match["replacement"], match["case"]))
    return tuple(rules)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise TlsError(
            f"ssl.principal.mapping.rules has a pattern that is not valid: {pattern!r}: {error}."
        ) from None


def _referred(found: re.Match[str], match: re.Match[str]) -> str:
    """What stands for `$1` or `\\$` in a replacement. As in Kafka, `$12` means `$1` and a 2 if the
    pattern has fewer than 12 groups, and a number that no group has stands for itself."""
    if found[1] is not None:
        return found[1]
    digits = found[2]
    for length in range(len(digits), 0, -1):
        number = int(digits[:length])
        if number <= match.re.groups:
            return (match[number] or "") + digits[length:]
    return found[0]


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate (DER) as Java's X500Principal writes it, by RFC 2253; or TlsError."""
    # Imported here: only peers that show a certificate need it, and it takes time.
    from cryptography.x509 import load_der_x509_certificate

    try:
        name = load_der_x509_certificate(certificate).subject.public_bytes()
        relative_names = [_relative_name(value) for _, value, _ in _elements(_elements(name)[0][1])]
    except (ValueError, IndexError):
        raise TlsError("The subject of the certificate cannot be read.") from None
    return ",".join(reversed(relative_names))


def _relative_name(encoded: bytes) -> str:
    return "+".join(_attribute(value) for _, value, _ in _elements(encoded))


def _attribute(encoded: bytes) -> str:
    (_, identifier, _), (tag, value, whole) = _elements(encoded)
    oid = _oid(identifier)
    keyword = _KEYWORDS.get(oid)
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or oid}=#{whole.hex()}"
    return f"{keyword}={_escape(value.decode(_TEXTS[tag]))}"


def _escape(text: str) -> str:
    escaped = "".join("\\" + letter if letter in _ESCAPED else letter for letter in text)
    escaped = escaped.replace("\0", "\\00")
    inner = escaped.strip(" ")
    if not inner:
        return "\\ " * len(escaped)
    leading = len(escaped) - len(escaped.lstrip(" "))
    trailing = len(escaped) - len(escaped.rstrip(" "))
    return "\\ " * leading + inner + "\\ " * trailing


def _elements(encoded: bytes) -> list[tuple[int, bytes, bytes]]:
    """Tag, contents and whole bytes of each DER element; IndexError or ValueError if they do not fit."""
    elements = []
    at = 0
    while at < len(encoded):
        begin, tag, length = at, encoded[at], encoded[at + 1]
        at += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(encoded[at : at + count], "big")
            at += count
        if at + length > len(encoded):
            raise ValueError("an element is longer than what is around it")
        elements.append((tag, encoded[at : at + length], encoded[begin : at + length]))
        at += length
    return elements


def _oid(encoded: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for byte in encoded:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
