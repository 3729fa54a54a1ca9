"""The versions in which a client and a broker talk: of every API the highest that both sides support."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from barnabas.errors import ErrorCode, KafkaError, UnsupportedVersionError, error_of
from barnabas.wire.apis import API_VERSIONS_KEY, api_of
from barnabas.wire.messages.api_versions import ApiVersionsResponse


class VersionRange(NamedTuple):
    first: int
    last: int


def check_versions_error(number: int) -> None:
    if number == ErrorCode.UNSUPPORTED_VERSION:
        raise UnsupportedVersionError
    if number != ErrorCode.NONE:
        raise KafkaError(error_of(number))


async def agree(ask: Callable[[int], Awaitable[ApiVersionsResponse]]) -> ApiVersionsResponse:
    """The versions of a broker, which `ask` asks for in a version of ApiVersions: our newest, then the
    broker's newest."""
    api = api_of(API_VERSIONS_KEY)
    assert api is not None
    response = await ask(api.last)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        theirs = {entry.api_key: entry.max_version for entry in response.api_keys}
        response = await ask(min(api.last, max(0, theirs.get(API_VERSIONS_KEY, 0))))
    check_versions_error(response.error_code)
    return response


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
