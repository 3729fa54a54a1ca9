"""Kafka's errors: one table of code, retriable flag and text, shared by broker and clients.

Inside, code raises KafkaError; one edge (a handler's per-item guard, the client's response check)
translates it to and from the number on the wire."""

from enum import IntEnum
from typing import Self


class ErrorCode(IntEnum):
    """Kafka's error codes, by Kafka's names. `retriable`: trying again may help; `text`: what it means."""

    retriable: bool
    text: str

    def __new__(cls, code: int, retriable: bool, text: str) -> "ErrorCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.text = text
        return member

    UNKNOWN_SERVER_ERROR = -1, False, "The broker failed in a way it did not foresee; its log says more."
    NONE = 0, False, "Nothing went wrong."
    OFFSET_OUT_OF_RANGE = (
        1,
        False,
        "The partition holds no such offset: it lies before the start or after the end of the log.",
    )
    CORRUPT_MESSAGE = 2, True, "A record batch is damaged: its checksum, length or format is wrong."
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "This broker knows no such topic or partition."
    INVALID_FETCH_SIZE = 4, False, "The fetch asks for a size that makes no sense."
    LEADER_NOT_AVAILABLE = 5, True, "The partition has no leader yet; try again shortly."
    NOT_LEADER_OR_FOLLOWER = (
        6,
        True,
        "This broker does not hold the partition in the role asked for; refresh the metadata.",
    )
    REQUEST_TIMED_OUT = 7, True, "The request took longer than its timeout."
    BROKER_NOT_AVAILABLE = 8, False, "The broker cannot be reached."
    REPLICA_NOT_AVAILABLE = 9, True, "The replica cannot be read on this broker now."
    MESSAGE_TOO_LARGE = 10, False, "The record batch is larger than the topic or broker takes."
    STALE_CONTROLLER_EPOCH = 11, False, "A newer controller has taken over."
    OFFSET_METADATA_TOO_LARGE = 12, False, "The text that goes with the committed offset is too long."
    NETWORK_EXCEPTION = 13, True, "The connection broke before an answer came."
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "The coordinator is still reading its state; try again shortly."
    COORDINATOR_NOT_AVAILABLE = 15, True, "There is no coordinator to ask now; try again shortly."
    NOT_COORDINATOR = (
        16,
        True,
        "This broker does not coordinate that group or transactional id; look the coordinator up again.",
    )
    INVALID_TOPIC_EXCEPTION = (
        17,
        False,
        "The topic's name is not allowed, or the topic may not be used in this way.",
    )
    RECORD_LIST_TOO_LARGE = 18, False, "The batch is larger than a segment of the topic."
    NOT_ENOUGH_REPLICAS = 19, True, "Too few replicas are in sync to take the records; nothing was written."
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        True,
        "The records were written, and then too few replicas were in sync to confirm them.",
    )
    INVALID_REQUIRED_ACKS = 21, False, "acks must be -1, 0 or 1."
    ILLEGAL_GENERATION = (
        22,
        False,
        "The member speaks for a generation of the group that is over; join again.",
    )
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "The member shares no protocol with the rest of the group."
    INVALID_GROUP_ID = 24, False, "The group id is not allowed."
    UNKNOWN_MEMBER_ID = 25, False, "The group has no such member; join again."
    INVALID_SESSION_TIMEOUT = 26, False, "The session timeout is outside the broker's limits."
    REBALANCE_IN_PROGRESS = 27, False, "The group is being balanced; join again."
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "The offsets are too large to be committed in one record."
    TOPIC_AUTHORIZATION_FAILED = 29, False, "This user may not do that with the topic."
    GROUP_AUTHORIZATION_FAILED = 30, False, "This user may not do that with the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "This user may not do that with the cluster."
    INVALID_TIMESTAMP = (
        32,
        False,
        "A record's timestamp is further from the broker's clock than the topic allows.",
    )
    UNSUPPORTED_SASL_MECHANISM = 33, False, "Choose a SASL mechanism from those in this answer."
    ILLEGAL_SASL_STATE = 34, False, "The request does not fit the state of the SASL exchange."
    UNSUPPORTED_VERSION = 35, False, "The broker does not speak that version of the request."
    TOPIC_ALREADY_EXISTS = 36, False, "There is already a topic of that name."
    INVALID_PARTITIONS = 37, False, "The number of partitions is not allowed."
    INVALID_REPLICATION_FACTOR = (
        38,
        False,
        "There are not enough brokers for that many replicas, or none was asked for.",
    )
    INVALID_REPLICA_ASSIGNMENT = 39, False, "The brokers chosen for the replicas do not fit."
    INVALID_CONFIG = 40, False, "A setting is unknown or its value is not allowed."
    NOT_CONTROLLER = 41, True, "Another broker is the controller."
    INVALID_REQUEST = 42, False, "The request contradicts itself or lacks something."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "The format of the records does not allow that."
    POLICY_VIOLATION = 44, False, "A policy of the cluster forbids that."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "A batch of the producer is missing before this one."
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "The broker has already taken a batch with that sequence number."
    INVALID_PRODUCER_EPOCH = 47, False, "The producer's epoch is older than the one the broker has seen."
    INVALID_TXN_STATE = 48, False, "The transaction is in a state that does not allow that."
    INVALID_PRODUCER_ID_MAPPING = 49, False, "The producer id does not belong to the transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, False, "The transaction timeout is above transaction.max.timeout.ms."
    CONCURRENT_TRANSACTIONS = (
        51,
        True,
        "The previous transaction of this id is still ending; try again shortly.",
    )
    TRANSACTION_COORDINATOR_FENCED = 52, False, "A newer coordinator has taken the transaction over."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "This user may not use the transactional id."
    SECURITY_DISABLED = 54, False, "The broker runs without the security feature asked for."
    OPERATION_NOT_ATTEMPTED = 55, False, "Nothing was tried, because another part of the request failed."
    KAFKA_STORAGE_ERROR = 56, True, "The disk that holds the partition failed."
    LOG_DIR_NOT_FOUND = 57, False, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, False, "The credentials were not accepted."
    UNKNOWN_PRODUCER_ID = 59, False, "The broker remembers no batch of that producer."
    REASSIGNMENT_IN_PROGRESS = 60, False, "The partition is already being moved."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "Delegation tokens are switched off."
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "The delegation token belongs to another user."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        False,
        "Delegation tokens cannot be managed over this kind of connection.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "This user may not manage the delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, False, "The time of the delegation token is over."
    INVALID_PRINCIPAL_TYPE = 67, False, "The kind of principal is not supported."
    NON_EMPTY_GROUP = 68, False, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, False, "There is no such group."
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "The broker no longer keeps that fetch session; begin a new one."
    INVALID_FETCH_SESSION_EPOCH = 71, True, "The fetch session is at another step; begin a new one."
    LISTENER_NOT_FOUND = 72, True, "The leader has no address on the listener this client uses."
    TOPIC_DELETION_DISABLED = 73, False, "Topics cannot be deleted while delete.topic.enable is false."
    FENCED_LEADER_EPOCH = (
        74,
        True,
        "The request names an older leader epoch than the partition has; refresh the metadata.",
    )
    UNKNOWN_LEADER_EPOCH = (
        75,
        True,
        "The request names a newer leader epoch than this broker has; try again shortly.",
    )
    UNSUPPORTED_COMPRESSION_TYPE = 76, False, "The compression cannot be read by this version of the request."
    STALE_BROKER_EPOCH = 77, False, "The broker has registered again since that epoch."
    OFFSET_NOT_AVAILABLE = 78, True, "The new leader does not know its high watermark yet; try again shortly."
    MEMBER_ID_REQUIRED = 79, False, "Join again with the member id that came with this answer."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "The preferred replica cannot lead now."
    GROUP_MAX_SIZE_REACHED = 81, False, "The group has as many members as it may have."
    FENCED_INSTANCE_ID = 82, False, "Another member has taken over that static member's name."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "No replica may lead the partition now."
    ELECTION_NOT_NEEDED = 84, True, "The partition already has the leader asked for."
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "The partition is not being moved."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "Offsets cannot be deleted while the group reads that topic."
    INVALID_RECORD = 87, False, "A record breaks a rule of the topic or of the format."
    UNSTABLE_OFFSET_COMMIT = 88, True, "An offset waits for its transaction to end; try again shortly."
    THROTTLING_QUOTA_EXCEEDED = 89, True, "The quota is used up; try again after the throttle time."
    PRODUCER_FENCED = (
        90,
        False,
        "Another producer has started with this transactional id; this one must stop.",
    )
    RESOURCE_NOT_FOUND = 91, False, "The thing the request speaks of does not exist."
    DUPLICATE_RESOURCE = 92, False, "The request names the same thing twice."
    UNACCEPTABLE_CREDENTIAL = 93, False, "The credential does not meet the rules."
    INCONSISTENT_VOTER_SET = 94, False, "The two sides disagree on who votes."
    INVALID_UPDATE_VERSION = 95, False, "The update is based on a version that is no longer current."
    FEATURE_UPDATE_FAILED = 96, False, "The features could not be changed; the broker's log says why."
    PRINCIPAL_DESERIALIZATION_FAILURE = (
        97,
        False,
        "The forwarded request names its user in an unreadable way.",
    )
    SNAPSHOT_NOT_FOUND = 98, False, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, False, "The snapshot has no such position."
    UNKNOWN_TOPIC_ID = 100, True, "This broker knows no topic of that id."
    DUPLICATE_BROKER_REGISTRATION = 101, False, "A living broker already has that id."
    BROKER_ID_NOT_REGISTERED = 102, False, "No broker of that id has registered."
    INCONSISTENT_TOPIC_ID = 103, True, "The topic's id in the log differs from the one in the request."
    INCONSISTENT_CLUSTER_ID = 104, False, "The request is meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = (
        106,
        True,
        "The fetch session mixes topic names and topic ids; begin a new one.",
    )
    INELIGIBLE_REPLICA = 107, False, "A replica may not join the in-sync set now."
    NEW_LEADER_ELECTED = 108, False, "The change was made, and leadership went to another broker."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "The offset is only in tiered storage now."
    FENCED_MEMBER_EPOCH = (
        110,
        False,
        "The member's epoch is not the group's; give up all partitions and join again.",
    )
    UNRELEASED_INSTANCE_ID = 111, False, "A member still uses that static name."
    UNSUPPORTED_ASSIGNOR = 112, False, "The group does not know that assignor."
    STALE_MEMBER_EPOCH = 113, False, "The member's epoch is old; try again after the next heartbeat."
    MISMATCHED_ENDPOINT_TYPE = (
        114,
        False,
        "The request came to a broker and is for a controller, or the other way round.",
    )
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "That kind of endpoint is not known."
    UNKNOWN_CONTROLLER_ID = 116, False, "There is no controller of that id."
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "The client's metrics subscription is out of date; fetch it again."
    TELEMETRY_TOO_LARGE = 118, False, "The pushed metrics are larger than telemetry.max.bytes."
    INVALID_REGISTRATION = 119, False, "The controller did not accept the registration."
    TRANSACTION_ABORTABLE = 120, False, "The transaction cannot go on and must be aborted."
    INVALID_RECORD_STATE = 121, False, "The record is not in a state that allows that acknowledgement."
    SHARE_SESSION_NOT_FOUND = 122, True, "The broker no longer keeps that share session; begin a new one."
    INVALID_SHARE_SESSION_EPOCH = 123, True, "The share session is at another step; begin a new one."
    FENCED_STATE_EPOCH = 124, False, "A newer owner has taken over the share state."
    INVALID_VOTER_KEY = 125, False, "The voter's key does not belong to this node."
    DUPLICATE_VOTER = 126, False, "The node votes already."
    VOTER_NOT_FOUND = 127, False, "The node is not a voter."
    INVALID_REGULAR_EXPRESSION = 128, False, "The regular expression cannot be read."
    REBOOTSTRAP_REQUIRED = 129, False, "The client must start over from its bootstrap servers."
    STREAMS_INVALID_TOPOLOGY = 130, False, "The topology of the streams group is not allowed."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "The topology's epoch is not allowed."
    STREAMS_TOPOLOGY_FENCED = 132, False, "The member runs an older topology than its group."
    SHARE_SESSION_LIMIT_REACHED = (
        133,
        True,
        "The broker keeps as many share sessions as it may; try again shortly.",
    )


