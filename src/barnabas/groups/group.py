"""What the machine needs from a group, whichever protocol its members use."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from barnabas.coordination.step import JournalRecord
from barnabas.wire.messages.offset_commit import OffsetCommitRequestTopic
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequestTopic

CommittedTopics: TypeAlias = Sequence[OffsetCommitRequestTopic] | Sequence[TxnOffsetCommitRequestTopic]


class Committer(NamedTuple):
    """The member that commits or fetches offsets, and what it commits. All fields may be empty."""

    member_id: str = ""
    instance_id: str | None = None
    # The generation of a classic member, or the epoch of a member of the KIP-848 protocol.
    generation: int = -1
    topics: CommittedTopics = ()

    @property
    def is_anonymous(self) -> bool:
        return self.generation < 0 and not self.member_id and self.instance_id is None


class Group(Protocol):
    """A classic group or a consumer group. The checks raise KafkaError with the client's error code."""

    @property
    def group_id(self) -> str: ...

    @property
    def state_name(self) -> str:
        """As DescribeGroups and ListGroups print it: Stable, Empty, PreparingRebalance, Assigning …"""
        ...

    @property
    def protocol_type(self) -> str:
        """ "consumer" for consumers, "" for a group that has only the offsets of consumers in no group."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether there are no members: then the group may be deleted, expire, or change its protocol."""
        ...

    def check_commit(self, committer: Committer, *, transactional: bool, version: int) -> None: ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def retention_start_ms(self, commit_ms: int) -> int | None:
        """When the retention time of an offset begins that was committed at `commit_ms`; None: never."""
        ...

    def tombstones(self) -> list[JournalRecord]:
        """The records that remove the group from the journal, without its offsets."""
        ...
