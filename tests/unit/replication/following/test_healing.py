"""Damage in the middle of a log is replaced with the copy of another replica; nothing else changes."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.unit.replication.following.small_cluster import Node, SmallCluster

from barnabas.errors import DisconnectedError, ErrorCode, KafkaError
from barnabas.log.scan import CorruptRange
from barnabas.records.builder import ABORT_MARKER, control_batch
from barnabas.records.validation import trusted
from barnabas.replication.healing import Healer
from barnabas.replication.partition import Partition

A, B = 1, 2


class Reader:
    """Reads the log of another broker of the test, as a client does."""

    def __init__(self, cluster: SmallCluster) -> None:
        self._cluster = cluster
        self.is_broken = False

    async def read(self, broker_id: int, partition: Partition, offset: int, bytes_max: int) -> bytes:
        if self.is_broken:
            raise DisconnectedError("the broker is not there")
        log = self._cluster.nodes[broker_id].partition().log
        piece = log.read(offset, bytes_max, upper_offset=log.high_watermark, at_least_one=True)
        return os.pread(piece.file.fileno(), piece.size, piece.position) if piece.file else b""


def flip_bit(node: Node, offset: int, at: int) -> None:
    """Damage the batch of an offset, `at` bytes after its start."""
    segment = node.log.segments[node.log.segment_for(offset)]
    batch = segment.locate(offset)
    assert batch is not None
    path = segment.path(".log")
    data = bytearray(path.read_bytes())
    data[batch[0] + at] ^= 1
    path.write_bytes(data)


def damage_of(node: Node) -> list[CorruptRange]:
    return node.log.corrupt_ranges


async def replicated(cluster: SmallCluster, batches: int = 6) -> None:
    await cluster.start()
    for number in range(batches):
        cluster.nodes[A].append(b"value %d" % number)
    await cluster.fetch(3)


LENGTH_FIELD, BODY = 10, 65


@pytest.mark.parametrize("at", [LENGTH_FIELD, BODY])
@pytest.mark.parametrize("damaged", [A, B], ids=["leader", "follower"])
def test_damage_is_replaced_with_the_copy_of_the_other_replica(tmp_path: Path, damaged: int, at: int) -> None:
    cluster = SmallCluster(tmp_path)

    async def tell() -> None:
        await replicated(cluster)
        node = cluster.nodes[damaged]
        values = node.values()
        before = node.log.active.path(".log").read_bytes()
        flip_bit(node, 2, at)
        node.log.verify(node.log.active)
        assert len(damage_of(node)) == 1
        with pytest.raises(KafkaError) as caught:
            node.log.read(2, 1000, upper_offset=6, at_least_one=True)
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
        healer = Healer(damaged, Reader(cluster))
        await healer.heal_all([node.partition()])
        assert (damage_of(node), healer.healed, node.values()) == ([], 1, values)
        assert node.log.active.path(".log").read_bytes() == before
        await cluster.restart(damaged, clean=False)
        assert node.values() == values and not node.log.damaged
        await cluster.close()

    asyncio.run(tell())


def test_a_leader_notices_damage_that_a_follower_cannot_take(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path, brokers=3)

    async def tell() -> None:
        await cluster.start()
        a, b, c = (cluster.nodes[each] for each in (1, 2, 3))
        await cluster.fetch()
        await cluster.stop(3)
        for number in range(4):
            a.append(b"value %d" % number)
        await cluster.fetch(3)
        flip_bit(a, 1, BODY)
        await cluster.restart(3)
        for _ in range(8):
            await cluster.fetch()
            await cluster.retry(3)
        assert c.values() == [b"value 0"] and c.following.failed_partitions == 1
        assert [each.first_offset for each in damage_of(a)] == [1]
        assert b.values() == [b"value %d" % number for number in range(4)]
        # Broker 2 has a good copy.
        a.partition().raise_high_watermark(4)
        b.partition().raise_high_watermark(4)
        await Healer(A, Reader(cluster)).heal_all([a.partition()])
        await cluster.retry(3)
        await cluster.fetch(3)
        assert c.values() == a.values() == b.values()
        await cluster.close()

    asyncio.run(tell())


def test_without_a_good_copy_the_damage_stays(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)

    async def tell() -> None:
        await replicated(cluster)
        b = cluster.nodes[B]
        for node in cluster.nodes.values():
            flip_bit(node, 2, BODY)
        assert b.log.check_batch_at(2) and not b.log.check_batch_at(2)
        reader = Reader(cluster)
        healer = Healer(B, reader)
        await healer.heal_all([b.partition()])
        reader.is_broken = True
        await healer.heal_all([b.partition()])
        assert len(damage_of(b)) == 1 and healer.healed == 0
        await cluster.close()

    asyncio.run(tell())


def test_a_marker_that_was_damaged_ends_its_transaction_again(tmp_path: Path) -> None:
    cluster = SmallCluster(tmp_path)

    async def tell() -> None:
        await cluster.start()
        a, b = cluster.nodes[A], cluster.nodes[B]
        a.append_as_producer(7, 0, b"in a transaction", transactional=True)
        marker = control_batch(ABORT_MARKER, 0, producer_id=7, producer_epoch=0, timestamp=5)
        a.partition().append(trusted(marker), False)
        for _ in range(3):
            a.append(b"after it")
        await cluster.fetch(3)
        flip_bit(b, 1, BODY)
        await cluster.restart(B, clean=False)
        assert [each.first_offset for each in damage_of(b)] == [1] and b.log.producers.ongoing == {0: 7}
        await Healer(B, Reader(cluster)).heal_all([b.partition()])
        assert b.log.producers.ongoing == {} and b.log.producers.entries[7].coordinator_epoch == 0
        aborted = [each.producer_id for each in b.log.aborted_transactions(0, 5)]
        assert aborted == [each.producer_id for each in a.log.aborted_transactions(0, 5)] == [7]
        await cluster.close()

    asyncio.run(tell())
