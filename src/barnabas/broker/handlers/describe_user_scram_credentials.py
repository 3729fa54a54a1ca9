"""DescribeUserScramCredentials, key 50, version 0: the SCRAM credentials of some users, or all.

Behaviour: null or no users mean all who have credentials. A named user without one is RESOURCE_NOT_FOUND, one
that is named twice DUPLICATE_RESOURCE once. Salts and keys are never shown."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.call import MESSAGES_MAX, Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, shortened
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.scram import iterations_of
from barnabas.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

# All results without credentials share it.
NO_CREDENTIALS: list[CredentialInfo] = []
MESSAGES = {
    ErrorCode.RESOURCE_NOT_FOUND: "Attempt to describe a user credential that does not exist",
    ErrorCode.DUPLICATE_RESOURCE: (
        "Cannot describe SCRAM credentials for the same user twice in a single request"
    ),
}


def describe_user_scram_credentials(
    call: Call, request: DescribeUserScramCredentialsRequest
) -> Work[DescribeUserScramCredentialsResponse]:
    credentials = yield from _by_user(call.broker.image)
    counts: Counter[str] = Counter()
    for user in request.users or ():
        yield
        counts[user.name] += 1
    if not request.users:
        counts = Counter(credentials.keys())
    # The memory of a long request is free for its answer.
    request.users = None
    answer = DescribeUserScramCredentialsResponse()
    for name, count in counts.items():
        yield
        found = credentials.get(name, NO_CREDENTIALS) if count == 1 else NO_CREDENTIALS
        code = ErrorCode.NONE
        if not found:
            code = ErrorCode.RESOURCE_NOT_FOUND if count == 1 else ErrorCode.DUPLICATE_RESOURCE
        is_explained = code and len(answer.results) < MESSAGES_MAX
        answer.results.append(
            DescribeUserScramCredentialsResult(
                user=name,
                error_code=code,
                error_message=shortened(f"{MESSAGES[code]}: {name}") if is_explained else None,
                credential_infos=found,
            )
        )
    return answer


def _by_user(image: MetadataImage) -> Work[dict[str, list[CredentialInfo]]]:
    credentials: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), text in image.scram_credentials.items():
        yield
        info = CredentialInfo(mechanism=mechanism, iterations=iterations_of(text))
        credentials.setdefault(user, []).append(info)
    return credentials
