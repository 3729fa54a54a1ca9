"""The versions in which a client and a broker talk: of every API the highest that both sides support."""

from typing import NamedTuple

from barnabas.errors import ErrorCode, KafkaError, UnsupportedVersionError, error_of
from barnabas.wire.apis import api_of
from barnabas.wire.messages.api_versions import ApiVersionsResponse


class VersionRange(NamedTuple):
    first: int
    last: int


def check_versions_error(number: int) -> None:
    if number == ErrorCode.UNSUPPORTED_VERSION:
        raise UnsupportedVersionError
    if number != ErrorCode.NONE:
        raise KafkaError(error_of(number))


def common_versions(response: ApiVersionsResponse) -> dict[int, VersionRange]:
    common: dict[int, VersionRange] = {}
    for theirs in response.api_keys:
        ours = api_of(theirs.api_key)
        if ours is None:
            continue
        first, last = max(ours.first, theirs.min_version), min(ours.last, theirs.max_version)
        if first <= last:
            common[theirs.api_key] = VersionRange(first, last)
    return common
