"""What groups get from the broker: their configuration, with Kafka's defaults, and a view of the topics."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from barnabas.config.group import GroupConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import Uuid

# Whether a group may change between the classic and the consumer protocol while it has members.
MigrationPolicy: TypeAlias = Literal["bidirectional", "upgrade", "downgrade", "disabled"]

_INT32_MAX = 2**31 - 1
_WEEK_MS = 7 * 24 * 3600 * 1000
# Smaller records are checked by the journal only: what is done for them takes no time.
_LARGE_RECORD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class GroupSettings:
    # Classic protocol.
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = _INT32_MAX

    # Offsets.
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = _WEEK_MS

    # The protocol of KIP-848.
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    # Gives the dynamic configuration of one group by its id. Without it the two values above are for all.
    of_group: Callable[[str], GroupConfig] | None = None
    consumer_max_size: int = _INT32_MAX
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_regex_refresh_interval_ms: int = 600_000
    migration_policy: MigrationPolicy = "bidirectional"

    # Gives the size that a record of the journal may have now. Without it there is no limit.
    record_bytes_max: Callable[[], int] | None = None

    def check_session_timeout(self, timeout_ms: int) -> None:
        """Check the session timeout of a classic member that joins."""
        if not self.min_session_timeout_ms <= timeout_ms <= self.max_session_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)

    def check_record(self, size: int) -> None:
        """Refuse what has too many bytes for a record of the journal, before work is done for it. The client
        gets the same error as when the journal refuses the record."""
        if size < _LARGE_RECORD_BYTES or self.record_bytes_max is None:
            return
        limit = self.record_bytes_max()
        if size > limit:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"{size} bytes are too many: max.message.bytes of __consumer_offsets is {limit}",
            )

    def consumer_config(self, group_id: str) -> GroupConfig:
        """The current configuration of a group. It may change at any time, so do not keep it."""
        if self.of_group is None:
            return GroupConfig(self.consumer_session_timeout_ms, self.consumer_heartbeat_interval_ms)
        return self.of_group(group_id)


class TopicsView(Protocol):
    """The newest topics of the cluster. They may change at any time, so do not keep an answer."""

    def partition_count(self, topic: str) -> int | None: ...

    def topic_id(self, topic: str) -> Uuid | None: ...

    def topic_name(self, topic_id: Uuid) -> str | None: ...

    def names(self) -> Iterable[str] | None:
        """The topics that the member whose request is decided may see. None if rights matter and there is no
        such member."""
        ...
