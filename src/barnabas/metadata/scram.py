"""SCRAM credentials of users: how they are stored, and the decision that changes them. Pure.

A credential is stored as one text, which ZooKeeper gets encrypted if there is a `password.encoder.secret`.
The texts stay as they are in the image: only an authentication reads one."""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.decision import Decision
from barnabas.metadata.records import MetadataRecord, ScramCredentialRecord
from barnabas.security.scram import ScramCredential

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage

# How many changes are written at a time.
CHANGES_PER_STEP = 200

NO_CREDENTIAL = KafkaError(
    ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
)


class ScramChange(NamedTuple):
    """A new credential of a user; None deletes it. `mechanism` has Kafka's number."""

    user: str
    mechanism: int
    credential: ScramCredential | None


Results = dict[str, KafkaError | None]


def alter_scram_credentials(image: "MetadataImage", changes: Iterable[ScramChange]) -> Decision[Results]:
    """One answer for each user; each has one change."""
    records: list[MetadataRecord] = []
    results: Results = {}
    for user, mechanism, credential in changes:
        results[user] = None
        if credential is not None:
            records.append(ScramCredentialRecord(user, mechanism, credential_text(credential)))
        elif (user, mechanism) in image.scram_credentials:
            records.append(ScramCredentialRecord(user, mechanism, None))
        else:
            results[user] = NO_CREDENTIAL
    return Decision(tuple(records), results)


def credential_text(credential: ScramCredential) -> str:
    parts = (credential.salt, credential.stored_key, credential.server_key)
    return ",".join((str(credential.iterations), *(base64.b64encode(part).decode() for part in parts)))


def credential_of(text: str) -> ScramCredential | None:
    """None if this broker cannot decrypt it."""
    try:
        iterations, salt, stored_key, server_key = text.split(",")
        decode = base64.b64decode
        return ScramCredential(decode(salt), decode(stored_key), decode(server_key), int(iterations))
    except (ValueError, binascii.Error):
        return None


def iterations_of(text: str) -> int:
    """-1 if this broker cannot decrypt the credential."""
    number = text.partition(",")[0]
    return int(number) if number.isdecimal() else -1


def stored_credential(
    credentials: Mapping[tuple[str, int], str], user: str, mechanism: int
) -> ScramCredential | None:
    text = credentials.get((user, mechanism))
    return None if text is None else credential_of(text)
