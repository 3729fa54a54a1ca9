"""DescribeCluster, key 60, versions 0-2. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message

API_KEY = 60
VERSIONS = (0, 2)
FLEXIBLE_FROM = 0


class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("include_cluster_authorized_operations", "bool", 0, 2),
        Field("endpoint_type", "int8", 1, 2),
        Field("include_fenced_brokers", "bool", 2, 2),
    )


class DescribeClusterBroker(Message):
    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 0, 2),
        Field("host", "string", 0, 2),
        Field("port", "int32", 0, 2),
        Field("rack", "string", 0, 2, nullable_from=0),
        Field("is_fenced", "bool", 2, 2),
    )


class DescribeClusterResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterBroker] = EMPTY
    cluster_authorized_operations: int = -2147483648

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 2),
        Field("error_code", "int16", 0, 2),
        Field("error_message", "string", 0, 2, nullable_from=0),
        Field("endpoint_type", "int8", 1, 2),
        Field("cluster_id", "string", 0, 2),
        Field("controller_id", "int32", 0, 2),
        Field("brokers", DescribeClusterBroker, 0, 2, array=True),
        Field("cluster_authorized_operations", "int32", 0, 2),
    )


REQUEST = DescribeClusterRequest
RESPONSE = DescribeClusterResponse
