"""A leader and its followers: high watermark, in-sync replicas, and the controller's answers."""

import dataclasses

import pytest
from tests.unit.replication.conftest import LAG_MS, ME, OTHER, THIRD, Held

from barnabas.errors import ErrorCode, KafkaError
from barnabas.ids import TopicPartition
from barnabas.metadata.parts import PartitionImage
from barnabas.metadata.records import BrokerRecord, PartitionRecord, TopicRecord
from barnabas.replication.partition import Partition
from barnabas.replication.ports import IsrProposal
from barnabas.replication.throttling import RateLimit

ALL = (ME, OTHER, THIRD)
EPOCHS = {ME: 11, OTHER: 12, THIRD: 13}


class Story:
    """A partition with three replicas that this broker leads under epoch 3."""

    def __init__(self, held: Held, isr: tuple[int, ...] = ALL, min_isr: int = 1) -> None:
        self.held = held
        self.isr_epoch = 0
        brokers = [BrokerRecord(broker, epoch, b"i" * 16, ()) for broker, epoch in EPOCHS.items()]
        topic_id = b"story".ljust(16, b"-")
        placed = PartitionRecord(topic_id, 0, ALL, isr, ME, leader_epoch=3)
        held.apply(*brokers, TopicRecord("story", topic_id), placed)
        self.partition: Partition = held.partition("story")
        if min_isr > 1:
            config = dataclasses.replace(self.partition.log.config, min_insync_replicas=min_isr)
            self.partition.update_config(config)

    def append(self, count: int = 1) -> None:
        self.held.append(self.partition, count)

    def fetch(self, broker: int, offset: int, epoch: int | None = None, log_start: int = 0) -> None:
        self.partition.record_fetch(broker, EPOCHS[broker] if epoch is None else epoch, offset, log_start)

    def pass_ms(self, milliseconds: int) -> None:
        self.held.clock.advance(milliseconds)

    def check(self) -> None:
        self.partition.check_in_sync()

    def follow(self, isr: tuple[int, ...], **changes: int) -> None:
        """Metadata with a new ISR."""
        image = PartitionImage(ALL, isr, ME, 3, self.partition.partition_epoch + 1)
        self.partition.follow(dataclasses.replace(image, **changes))

    def fence(self, broker: int) -> None:
        self.held.apply(BrokerRecord(broker, EPOCHS[broker], b"i" * 16, (), fenced=True))

    def accept(self) -> None:
        partition, proposal = self.held.proposals.made[-1]
        partition.isr_accepted(proposal, proposal.members, proposal.partition_epoch + 1)

    def refuse(self, code: ErrorCode) -> None:
        partition, proposal = self.held.proposals.made[-1]
        partition.isr_refused(proposal, code)

    @property
    def high_watermark(self) -> int:
        return self.partition.high_watermark

    @property
    def proposed(self) -> list[tuple[int, ...]]:
        return self.held.proposals.members


# ---- the high watermark


def test_the_high_watermark_is_the_least_end_of_the_isr(held: Held) -> None:
    story = Story(held)
    story.append(5)
    story.fetch(OTHER, 5)
    assert story.high_watermark == 0
    story.fetch(THIRD, 3)
    assert story.high_watermark == 3
    story.fetch(THIRD, 5)
    assert story.high_watermark == 5


def test_a_fetch_wakes_those_who_wait_for_the_offset_in_the_same_turn(held: Held) -> None:
    story = Story(held)
    outcomes: list[bool] = []
    story.append()
    story.partition.committed.when(1, outcomes.append)
    story.fetch(OTHER, 1)
    assert outcomes == []
    story.fetch(THIRD, 1)
    assert outcomes == [True]


def test_the_high_watermark_never_goes_back(held: Held) -> None:
    """A follower that lost its tail fetches again from an earlier offset."""
    story = Story(held)
    story.append(5)
    story.fetch(OTHER, 5)
    story.fetch(THIRD, 5)
    story.fetch(THIRD, 2)
    assert story.high_watermark == 5


def test_a_follower_outside_the_isr_that_is_far_behind_does_not_count(held: Held) -> None:
    story = Story(held, isr=(ME, OTHER))
    story.append(5)
    story.fetch(OTHER, 5)
    story.fetch(THIRD, 1)
    story.append()
    story.fetch(OTHER, 6)
    assert story.high_watermark == 6


