"""Where a follower cuts its log when it has records that its leader does not have.

The leader has answered a fetch with the largest epoch it knows that is not above the follower's last one, and
where that epoch ends. The high watermark never decides: a follower learns it late, and cutting there loses
committed records (KIP-101)."""

from barnabas.log.leader_epochs import UNDEFINED_OFFSET
from barnabas.log.log import Log


def offset_to_keep(log: Log, leader_epoch: int, leader_end_offset: int) -> int:
    """The offset from which the follower removes its records.

    If the follower does not know the leader's epoch, only its later epochs are removed. Its next fetch then
    names an older epoch, and the leader answers that one (KIP-279)."""
    end_offset: int = log.log_end_offset
    if leader_end_offset < 0:
        return end_offset
    known_epoch, known_end = log.end_offset_for_epoch(leader_epoch)
    if known_end == UNDEFINED_OFFSET:
        return min(leader_end_offset, end_offset)
    if known_epoch != leader_epoch:
        return min(known_end, end_offset)
    return min(known_end, leader_end_offset, end_offset)
