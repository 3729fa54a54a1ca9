"""What leaders and followers do together, step by step: the high watermark, and what epochs prevent."""

from pathlib import Path

from tests.unit.replication.following.small_cluster import TOPIC, SmallCluster, story

from barnabas.metadata.records import PartitionRecord, RemoveTopicRecord

A, B, C = 1, 2, 3


def test_high_watermark_and_log_end_step_by_step(tmp_path: Path) -> None:
    """The example T1 to T4: the follower learns the high watermark one fetch after the records."""
    cluster = SmallCluster(tmp_path)
    leader, follower = cluster.nodes[A], cluster.nodes[B]

    def remote_log_end() -> int:
        leading = leader.partition().leading
        assert leading is not None
        return leading.followers[B].end_offset

    async def tell() -> None:
        # T1: nothing is written. The follower has fetched once.
        await cluster.fetch()
        assert leader.state == (0, 0) and remote_log_end() == 0
        assert follower.state == (0, 0)
        # T2: a producer sends one message.
        leader.append(b"m")
        assert leader.state == (0, 1) and remote_log_end() == 0
        assert follower.state == (0, 0)
        # T3: the follower fetches from offset 0; the answer has the message and the high watermark 0.
        await cluster.fetch()
        assert leader.state == (0, 1) and remote_log_end() == 0
        assert follower.state == (0, 1)
        # T4: the follower fetches from offset 1; now the leader knows that both have the message.
        await cluster.fetch()
        assert leader.state == (1, 1) and remote_log_end() == 1
        assert follower.state == (1, 1)

    story(cluster, tell)


def test_a_follower_that_restarts_before_it_knows_the_high_watermark_loses_nothing(tmp_path: Path) -> None:
    """The first loss: truncating to the high watermark. B has both messages, but knows the high watermark 1
    only. B restarts, then A dies, and B leads: the message at offset 1 must still be there."""
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        a.append(b"m0")
        await cluster.fetch(3)
        a.append(b"m1")
        await cluster.fetch(2)
        # A's answer to the second fetch is lost: only A knows that both have m1.
        exchange = cluster.exchanges.pop()
        a.answer(B, exchange.request)
        assert a.state == (2, 2) and b.log.log_end_offset == 2
        await cluster.restart(B)
        await cluster.stop(A)
        await cluster.elect(B, isr=(B,))
        assert b.values() == [b"m0", b"m1"]
        b.append(b"m2")
        assert b.log.leader_epochs.entries == [(0, 0), (1, 2)]
        # A comes back, and has nothing to truncate either.
        await cluster.restart(A)
        await cluster.fetch(3)
        assert a.values() == b.values() == [b"m0", b"m1", b"m2"]

    story(cluster, tell)


def test_logs_that_diverged_are_made_equal_by_the_epochs(tmp_path: Path) -> None:
    """The second loss: A wrote a message that B never got; B leads and writes another one at the same offset.
    A comes back: both must hold B's."""
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        a.append(b"m0")
        await cluster.fetch(3)
        a.append(b"only A has it")
        a.append(b"this too")
        await cluster.stop(A)
        await cluster.elect(B, isr=(B,))
        b.append(b"written by B")
        await cluster.restart(A)
        assert a.values() == [b"m0", b"only A has it", b"this too"]
        await cluster.fetch(3)
        assert a.values() == b.values() == [b"m0", b"written by B"]
        assert a.log.leader_epochs.entries == b.log.leader_epochs.entries == [(0, 0), (1, 1)]

    story(cluster, tell)


