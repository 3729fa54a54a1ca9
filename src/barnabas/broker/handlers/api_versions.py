"""ApiVersions, key 18, versions 0-4: what this broker serves, computed from the API table.

Behaviour: the response header is always version 0; a newer request than we know is answered in
version 0 with UNSUPPORTED_VERSION and our own range, so that the client can step down (KIP-511). The APIs
that only brokers use are shown to brokers, which say so by the name of their software.
Versions:  v3 names the client's software, checked as Kafka does; it lists features · v4 lists supported
           features whose lowest level is 0 too: Java clients 3.3 to 3.7 refuse a lowest level of 0."""

from __future__ import annotations

import re
from collections.abc import Mapping

from barnabas.broker.call import Api, Call
from barnabas.broker.peers import BROKER_SOFTWARE_NAME
from barnabas.errors import ErrorCode
from barnabas.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

KEY = 18
SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
SOFTWARE_VERSION_MIN = 3
LOWEST_LEVEL_0_VERSION_MIN = 4
# The lowest level of every feature here.
LEVEL_MIN = 0
# Clients use the new group protocol, and an epoch per transaction, only where these are in force.
FEATURES = {"group.version": 1, "transaction.version": 2}


def api_versions(call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.version >= SOFTWARE_VERSION_MIN and not (
        SOFTWARE_NAME.fullmatch(request.client_software_name)
        and SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    rows = call.broker.rows.values()
    is_broker = request.client_software_name == BROKER_SOFTWARE_NAME
    return ApiVersionsResponse(
        api_keys=[_range_of(row) for row in rows if is_broker or not row.between_brokers],
        supported_features=_supported_features(call.version),
        finalized_features_epoch=call.broker.image.offset,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in FEATURES.items()
        ],
    )


def _supported_features(version: int) -> list[SupportedFeatureKey]:
    if version < LOWEST_LEVEL_0_VERSION_MIN:
        return []
    return [
        SupportedFeatureKey(name=name, min_version=LEVEL_MIN, max_version=level)
        for name, level in FEATURES.items()
    ]


def unsupported_version(rows: Mapping[int, Api]) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[_range_of(rows[KEY])])


def _range_of(row: Api) -> ApiVersion:
    low, high = row.advertised
    return ApiVersion(api_key=row.key, min_version=low, max_version=high)
