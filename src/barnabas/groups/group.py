"""What the shard asks of a group, whichever protocol its members speak."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from barnabas.coordination.step import JournalRecord
from barnabas.wire.messages.offset_commit import OffsetCommitRequestTopic
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequestTopic

CommittedTopics: TypeAlias = Sequence[OffsetCommitRequestTopic] | Sequence[TxnOffsetCommitRequestTopic]


class Committer(NamedTuple):
    """Who commits or fetches offsets, as the request says; nobody in particular where it says nothing."""

    member_id: str = ""
    instance_id: str | None = None
    # The generation of a classic member, the member epoch of one that speaks KIP-848.
    generation: int = -1
    # What it commits.
    topics: CommittedTopics = ()

    @property
    def is_anonymous(self) -> bool:
        return self.generation < 0 and not self.member_id and self.instance_id is None


class Group(Protocol):
    """Both kinds of groups. The checks raise KafkaError with the error that the client is to see."""

    @property
    def group_id(self) -> str: ...

    @property
    def state_name(self) -> str:
        """As DescribeGroups and ListGroups print it: Stable, Empty, PreparingRebalance, Assigning …"""
        ...

    @property
    def protocol_type(self) -> str:
        """ "consumer" for consumers, "" for a group that only holds the offsets of simple consumers."""
        ...

    @property
    def is_empty(self) -> bool:
        """No members: the group may be deleted, its offsets may expire, and it may change its kind."""
        ...

    def check_commit(self, committer: Committer, *, transactional: bool, version: int) -> None: ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None: ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def retention_start_ms(self, commit_ms: int) -> int | None:
        """From when an offset committed at `commit_ms` is kept for offsets.retention; None: it stays."""
        ...

    def tombstones(self) -> list[JournalRecord]:
        """What removes the group from the journal, its offsets apart."""
        ...
