"""DescribeUserScramCredentials, key 50, version 0: the SCRAM credentials of some users, or all.

Behaviour: there are none: null or no users give an empty list, a named user RESOURCE_NOT_FOUND, one that is
named twice DUPLICATE_RESOURCE once."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.call import MESSAGES_MAX, Call
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, shortened
from barnabas.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

MESSAGES = {
    ErrorCode.RESOURCE_NOT_FOUND: "Attempt to describe a user credential that does not exist",
    ErrorCode.DUPLICATE_RESOURCE: (
        "Cannot describe SCRAM credentials for the same user twice in a single request"
    ),
}
# All results share it.
NO_CREDENTIALS: list[CredentialInfo] = []


def describe_user_scram_credentials(
    call: Call, request: DescribeUserScramCredentialsRequest
) -> Work[DescribeUserScramCredentialsResponse]:
    counts: Counter[str] = Counter()
    for user in request.users or ():
        yield
        counts[user.name] += 1
    # The memory of a long request is free for its answer.
    request.users = None
    answer = DescribeUserScramCredentialsResponse()
    for name, count in counts.items():
        yield
        code = ErrorCode.RESOURCE_NOT_FOUND if count == 1 else ErrorCode.DUPLICATE_RESOURCE
        is_explained = len(answer.results) < MESSAGES_MAX
        answer.results.append(
            DescribeUserScramCredentialsResult(
                user=name,
                error_code=code,
                error_message=shortened(f"{MESSAGES[code]}: {name}") if is_explained else None,
                credential_infos=NO_CREDENTIALS,
            )
        )
    return answer