def test_the_high_watermark_waits_for_a_follower_that_is_about_to_join(held: Held) -> None:
    """Otherwise a follower of a busy partition could never reach it."""
    story = Story(held, isr=(ME,))
    story.append(2)
    assert story.high_watermark == 2
    assert story.partition.permit().commits_at_once
    story.fetch(OTHER, 2)
    story.append(2)
    assert story.high_watermark == 2
    assert not story.partition.permit().commits_at_once


def test_the_high_watermark_does_not_wait_for_a_follower_whose_broker_is_fenced(held: Held) -> None:
    story = Story(held, isr=(ME,))
    story.fetch(OTHER, 0)
    story.refuse(ErrorCode.INELIGIBLE_REPLICA)
    story.append(2)
    assert story.high_watermark == 0
    story.fence(OTHER)
    assert story.high_watermark == 2
    assert story.partition.permit().commits_at_once


def test_the_high_watermark_does_not_wait_for_a_follower_that_stopped_fetching(held: Held) -> None:
    story = Story(held, isr=(ME,))
    story.fetch(OTHER, 0)
    story.refuse(ErrorCode.INELIGIBLE_REPLICA)
    story.append(2)
    story.pass_ms(LAG_MS + 1)
    story.check()
    assert story.high_watermark == 2


def test_below_min_isr_the_high_watermark_does_not_move(held: Held) -> None:
    story = Story(held, isr=(ME,), min_isr=2)
    story.append(2)
    assert story.high_watermark == 0
    assert not story.partition.permit().commits_at_once
    story.fetch(OTHER, 2)
    assert story.high_watermark == 0
    story.accept()
    assert story.high_watermark == 2


def test_a_smaller_min_isr_commits_what_waited(held: Held) -> None:
    story = Story(held, isr=(ME,), min_isr=2)
    story.append(2)
    story.partition.update_config(dataclasses.replace(story.partition.log.config, min_insync_replicas=1))
    assert story.high_watermark == 2
    assert story.partition.permit().commits_at_once


def test_a_permit_is_withdrawn_when_the_leader_is_not_alone_any_more(held: Held) -> None:
    story = Story(held, isr=(ME,))
    permit = story.partition.permit()
    assert permit.commits_at_once
    story.fetch(OTHER, 0)
    assert permit.partition is None


# ---- who may fetch


def test_a_broker_that_has_no_replica_does_not_count(held: Held) -> None:
    story = Story(held)
    with pytest.raises(KafkaError) as refused:
        story.partition.record_fetch(9, 1, 0, 0)
    assert refused.value.code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_an_earlier_start_of_a_follower_does_not_count(held: Held) -> None:
    story = Story(held)
    story.append()
    with pytest.raises(KafkaError) as refused:
        story.fetch(OTHER, 1, epoch=EPOCHS[OTHER] - 1)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert story.partition.leading is not None
    assert story.partition.leading.followers[OTHER].end_offset == -1


def test_a_new_leader_epoch_forgets_how_far_the_followers_were(held: Held) -> None:
    """They may have to truncate first."""
    story = Story(held)
    story.append(2)
    story.fetch(OTHER, 2)
    story.follow(ALL, leader_epoch=4)
    story.fetch(THIRD, 2)
    assert story.high_watermark == 0
    story.fetch(OTHER, 2)
    assert story.high_watermark == 2


# ---- leaving the ISR


def test_a_follower_that_stops_fetching_is_proposed_for_removal(held: Held) -> None:
    story = Story(held)
    story.append()
    story.fetch(OTHER, 1)
    story.pass_ms(LAG_MS)
    story.check()
    assert story.proposed == []
    story.fetch(OTHER, 1)
    story.pass_ms(1)
    story.check()
    assert story.proposed == [(ME, OTHER)]
    assert story.high_watermark == 0
    story.accept()
    assert (story.partition.isr, story.high_watermark) == ((ME, OTHER), 1)
    assert held.replicas.surroundings.isr_shrinks == 1


