"""AlterUserScramCredentials, key 51, version 0: set or delete the SCRAM credentials of users.

Behaviour: each user has one result. Credentials are checked as Kafka does. Deleting one is
RESOURCE_NOT_FOUND, since there are none; setting one is refused with UNSUPPORTED_VERSION.
Not done:  users, and so their credentials."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

# The fewest iterations of each mechanism: SCRAM-SHA-256 is 1, SCRAM-SHA-512 is 2.
ITERATIONS_MIN = {1: 4096, 2: 4096}
ITERATIONS_MAX = 16_384

Refusal = tuple[ErrorCode, str]
NO_CREDENTIAL: Refusal = (
    ErrorCode.RESOURCE_NOT_FOUND,
    "Attempt to delete a user credential that does not exist",
)
NO_NAME: Refusal = (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
UNKNOWN_MECHANISM: Refusal = (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
TOO_FEW_ITERATIONS: Refusal = (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
TOO_MANY_ITERATIONS: Refusal = (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
NO_USERS: Refusal = (ErrorCode.UNSUPPORTED_VERSION, "this release of Barnabas has no users")
REPEATED: Refusal = (
    ErrorCode.DUPLICATE_RESOURCE,
    "A user credential cannot be altered twice in the same request",
)


def alter_user_scram_credentials(
    call: Call, request: AlterUserScramCredentialsRequest
) -> Work[AlterUserScramCredentialsResponse]:
    refusals: dict[str, Refusal] = {}
    for deletion in request.deletions:
        yield
        refusals.setdefault(deletion.name, _refuse_deletion(deletion))
    for upsertion in request.upsertions:
        yield
        if refusals.get(upsertion.name) == NO_USERS:
            refusals[upsertion.name] = REPEATED
        else:
            refusals.setdefault(upsertion.name, _refuse_upsertion(upsertion))
    # The memory of a long request is free for its answer.
    request.deletions, request.upsertions = [], []
    answer = AlterUserScramCredentialsResponse()
    for user, (code, message) in refusals.items():
        yield
        answer.results.append(
            AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)
        )
    return answer


def _refuse_deletion(deletion: ScramCredentialDeletion) -> Refusal:
    return _refuse_user(deletion.name, deletion.mechanism) or NO_CREDENTIAL


def _refuse_upsertion(upsertion: ScramCredentialUpsertion) -> Refusal:
    refusal = _refuse_user(upsertion.name, upsertion.mechanism)
    if refusal is not None:
        return refusal
    if upsertion.iterations < ITERATIONS_MIN[upsertion.mechanism]:
        return TOO_FEW_ITERATIONS
    if upsertion.iterations > ITERATIONS_MAX:
        return TOO_MANY_ITERATIONS
    return NO_USERS


def _refuse_user(name: str, mechanism: int) -> Refusal | None:
    if not name:
        return NO_NAME
    if mechanism not in ITERATIONS_MIN:
        return UNKNOWN_MECHANISM
    return None