def test_two_failovers_in_a_row_leave_no_divergence(tmp_path: Path) -> None:
    """KIP-279: A leads, B leads, A leads again; each wrote something that the other never got. C has to ask
    with smaller and smaller epochs."""
    cluster = SmallCluster(tmp_path, brokers=3)
    a, b, c = (cluster.nodes[each] for each in (A, B, C))

    async def tell() -> None:
        a.append(b"common")
        await cluster.fetch(3)
        await cluster.elect(B)
        b.append(b"b1")
        b.append(b"b2")
        # Only C gets what B wrote.
        exchange = next(each for each in cluster.exchanges if each.follower == C and each.leader == B)
        cluster.exchanges = [each for each in cluster.exchanges if each.leader != B]
        cluster.deliver(exchange)
        await cluster.settle()
        await cluster.stop(B)
        await cluster.elect(A)
        a.append(b"a1")
        a.append(b"a2")
        a.append(b"a3")
        await cluster.fetch(4)
        assert c.values() == a.values() == [b"common", b"a1", b"a2", b"a3"]
        await cluster.restart(B)
        await cluster.fetch(4)
        assert b.values() == a.values()
        assert [each.log.leader_epochs.entries for each in (a, b, c)] == [a.log.leader_epochs.entries] * 3

    story(cluster, tell)


def test_a_follower_that_fell_out_of_the_log_starts_where_the_leader_does(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path, segment_bytes=300)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        a.append(b"old")
        await cluster.fetch(2)
        await cluster.stop(B)
        await cluster.elect(A, isr=(A,))
        for number in range(10):
            a.append(b"n%d" % number)
        a.log.delete_records_before(6)
        await cluster.restart(B)
        await cluster.fetch(4)
        assert b.log.log_start_offset == 6
        assert b.values() == a.values() == [b"n%d" % number for number in range(5, 10)]

    story(cluster, tell)


