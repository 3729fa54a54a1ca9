"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): keys, and the four messages of an exchange.

Both sides use this module: a client proves that it knows the password, a broker that it has the credential.
Like Kafka, passwords are used as their UTF-8 bytes without further preparation (SASLprep), and user names are
ASCII. `salted_password` takes milliseconds by design: run it in a thread. Only clients, and the making of a
credential, need it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import ClassVar

NONCE_BYTES = 24
SALT_BITS = 130
# The messages of an exchange have three to five attributes, and possibly a few extensions.
ATTRIBUTES_MAX = 32
# An attribute of a client's first message: it authenticates with a delegation token (KIP-48).
TOKEN_AUTHENTICATION = "tokenauth"

_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
_CLIENT_KEY = b"Client Key"
_SERVER_KEY = b"Server Key"
_PRINTABLE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_SASL_NAME = re.compile(r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+")
_VALUE = re.compile(r"[\x01-\x2b\x2d-\x7f]+")
_ITERATIONS = re.compile(r"[1-9][0-9]{0,8}")


class ScramError(Exception):
    """A message breaks the rules of SCRAM, or a proof is wrong. The text has nothing of the message in it."""


@dataclass(frozen=True, slots=True)
class ScramMechanism:
    """`code` is the number of the mechanism in requests and metadata."""

    SHA_256: ClassVar[ScramMechanism]
    SHA_512: ClassVar[ScramMechanism]

    name: str
    hash: str
    code: int
    iterations_min: int = 4096
    iterations_max: int = 16384

    @property
    def key_bytes(self) -> int:
        return hashlib.new(self.hash).digest_size


ScramMechanism.SHA_256 = ScramMechanism("SCRAM-SHA-256", "sha256", 1)
ScramMechanism.SHA_512 = ScramMechanism("SCRAM-SHA-512", "sha512", 2)
MECHANISMS = (ScramMechanism.SHA_256, ScramMechanism.SHA_512)
BY_NAME = {mechanism.name: mechanism for mechanism in MECHANISMS}
BY_CODE = {mechanism.code: mechanism for mechanism in MECHANISMS}


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a broker stores of a password. The keys are secrets: who has the server key can pretend to be the
    broker, and the stored key verifies guesses of the password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Takes milliseconds; it releases the interpreter lock meanwhile."""
    return hashlib.pbkdf2_hmac(mechanism.hash, password.encode(), salt, iterations)


def make_credential(
    mechanism: ScramMechanism, password: str, iterations: int, salt: bytes | None = None
) -> ScramCredential:
    """The credential of a password, with a random salt if none is given. Takes milliseconds."""
    if not password:
        raise ValueError("the password must not be empty")
    salt = new_salt() if salt is None else salt
    salted = salted_password(mechanism, password, salt, iterations)
    return credential_of_salted(mechanism, salted, salt, iterations)


def credential_of_salted(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """The credential of a password that the client has salted already."""
    client_key = _hmac(mechanism, salted, _CLIENT_KEY)
    stored_key = hashlib.new(mechanism.hash, client_key).digest()
    return ScramCredential(salt, stored_key, _hmac(mechanism, salted, _SERVER_KEY), iterations)


def new_nonce() -> str:
    return secrets.token_urlsafe(NONCE_BYTES)


def new_salt() -> bytes:
    return salt_of(secrets.randbits(SALT_BITS))


def salt_of(number: int) -> bytes:
    """The lowest bits of a number in the form in which Kafka makes salts: digits and letters. All salts look
    the same, also those of users that do not exist (security/sasl/server.py)."""
    number &= (1 << SALT_BITS) - 1
    digits = bytearray()
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits))


def escape_user(user: str) -> str:
    return user.replace("=", "=3D").replace(",", "=2C")


def unescape_user(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


# ---- the messages


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """`header` is the part about channel binding, such as "n,,"; `bare` is the rest."""

    header: str
    bare: str = field(repr=False)
    user: str
    nonce: str = field(repr=False)
    authorization_id: str
    extensions: dict[str, str]

    @classmethod
    def make(cls, user: str, nonce: str, extensions: dict[str, str] | None = None) -> ClientFirst:
        extensions = extensions or {}
        more = "".join(f",{name}={value}" for name, value in extensions.items())
        return cls("n,,", f"n={escape_user(user)},r={nonce}{more}", user, nonce, "", extensions)

    @classmethod
    def parse(cls, message: bytes) -> ClientFirst:
        parts = _parts(message, "client's first")
        if len(parts) < 4 or parts[0] not in ("n", "y"):
            raise ScramError("the client's first message is broken, or asks for channel binding")
        authorization_id = _sasl_name(parts[1], "a") if parts[1] else ""
        header, attributes = f"{parts[0]},{parts[1]},", parts[2:]
        user = _sasl_name(attributes[0], "n")
        nonce = _value(attributes[1], "r", _PRINTABLE)
        return cls(header, ",".join(attributes), user, nonce, authorization_id, _extensions(attributes[2:]))

    @property
    def is_token(self) -> bool:
        """Whether the user is the id of a delegation token."""
        return self.extensions.get(TOKEN_AUTHENTICATION, "").lower() == "true"

    def __bytes__(self) -> bytes:
        return (self.header + self.bare).encode()


@dataclass(frozen=True, slots=True)
class ServerFirst:
    text: str = field(repr=False)
    nonce: str = field(repr=False)
    salt: bytes = field(repr=False)
    iterations: int

    @classmethod
    def make(cls, nonce: str, salt: bytes, iterations: int) -> ServerFirst:
        return cls(f"r={nonce},s={base64_text(salt)},i={iterations}", nonce, salt, iterations)

    @classmethod
    def parse(cls, message: bytes) -> ServerFirst:
        """`iterations` can be any number: a client must refuse one that would keep it busy for long."""
        parts = _parts(message, "server's first")
        if len(parts) < 3:
            raise ScramError("the server's first message is broken")
        nonce = _value(parts[0], "r", _PRINTABLE)
        salt = _decoded(parts[1], "s")
        iterations = int(_value(parts[2], "i", _ITERATIONS))
        return cls(",".join(parts), nonce, salt, iterations)

    def __bytes__(self) -> bytes:
        return self.text.encode()


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """`bare` is the message without its proof."""

    bare: str = field(repr=False)
    channel_binding: bytes
    nonce: str = field(repr=False)
    proof: bytes = field(repr=False)

    @classmethod
    def make(cls, header: str, nonce: str, proof: bytes = b"") -> ClientFinal:
        return cls(f"c={base64_text(header.encode())},r={nonce}", header.encode(), nonce, proof)

    @classmethod
    def parse(cls, message: bytes) -> ClientFinal:
        parts = _parts(message, "client's final")
        if len(parts) < 3:
            raise ScramError("the client's final message is broken")
        binding = _decoded(parts[0], "c")
        nonce = _value(parts[1], "r", _PRINTABLE)
        _extensions(parts[2:-1])
        return cls(",".join(parts[:-1]), binding, nonce, _decoded(parts[-1], "p"))

    def __bytes__(self) -> bytes:
        return f"{self.bare},p={base64_text(self.proof)}".encode()


@dataclass(frozen=True, slots=True)
class ServerFinal:
    """Either the server's signature or its error."""

    signature: bytes = field(repr=False)
    error: str | None = None

    @classmethod
    def parse(cls, message: bytes) -> ServerFinal:
        parts = _parts(message, "server's final")
        if parts[0].startswith("e="):
            return cls(b"", _value(parts[0], "e", _VALUE))
        return cls(_decoded(parts[0], "v"))

    def __bytes__(self) -> bytes:
        text = f"v={base64_text(self.signature)}" if self.error is None else f"e={self.error}"
        return text.encode()


# ---- proofs


def client_proof(mechanism: ScramMechanism, salted: bytes, signed: bytes) -> bytes:
    """What a client shows of its salted password; `signed` is from `signed_text`."""
    client_key = _hmac(mechanism, salted, _CLIENT_KEY)
    stored_key = hashlib.new(mechanism.hash, client_key).digest()
    return _xor(client_key, _hmac(mechanism, stored_key, signed))


def is_proven(mechanism: ScramMechanism, credential: ScramCredential, signed: bytes, proof: bytes) -> bool:
    """Whether the proof shows that the client knows the password; in constant time."""
    if len(proof) != mechanism.key_bytes:
        return False
    client_key = _xor(proof, _hmac(mechanism, credential.stored_key, signed))
    return hmac.compare_digest(hashlib.new(mechanism.hash, client_key).digest(), credential.stored_key)


def server_signature(mechanism: ScramMechanism, server_key: bytes, signed: bytes) -> bytes:
    return _hmac(mechanism, server_key, signed)


def is_servers(mechanism: ScramMechanism, salted: bytes, signed: bytes, signature: bytes) -> bool:
    """Whether the signature shows that the server has the client's credential; in constant time."""
    server_key = _hmac(mechanism, salted, _SERVER_KEY)
    return hmac.compare_digest(server_signature(mechanism, server_key, signed), signature)


def signed_text(first: ClientFirst, server_first: ServerFirst, final: ClientFinal) -> bytes:
    """What both sides sign: the messages of the exchange so far ("AuthMessage")."""
    return f"{first.bare},{server_first.text},{final.bare}".encode()


def _hmac(mechanism: ScramMechanism, key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, mechanism.hash)


def _xor(first: bytes, second: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(first, second, strict=True))


# ---- parsing


def _parts(message: bytes, which: str) -> list[str]:
    """The attributes of a message. One that begins with "m=" announces something that must be understood, and
    this code understands nothing of the kind."""
    try:
        parts = message.decode("ascii").split(",", ATTRIBUTES_MAX)
    except UnicodeDecodeError:
        raise ScramError(f"the {which} message is not ASCII") from None
    if len(parts) > ATTRIBUTES_MAX:
        raise ScramError(f"the {which} message has more than {ATTRIBUTES_MAX} attributes")
    if any(part.startswith("m=") for part in parts):
        raise ScramError(f"the {which} message needs an extension that is not supported")
    return parts


def _value(part: str, name: str, pattern: re.Pattern[str]) -> str:
    value = part[2:]
    if not part.startswith(f"{name}=") or not pattern.fullmatch(value):
        raise ScramError(f"the attribute {name!r} is missing or broken")
    return value


def _sasl_name(part: str, name: str) -> str:
    return unescape_user(_value(part, name, _SASL_NAME))


def _decoded(part: str, name: str) -> bytes:
    if not part.startswith(f"{name}="):
        raise ScramError(f"the attribute {name!r} is missing")
    try:
        return base64.b64decode(part[2:], validate=True)
    except (binascii.Error, ValueError):
        raise ScramError(f"the attribute {name!r} is not base64") from None


def _extensions(parts: list[str]) -> dict[str, str]:
    extensions = {}
    for part in parts:
        name, separator, value = part.partition("=")
        if not separator or not (name.isascii() and name.isalpha()) or not _VALUE.fullmatch(value):
            raise ScramError("an extension is broken")
        extensions[name] = value
    return extensions


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()
