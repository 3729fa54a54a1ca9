"""UpdateRaftVoter, key 82, versions 0-0. Written by tools/generate_messages.py."""

from typing import ClassVar

from barnabas.wire.message import EMPTY, Field, Message, shared_default

API_KEY = 82
VERSIONS = (0, 0)
FLEXIBLE_FROM = 0


class Listener(Message):
    name: str = ""
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0, 0),
        Field("host", "string", 0, 0),
        Field("port", "uint16", 0, 0),
    )


class KRaftVersionFeature(Message):
    min_supported_version: int = 0
    max_supported_version: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("min_supported_version", "int16", 0, 0),
        Field("max_supported_version", "int16", 0, 0),
    )


class UpdateRaftVoterRequest(Message):
    cluster_id: str | None = ""
    current_leader_epoch: int = 0
    voter_id: int = 0
    voter_directory_id: bytes = bytes(16)
    listeners: list[Listener] = EMPTY
    k_raft_version_feature: KRaftVersionFeature = shared_default(KRaftVersionFeature)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("cluster_id", "string", 0, 0, nullable_from=0),
        Field("current_leader_epoch", "int32", 0, 0),
        Field("voter_id", "int32", 0, 0),
        Field("voter_directory_id", "uuid", 0, 0),
        Field("listeners", Listener, 0, 0, array=True),
        Field("k_raft_version_feature", KRaftVersionFeature, 0, 0),
    )


class CurrentLeader(Message):
    leader_id: int = -1
    leader_epoch: int = -1
    host: str = ""
    port: int = 0

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("leader_id", "int32", 0, 0),
        Field("leader_epoch", "int32", 0, 0),
        Field("host", "string", 0, 0),
        Field("port", "int32", 0, 0),
    )


class UpdateRaftVoterResponse(Message):
    throttle_time_ms: int = 0
    error_code: int = 0
    current_leader: CurrentLeader = shared_default(CurrentLeader)

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0, 0),
        Field("error_code", "int16", 0, 0),
        Field("current_leader", CurrentLeader, 0, 0, tag=0),
    )


REQUEST = UpdateRaftVoterRequest
RESPONSE = UpdateRaftVoterResponse