def test_a_log_start_inside_a_batch_is_followed(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        await cluster.stop(B)
        await cluster.elect(A, isr=(A,))
        a.append(b"m0", b"m1", b"m2")
        a.append(b"m3")
        a.log.delete_records_before(1)
        await cluster.restart(B)
        await cluster.fetch(4)
        assert (b.log.log_start_offset, b.log.log_end_offset) == (1, 4)
        assert b.values() == a.values() == [b"m1", b"m2", b"m3"]

    story(cluster, tell)


def test_a_follower_moves_its_log_start_with_the_leader(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        for _ in range(4):
            a.append(b"m")
        await cluster.fetch(3)
        a.log.delete_records_before(3)
        await cluster.fetch()
        assert b.log.log_start_offset == 3
        await cluster.fetch()
        leading = a.partition().leading
        assert leading is not None and leading.low_watermark == 3

    story(cluster, tell)


def test_an_answer_of_the_old_leader_is_not_taken_after_an_election(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path, brokers=3)
    a, c = cluster.nodes[A], cluster.nodes[C]

    async def tell() -> None:
        a.append(b"late")
        late = next(each for each in cluster.exchanges if each.follower == C)
        answer = a.answer(C, late.request)
        await cluster.elect(B)
        late.answer.set_result(answer)
        await cluster.settle()
        assert c.log.log_end_offset == 0

    story(cluster, tell)


def test_an_answer_for_a_deleted_topic_does_not_touch_the_new_one_of_that_name(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        a.append(b"of the old topic")
        late = cluster.exchanges.pop()
        answer = a.answer(B, late.request)
        cluster.apply(RemoveTopicRecord(cluster.image.topics[TOPIC].id))
        cluster.apply(*cluster.topic(b"n" * 16, 1, leader=A))
        late.answer.set_result(answer)
        await cluster.settle()
        assert b.log.log_end_offset == 0
        a.append(b"of the new topic")
        await cluster.fetch(3)
        assert b.values() == a.values() == [b"of the new topic"]

    story(cluster, tell)


def test_a_leader_that_is_elected_takes_nothing_from_the_old_one(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        a.append(b"late")
        late = cluster.exchanges.pop()
        answer = a.answer(B, late.request)
        await cluster.elect(B, isr=(B,))
        b.append(b"new")
        late.answer.set_result(answer)
        await cluster.settle()
        assert b.values() == [b"new"]

    story(cluster, tell)


def test_one_partition_that_fails_does_not_delay_the_others(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        # A does not know yet that it leads partition 0 in epoch 5.
        topic = cluster.image.topics[TOPIC]
        changed = PartitionRecord(topic.id, 0, (A, B), (A, B), A, leader_epoch=5, partition_epoch=1)
        cluster.apply(changed, to=(B,))
        await cluster.settle()
        a.append(b"zero")
        a.append(b"one", index=1)
        await cluster.fetch(3)
        assert b.values(1) == [b"one"] and b.values(0) == []
        assert b.following.failed_partitions == 1
        # The leader may not wait for records of partition 1 for longer than until 0 is tried again.
        (exchange,) = cluster.exchanges
        assert exchange.request.max_wait_ms <= 10
        a.take(cluster.image)
        cluster.clock.advance(1000)
        await cluster.fetch(3)
        assert b.values(0) == [b"zero"]
        assert b.following.failed_partitions == 0

    story(cluster, tell, partitions=2)


def test_a_fenced_epoch_waits_for_newer_metadata(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        topic = cluster.image.topics[TOPIC]
        cluster.apply(PartitionRecord(topic.id, 0, (A, B), (A, B), A, 5, 1), to=(A,))
        a.append(b"m")
        await cluster.fetch(2)
        cluster.clock.advance(60_000)
        await cluster.fetch(2)
        assert b.values() == [] and cluster.exchanges == []
        b.take(cluster.image)
        await cluster.settle()
        await cluster.fetch(2)
        assert b.values() == [b"m"]

    story(cluster, tell)


def test_producer_state_is_complete_the_moment_a_follower_leads(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    a, b = cluster.nodes[A], cluster.nodes[B]

    async def tell() -> None:
        a.append_as_producer(7, 0, b"t0", transactional=True)
        a.append_as_producer(7, 1, b"t1", transactional=True)
        await cluster.fetch(3)
        await cluster.elect(B)
        assert b.log.producers.entries[7].last_sequence == 1
        assert b.partition().last_stable_offset == 0
        assert b.log.producers.ongoing == {0: 7}

    story(cluster, tell)


def test_a_replica_whose_directory_failed_is_not_fetched(tmp_path: Path) -> None:
    """A fetch would tell the leader that the replica has everything, and it would join the ISR again."""
    cluster = SmallCluster(tmp_path)
    b = cluster.nodes[B]

    async def tell() -> None:
        await cluster.fetch(2)
        b.log.go_offline()
        b.replicas.leave_offline()
        await cluster.fetch(2)
        assert cluster.exchanges == []
        await cluster.elect(A, isr=(A,))
        assert cluster.exchanges == []

    story(cluster, tell)


def test_records_are_committed_without_a_replica_that_was_taken_out_of_the_isr(tmp_path: Path) -> None:
    """Its last fetch is not old, so it would count as one that is about to join again."""
    cluster = SmallCluster(tmp_path, brokers=3)
    a = cluster.nodes[A]

    async def tell() -> None:
        await cluster.fetch(2)
        cluster.nodes[C].log.go_offline()
        cluster.nodes[C].replicas.leave_offline()
        cluster.exchanges = [each for each in cluster.exchanges if each.follower != C]
        a.append(b"m")
        await cluster.fetch(2)
        assert a.state == (0, 1)
        topic = cluster.image.topics[TOPIC]
        cluster.apply(PartitionRecord(topic.id, 0, (A, B, C), (A, B), A, 0, 1))
        assert a.state == (1, 1)

    story(cluster, tell)


def test_a_leader_whose_directory_failed_does_not_take_its_followers_out_of_the_isr(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)
    leader = cluster.nodes[A]

    async def tell() -> None:
        await cluster.fetch(2)
        leader.append(b"m")
        leader.log.go_offline()
        cluster.clock.advance(60_000)
        leader.partition().check_in_sync()
        leading = leader.partition().leading
        assert leading is not None and leading.proposal is None

    story(cluster, tell)
