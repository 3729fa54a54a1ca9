"""AlterUserScramCredentials, key 51, version 0: set or delete the SCRAM credentials of users.

Behaviour: each user has one result, and can have one change (DUPLICATE_RESOURCE). The client has salted the
password; from that, the keys are computed, and only they are stored. Unlike in Kafka, an empty salt and an
empty salted password, and very long ones, are UNACCEPTABLE_CREDENTIAL."""

from __future__ import annotations

from typing import TypeAlias

from barnabas.broker.call import MESSAGES_MAX, Call
from barnabas.broker.portions import drained, drained_items
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.scram import CHANGES_PER_STEP, NO_CREDENTIAL, ScramChange
from barnabas.security.scram import BY_CODE, ScramMechanism, credential_of_salted
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

SALT_BYTES_MAX = 1024

# A long request can have the same error very often: it is one object, which is never raised.
_REPEATED = KafkaError(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)
_UNKNOWN_MECHANISM = KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


def _unacceptable(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, sentence)


_NO_USER = _unacceptable("Username must not be empty")
_TOO_FEW = _unacceptable("Too few iterations")
_TOO_MANY = _unacceptable("Too many iterations")
_WRONG_SALT = _unacceptable(f"The salt must have 1 to {SALT_BYTES_MAX} bytes")
_WRONG_PASSWORD = _unacceptable(f"The salted password must have 1 to {SALT_BYTES_MAX} bytes")

# What becomes of each user: a change, an error, or None if the change is done.
Outcomes: TypeAlias = dict[str, ScramChange | KafkaError | None]


def alter_user_scram_credentials(
    call: Call, request: AlterUserScramCredentialsRequest
) -> Work[AlterUserScramCredentialsResponse]:
    outcomes = yield from _checked(request, call.broker.image)
    portion: list[ScramChange] = []
    for change in list(outcomes.values()):
        yield
        if isinstance(change, ScramChange):
            portion.append(change)
            if len(portion) == CHANGES_PER_STEP:
                yield from _carry_out(call, portion, outcomes)
                portion = []
    yield from _carry_out(call, portion, outcomes)
    answer = AlterUserScramCredentialsResponse()
    for user, result in drained_items(outcomes):
        yield
        assert not isinstance(result, ScramChange)
        # An answer of very many errors explains only the first ones.
        is_explained = len(answer.results) < MESSAGES_MAX
        answer.results.append(
            AlterUserScramCredentialsResult(
                user=user,
                error_code=ErrorCode.NONE if result is None else result.code,
                error_message=result.message if result is not None and is_explained else None,
            )
        )
    return answer


def _carry_out(call: Call, portion: list[ScramChange], outcomes: Outcomes) -> Work[None]:
    try:
        outcomes |= (yield call.broker.controller.alter_scram_credentials(portion)) if portion else {}
    except KafkaError as error:
        outcomes |= {change.user: error for change in portion}


def _checked(request: AlterUserScramCredentialsRequest, image: MetadataImage) -> Work[Outcomes]:
    """One change of each user, or what is wrong with it. As in Kafka, the first error of a user counts.

    The memory of a long request is freed on the way."""
    outcomes: Outcomes = {}
    items: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [
        *request.deletions,
        *request.upsertions,
    ]
    request.deletions, request.upsertions = [], []
    for item in drained(items):
        yield
        before = outcomes.get(item.name)
        if isinstance(before, ScramChange):
            outcomes[item.name] = _REPEATED
        elif before is None:
            outcomes[item.name] = _change(item, image)
    return outcomes


def _change(
    item: ScramCredentialDeletion | ScramCredentialUpsertion, image: MetadataImage
) -> ScramChange | KafkaError:
    if not item.name:
        return _NO_USER
    mechanism = BY_CODE.get(item.mechanism)
    if mechanism is None:
        return _UNKNOWN_MECHANISM
    if isinstance(item, ScramCredentialUpsertion):
        return _upsertion(mechanism, item)
    if (item.name, mechanism.code) not in image.scram_credentials:
        return NO_CREDENTIAL
    return ScramChange(item.name, mechanism.code, None)


def _upsertion(mechanism: ScramMechanism, item: ScramCredentialUpsertion) -> ScramChange | KafkaError:
    if item.iterations < mechanism.iterations_min:
        return _TOO_FEW
    if item.iterations > mechanism.iterations_max:
        return _TOO_MANY
    if not 0 < len(item.salt) <= SALT_BYTES_MAX:
        return _WRONG_SALT
    if not 0 < len(item.salted_password) <= SALT_BYTES_MAX:
        return _WRONG_PASSWORD
    credential = credential_of_salted(
        mechanism, bytes(item.salted_password), bytes(item.salt), item.iterations
    )
    return ScramChange(item.name, mechanism.code, credential)
