"""Encrypts secrets with `password.encoder.secret`: settings, such as the passwords of key stores, and the
SCRAM credentials of users.

Otherwise everybody who may read ZooKeeper, or a copy of a broker's files, could read them. The image in the
memory of a broker has them in plain text. A value that cannot be decrypted stays as it is in the store, also
in later snapshots: a broker with another secret does no harm to it.

The cipher is made of HMAC-SHA256, because Python's own library has no AES (docs/decisions/0011). A stored
value is a random nonce, a tag, and the text combined with the key stream HMAC(key 1, nonce and counter). The
tag is HMAC(key 2, all of it), and is checked first. It also covers the resource and the name of the setting,
or the user and the mechanism, so a value cannot be moved to another one.

Without a `password.encoder.secret` the embedded store has all of them as they are, in a file that only its
owner can read. In ZooKeeper, secret settings are refused then. Credentials are stored as they are, as Kafka
stores them: they are not passwords, but good for guessing them."""

import base64
import binascii
import functools
import hashlib
import hmac
import logging
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from barnabas.config.broker import is_secret
from barnabas.metadata.parts import BROKER_RESOURCE
from barnabas.metadata.records import ConfigRecord, MetadataRecord, ScramCredentialRecord
from barnabas.metadata.store import StoreError

logger = logging.getLogger(__name__)

SecretRecord: TypeAlias = ConfigRecord | ScramCredentialRecord
_WITH_SECRETS = (ConfigRecord, ScramCredentialRecord)

PREFIX = "barnabas-encrypted:1:"
_NONCE_BYTES = 16
_TAG_BYTES = 32
_BLOCK_BYTES = 32
_ITERATIONS = 200_000


class Keys(NamedTuple):
    """Derived once per store. The id of the cluster makes them differ between clusters."""

    cipher: bytes
    tag: bytes


def derive_keys(secret: str, cluster_id: str) -> Keys:
    """Slow on purpose: a stolen value should not tell a short secret."""
    both = hashlib.pbkdf2_hmac("sha256", secret.encode(), cluster_id.encode(), _ITERATIONS, 64)
    return Keys(both[:32], both[32:])


@dataclass(frozen=True, slots=True)
class SecretValues:
    """`keys` are those of the current secret, then those of the old one. Without keys nothing is encrypted,
    and a record with a secret is refused. `is_needed`: a value that cannot be decrypted is an error."""

    keys: tuple[Keys, ...] = ()
    is_needed: bool = False

    @classmethod
    def of(cls, given: Iterable[str | None], cluster_id: str) -> "SecretValues":
        keys = tuple(derive_keys(secret, cluster_id) for secret in given if secret)
        return cls(keys, is_needed=True)

    def sealed(self, records: Iterable[MetadataRecord]) -> list[MetadataRecord]:
        """The records as they are stored. StoreError if one has a secret and there is no key."""
        return [self._seal(record) if isinstance(record, _WITH_SECRETS) else record for record in records]

    def opened(self, records: tuple[MetadataRecord, ...]) -> tuple[MetadataRecord, ...]:
        """The records with their secrets in plain text, as far as the keys allow."""
        if not any(isinstance(record, _WITH_SECRETS) and _is_sealed(record) for record in records):
            return records
        return tuple(
            self._open(record) if isinstance(record, _WITH_SECRETS) else record for record in records
        )

    def _seal(self, record: SecretRecord) -> SecretRecord:
        value = _value(record)
        if value is None or _is_sealed(record) or not has_secret(record):
            return record
        if not self.keys and isinstance(record, ScramCredentialRecord):
            _warn_of_readable_credentials()
            return record
        if not self.keys:
            raise StoreError(
                f"{_name(record)} is a secret, which is stored in ZooKeeper only if it can be encrypted: set "
                "password.encoder.secret to the same value on all brokers"
            )
        nonce = secrets.token_bytes(_NONCE_BYTES)
        text = _combine(self.keys[0], nonce, value.encode())
        sealed = nonce + _tag(self.keys[0], record, nonce + text) + text
        return _with_value(record, PREFIX + base64.urlsafe_b64encode(sealed).decode())

    def _open(self, record: SecretRecord) -> SecretRecord:
        value = _value(record)
        if value is None or not _is_sealed(record):
            return record
        try:
            sealed = base64.urlsafe_b64decode(value.removeprefix(PREFIX))
        except (binascii.Error, ValueError):
            sealed = b""
        nonce, tag = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES : _NONCE_BYTES + _TAG_BYTES]
        text = sealed[_NONCE_BYTES + _TAG_BYTES :]
        for keys in self.keys:
            if hmac.compare_digest(tag, _tag(keys, record, nonce + text)):
                return _with_value(record, _combine(keys, nonce, text).decode())
        if self.is_needed:
            logger.error(
                "cannot decrypt %s: it was encrypted with another password.encoder.secret", _name(record)
            )
        return record


@functools.cache
def _warn_of_readable_credentials() -> None:
    """Once is enough."""
    logger.warning(
        "SCRAM credentials are stored in ZooKeeper without encryption: set password.encoder.secret to the "
        "same value on all brokers, and set the credentials again"
    )


def has_secret(record: MetadataRecord) -> bool:
    if isinstance(record, ScramCredentialRecord):
        return record.credential is not None
    if not isinstance(record, ConfigRecord) or record.resource_type != BROKER_RESOURCE:
        return False
    return record.value is not None and is_secret(record.key)


def _value(record: SecretRecord) -> str | None:
    return record.value if isinstance(record, ConfigRecord) else record.credential


def _with_value(record: SecretRecord, value: str) -> SecretRecord:
    if isinstance(record, ConfigRecord):
        return replace(record, value=value)
    return replace(record, credential=value)


def _name(record: SecretRecord) -> str:
    if isinstance(record, ConfigRecord):
        return f"{record.key} of broker {record.resource_name!r}"
    return f"the SCRAM credential {record.mechanism} of user {record.user!r}"


def _is_sealed(record: SecretRecord) -> bool:
    value = _value(record)
    return value is not None and value.startswith(PREFIX)


def _combine(keys: Keys, nonce: bytes, text: bytes) -> bytes:
    """Encrypt or decrypt: the text XOR the key stream."""
    blocks = range((len(text) + _BLOCK_BYTES - 1) // _BLOCK_BYTES)
    stream = b"".join(
        hmac.digest(keys.cipher, nonce + block.to_bytes(4, "big"), "sha256") for block in blocks
    )
    return bytes(a ^ b for a, b in zip(text, stream, strict=False))


def _tag(keys: Keys, record: SecretRecord, data: bytes) -> bytes:
    if isinstance(record, ConfigRecord):
        name = f"{record.resource_type}\0{record.resource_name}\0{record.key}\0".encode()
    else:
        name = f"scram\0{record.mechanism}\0{record.user}\0".encode()
    return hmac.digest(keys.tag, len(name).to_bytes(4, "big") + name + data, "sha256")