_BY_NUMBER = {int(code): code for code in ErrorCode}


def error_of(number: int) -> ErrorCode:
    """The code with that number; a number that we do not know, from a newer peer, is an unknown error."""
    return _BY_NUMBER.get(number, ErrorCode.UNKNOWN_SERVER_ERROR)


# Messages repeat names that clients choose, and a string of the protocol has at most 32,767 bytes.
MESSAGE_CHARACTERS_MAX = 1000


def shortened(message: str) -> str:
    """The message, or its beginning if it is very long."""
    return message if len(message) <= MESSAGE_CHARACTERS_MAX else message[:MESSAGE_CHARACTERS_MAX] + "..."


class KafkaError(Exception):
    """An error with a Kafka code; `message` is sent to the peer; by default it is the code's own text."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        self.code = code
        self.message = shortened(message) if message is not None else code.text
        super().__init__(f"{code.name}: {self.message}")

    def as_result(self) -> Self:
        """The error without its traceback, to be kept among other results. With it, the results and the error
        would be a cycle, which only the garbage collector can free."""
        return self.with_traceback(None)

    @property
    def retriable(self) -> bool:
        return self.code.retriable


class KafkaTimeoutError(KafkaError, TimeoutError):
    """The time limit of the method is over."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class DisconnectedError(KafkaError):
    """The connection was closed before the answer came."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class UnsupportedVersionError(KafkaError):
    """The peer does not serve the request, or no version of it that this side knows."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)


class AuthenticationError(KafkaError):
    """The broker does not accept who we are, or we do not accept who it is. Trying again does not help: the
    settings must be changed first."""

    def __init__(
        self, message: str | None = None, code: ErrorCode = ErrorCode.SASL_AUTHENTICATION_FAILED
    ) -> None:
        super().__init__(code, message)

    def __str__(self) -> str:
        return self.message

    @property
    def retriable(self) -> bool:
        return False


class ClosedError(RuntimeError):
    """The client is closed and cannot be used any more."""