def test_a_follower_that_fetches_but_never_catches_up_leaves_too(held: Held) -> None:
    story = Story(held, isr=(ME, OTHER))
    story.append(10)
    for offset in range(1, 5):
        story.append(10)
        story.fetch(OTHER, offset)
        story.pass_ms(LAG_MS // 3)
    story.check()
    assert story.proposed == [(ME,)]


def test_a_follower_that_reaches_what_the_leader_had_at_its_last_fetch_stays(held: Held) -> None:
    """It is never at the very end of a busy log, but it keeps up."""
    story = Story(held, isr=(ME, OTHER))
    end = 0
    for _ in range(6):
        story.append(10)
        story.fetch(OTHER, end)
        end += 10
        story.pass_ms(LAG_MS // 3)
        story.check()
    assert story.proposed == []


def test_a_quiet_partition_keeps_its_isr(held: Held) -> None:
    story = Story(held)
    story.append()
    story.fetch(OTHER, 1)
    story.fetch(THIRD, 1)
    story.pass_ms(10 * LAG_MS)
    story.check()
    assert story.proposed == []


# ---- joining the ISR


def test_a_follower_joins_when_it_reaches_the_high_watermark(held: Held) -> None:
    story = Story(held, isr=(ME, OTHER))
    story.append(4)
    story.fetch(OTHER, 4)
    story.fetch(THIRD, 3)
    assert story.proposed == []
    story.fetch(THIRD, 4)
    assert story.proposed == [ALL]
    assert held.proposals.made[0][1] == IsrProposal(3, 0, tuple(EPOCHS.items()))
    story.accept()
    assert story.partition.isr == ALL
    assert held.replicas.surroundings.isr_expands == 1


def test_a_follower_does_not_join_below_the_start_of_the_leader_epoch(held: Held) -> None:
    """The high watermark of a new leader may be behind records that are committed."""
    story = Story(held, isr=(ME,))
    story.append(3)
    story.partition.log.high_watermark = 0
    story.follow((ME, OTHER), leader_epoch=4)
    story.fetch(THIRD, 2)
    assert story.proposed == []
    story.fetch(THIRD, 3)
    assert story.proposed == [ALL]


def test_a_fenced_follower_does_not_join(held: Held) -> None:
    story = Story(held, isr=(ME, OTHER))
    story.fence(THIRD)
    story.fetch(THIRD, 0)
    assert story.proposed == []


def test_a_follower_that_shuts_down_does_not_join(held: Held) -> None:
    story = Story(held, isr=(ME, OTHER))
    held.apply(BrokerRecord(THIRD, EPOCHS[THIRD], b"i" * 16, (), in_controlled_shutdown=True))
    story.fetch(THIRD, 0)
    assert story.proposed == []


def test_a_follower_joins_only_with_the_epoch_of_its_present_start(held: Held) -> None:
    """The metadata here does not have its new registration yet (KIP-903)."""
    story = Story(held, isr=(ME, OTHER))
    story.fetch(THIRD, 0, epoch=99)
    assert story.proposed == []


# ---- while a proposal is under way


def test_one_proposal_at_a_time(held: Held) -> None:
    story = Story(held, isr=(ME,))
    story.fetch(OTHER, 0)
    story.fetch(THIRD, 0)
    assert story.proposed == [(ME, OTHER)]
    story.accept()
    story.fetch(THIRD, 0)
    assert story.proposed[1:] == [ALL]


def test_the_larger_set_counts_until_the_answer(held: Held) -> None:
    story = Story(held, isr=(ME,))
    story.fetch(OTHER, 0)
    story.append(2)
    story.pass_ms(LAG_MS + 1)
    story.check()
    assert story.high_watermark == 0, "the replica may be in the ISR already"
    story.refuse(ErrorCode.INELIGIBLE_REPLICA)
    assert story.high_watermark == 2


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
)
def test_a_leader_that_was_overtaken_waits_for_the_metadata(held: Held, code: ErrorCode) -> None:
    story = Story(held, isr=(ME,))
    story.fetch(OTHER, 0)
    story.refuse(code)
    story.append(2)
    story.fetch(THIRD, 2)
    assert story.proposed == [(ME, OTHER)]
    assert story.high_watermark == 0
    story.follow((ME, OTHER))
    story.fetch(OTHER, 2)
    assert story.high_watermark == 2
    assert held.replicas.surroundings.failed_isr_changes == 1


def test_a_proposal_without_an_answer_is_made_again(held: Held) -> None:
    """Whether the controller has taken it is not known; the larger set goes on counting."""
    story = Story(held, isr=(ME,))
    story.fetch(OTHER, 0)
    story.refuse(ErrorCode.REQUEST_TIMED_OUT)
    assert story.proposed == [(ME, OTHER), (ME, OTHER)]
    story.append()
    assert story.high_watermark == 0


def test_metadata_overtakes_the_answer(held: Held) -> None:
    story = Story(held, isr=(ME,))
    story.fetch(OTHER, 0)
    story.follow((ME, THIRD))
    story.accept()
    assert story.partition.isr == (ME, THIRD)


def test_metadata_that_is_known_already_does_not_end_a_proposal(held: Held) -> None:
    """The controller may have taken it: the replica that would join goes on counting."""
    story = Story(held, isr=(ME,))
    story.fetch(OTHER, 0)
    story.partition.follow(held.image.topics["story"].partitions[0])
    story.append(2)
    story.fence(OTHER)
    assert story.high_watermark == 0
    story.accept()
    assert story.partition.isr == (ME, OTHER)


def test_the_answer_overtakes_the_metadata(held: Held) -> None:
    story = Story(held, isr=(ME,))
    old = held.image.topics["story"].partitions[0]
    story.fetch(OTHER, 0)
    story.accept()
    story.partition.follow(old)
    assert (story.partition.isr, story.partition.partition_epoch) == ((ME, OTHER), 1)


def test_an_answer_to_a_former_leader_changes_nothing(held: Held) -> None:
    story = Story(held, isr=(ME,))
    story.fetch(OTHER, 0)
    story.partition.follow(PartitionImage(ALL, (OTHER,), OTHER, 4, 1))
    story.accept()
    story.refuse(ErrorCode.REQUEST_TIMED_OUT)
    assert (story.partition.isr, story.partition.leading) == ((OTHER,), None)
    assert len(story.proposed) == 1


# ---- throttled replicas


def test_a_throttled_follower_waits_while_replication_is_over_the_limit(held: Held) -> None:
    story = Story(held, isr=(ME, OTHER))
    leading = story.partition.leading
    assert leading is not None
    throttle = held.replicas.surroundings.throttle = RateLimit(held.clock)
    leading.sent(100_000)
    assert not leading.must_wait(THIRD), "there is no limit"
    throttle.bytes_per_second = 1000
    leading.sent(100_000)
    assert not leading.must_wait(THIRD), "the topic names no replicas"
    config = dataclasses.replace(
        story.partition.log.config, leader_replication_throttled_replicas=(f"0:{ME}", f"1:{OTHER}")
    )
    story.partition.update_config(config)
    leading.sent(20_000)
    assert leading.must_wait(THIRD)
    assert not leading.must_wait(OTHER), "it is in the ISR and would leave it"
    story.pass_ms(30_000)
    assert not leading.must_wait(THIRD)


# ---- log starts


def test_the_low_watermark_counts_the_replicas_whose_brokers_live(held: Held) -> None:
    story = Story(held)
    story.append(5)
    for broker in (OTHER, THIRD):
        story.fetch(broker, 5)
    story.partition.delete_records_before(4)
    leading = story.partition.leading
    assert leading is not None
    outcomes: list[bool] = []
    leading.deleted.when(4, outcomes.append)
    assert leading.low_watermark == 0
    story.fetch(OTHER, 5, log_start=4)
    assert (leading.low_watermark, outcomes) == (0, [])
    story.fence(THIRD)
    assert (leading.low_watermark, outcomes) == (4, [True])


def test_a_partition_with_one_replica_keeps_no_state_of_followers(held: Held) -> None:
    topic_id = b"alone".ljust(16, b"-")
    held.apply(TopicRecord("alone", topic_id), PartitionRecord(topic_id, 0, (ME,), (ME,), ME, leader_epoch=0))
    partition = held.partition("alone")
    assert partition.leading is None
    assert partition.permit().commits_at_once
    assert partition.topic_partition == TopicPartition("alone", 0)
