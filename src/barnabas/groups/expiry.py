"""Which offsets have been kept long enough."""

from typing import NamedTuple

from barnabas.coordination.step import JournalRecord
from barnabas.groups.group import Group
from barnabas.groups.offsets import NO_EXPIRY, CommittedOffset, OffsetStore, offset_tombstone


class Expired(NamedTuple):
    records: list[JournalRecord]
    # Nothing of the group's stays and no transaction is about to add to it: an empty group may go too.
    is_everything: bool


def expired_offsets(group: Group, store: OffsetStore, retention_ms: int, now_ms: int) -> Expired:
    """Offsets of topics that the group still reads stay, and so do those an open transaction is at."""
    records = []
    stay = 0
    for partition, committed in store.of_group(group.group_id):
        is_in_use = group.is_subscribed_to(partition.topic) or store.is_pending(group.group_id, partition)
        if is_in_use or not _is_expired(group, committed, retention_ms, now_ms):
            stay += 1
        else:
            records.append(offset_tombstone(group.group_id, partition))
    return Expired(records, stay == 0 and not store.has_open_transactions(group.group_id))


def _is_expired(group: Group, committed: CommittedOffset, retention_ms: int, now_ms: int) -> bool:
    start_ms = group.retention_start_ms(committed.commit_ms)
    if start_ms is None:
        return False
    if committed.expire_ms != NO_EXPIRY:
        return now_ms >= committed.expire_ms
    return now_ms - start_ms >= retention_ms
