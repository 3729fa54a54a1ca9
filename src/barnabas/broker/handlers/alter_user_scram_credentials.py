"""AlterUserScramCredentials, key 51, version 0: set or delete the SCRAM credentials of users.

Behaviour: each user has one result, and can have one change (DUPLICATE_RESOURCE). The client has salted the
password; from that, the keys are computed, and only they are stored. Unlike in Kafka, an empty salt and an
empty salted password, and very long ones, are UNACCEPTABLE_CREDENTIAL."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.scram import CHANGES_PER_STEP, NO_CREDENTIAL, Results, ScramChange
from barnabas.security.scram import BY_CODE, ScramCredential, ScramMechanism, credential_of_salted
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

SALT_BYTES_MAX = 1024


def alter_user_scram_credentials(
    call: Call, request: AlterUserScramCredentialsRequest
) -> Work[AlterUserScramCredentialsResponse]:
    changes = yield from _checked(request, call.broker.image)
    # The memory of a long request is free for its answer.
    request.deletions, request.upsertions = [], []
    results: Results = {user: change for user, change in changes.items() if isinstance(change, KafkaError)}
    accepted = [change for change in changes.values() if isinstance(change, ScramChange)]
    for start in range(0, len(accepted), CHANGES_PER_STEP):
        portion = accepted[start : start + CHANGES_PER_STEP]
        try:
            results |= yield call.broker.controller.alter_scram_credentials(portion)
        except KafkaError as error:
            results |= {change.user: error for change in portion}
    answer = AlterUserScramCredentialsResponse()
    for user in changes:
        yield
        result = results[user]
        answer.results.append(
            AlterUserScramCredentialsResult(
                user=user,
                error_code=ErrorCode.NONE if result is None else result.code,
                error_message=None if result is None else result.message,
            )
        )
    return answer


def _checked(
    request: AlterUserScramCredentialsRequest, image: MetadataImage
) -> Work[dict[str, ScramChange | KafkaError]]:
    """One change of each user, or what is wrong with it. As in Kafka, the first error of a user counts."""
    changes: dict[str, ScramChange | KafkaError] = {}
    items: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [
        *request.deletions,
        *request.upsertions,
    ]
    for item in items:
        yield
        before = changes.get(item.name)
        if isinstance(before, ScramChange):
            changes[item.name] = KafkaError(
                ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
            )
        elif before is None:
            try:
                changes[item.name] = _change(item, image)
            except KafkaError as error:
                changes[item.name] = error
    return changes


def _change(item: ScramCredentialDeletion | ScramCredentialUpsertion, image: MetadataImage) -> ScramChange:
    mechanism = _mechanism(item.name, item.mechanism)
    if isinstance(item, ScramCredentialUpsertion):
        return ScramChange(item.name, mechanism.code, _credential(mechanism, item))
    if (item.name, mechanism.code) not in image.scram_credentials:
        raise NO_CREDENTIAL
    return ScramChange(item.name, mechanism.code, None)


def _mechanism(user: str, code: int) -> ScramMechanism:
    if not user:
        raise _unacceptable("Username must not be empty")
    mechanism = BY_CODE.get(code)
    if mechanism is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return mechanism


def _credential(mechanism: ScramMechanism, upsertion: ScramCredentialUpsertion) -> ScramCredential:
    if upsertion.iterations < mechanism.iterations_min:
        raise _unacceptable("Too few iterations")
    if upsertion.iterations > mechanism.iterations_max:
        raise _unacceptable("Too many iterations")
    if not 0 < len(upsertion.salt) <= SALT_BYTES_MAX:
        raise _unacceptable(f"The salt must have 1 to {SALT_BYTES_MAX} bytes")
    if not 0 < len(upsertion.salted_password) <= SALT_BYTES_MAX:
        raise _unacceptable(f"The salted password must have 1 to {SALT_BYTES_MAX} bytes")
    return credential_of_salted(
        mechanism, bytes(upsertion.salted_password), bytes(upsertion.salt), upsertion.iterations
    )


def _unacceptable(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, sentence)
