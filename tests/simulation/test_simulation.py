"""Random faults on a simulated cluster, from a seed. What must hold, whatever happens:

- a record that was acknowledged to a producer (acks=all, two replicas in sync) is never lost or changed;
- what a consumer has read is never lost or changed, and no offset is skipped;
- the end of a partition never goes back for a client;
- there is one leader for each leader epoch, and watermarks are within their logs;
- when the faults are over, all replicas come back into sync, with the same bytes up to the watermark.

A seed that fails is run again with `SEED=7 make test-long`, or as the only parameter of the test below."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.simulation import virtual_loop
from tests.simulation.clients import PARTITIONS, TOPIC, Client, History, records_of
from tests.simulation.faults import Faults
from tests.simulation.world import BROKER_IDS, OwnedLoop, SimulatedBroker, World

SEEDS = range(24)
LONG_SEEDS = range(1000, 3000)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_faults(seed: int, tmp_path: Path) -> None:
    simulate(seed, tmp_path, seconds=40.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [int(os.environ["SEED"])] if "SEED" in os.environ else LONG_SEEDS)
def test_random_faults_of_many_seeds(seed: int, tmp_path: Path) -> None:
    simulate(seed, tmp_path, seconds=60.0)


def simulate(seed: int, directory: Path, seconds: float) -> History:
    loop = OwnedLoop()
    return virtual_loop.run(loop, _story(loop, directory, seed, seconds))


async def _story(loop: OwnedLoop, directory: Path, seed: int, seconds: float) -> History:
    world = World(loop, directory, seed)
    with world.in_place():
        await world.start_all()
        history = History()
        clients = [Client(world, history, f"client{number}") for number in range(4)]
        await clients[0].create_topic()
        work = [asyncio.ensure_future(client.write_until_stopped()) for client in clients[:2]]
        work += [asyncio.ensure_future(client.read_until_stopped()) for client in clients[2:]]
        watch = asyncio.ensure_future(_watch(world, history))
        faults = Faults(world)
        await faults.run(seconds)
        await faults.end()
        await world.until(lambda: _is_whole(world), "all replicas are in sync again")
        for client in clients:
            client.is_stopped = True
        await asyncio.gather(*work)
        await world.until(lambda: _is_settled(world), "all replicas have the watermark of their leader")
        watch.cancel()
        history.problems += _end_problems(world, history)
        assert not history.problems, (seed, faults.log, history.problems)
        acknowledged = sum(map(len, history.acknowledged.values()))
        assert acknowledged > seconds, f"seed {seed}: only {acknowledged} records were acknowledged"
        for broker_id in BROKER_IDS:
            world.kill(broker_id)
        return history


# ---- what holds all the time


async def _watch(world: World, history: History) -> None:
    leaders: dict[tuple[int, int], int] = {}
    while True:
        await asyncio.sleep(0.02)
        for broker in world.brokers():
            for index in range(PARTITIONS):
                _check_partition(broker, index, leaders, history)


def _check_partition(
    broker: SimulatedBroker, index: int, leaders: dict[tuple[int, int], int], history: History
) -> None:
    partition = broker.replicas.get(TOPIC, index)
    if partition is None:
        return
    log = partition.log
    if not log.log_start_offset <= log.high_watermark <= log.log_end_offset:
        history.problems.append(
            f"broker {broker.id}, partition {index}: the watermark {log.high_watermark} is outside of "
            f"the log ({log.log_start_offset} to {log.log_end_offset})"
        )
    if partition.is_leader:
        leader = leaders.setdefault((index, partition.leader_epoch), broker.id)
        if leader != broker.id:
            history.problems.append(
                f"brokers {leader} and {broker.id} both led partition {index} in epoch "
                f"{partition.leader_epoch}"
            )


# ---- what holds at the end


def _is_whole(world: World) -> bool:
    brokers = world.brokers()
    if len(brokers) < len(BROKER_IDS):
        return False
    for broker in brokers:
        for index in range(PARTITIONS):
            image = broker.image.partition(TOPIC, index)
            if image is None or not image.has_leader or set(image.isr) != set(image.replicas):
                return False
            if image.adding_replicas or image.removing_replicas:
                return False
    return True


def _is_settled(world: World) -> bool:
    for index in range(PARTITIONS):
        logs = [
            partition.log for broker in world.brokers() if (partition := broker.replicas.get(TOPIC, index))
        ]
        if len({(log.high_watermark, log.log_end_offset) for log in logs}) > 1:
            return False
    return True


def _end_problems(world: World, history: History) -> list[str]:
    problems = []
    for index in range(PARTITIONS):
        contents: dict[int, bytes] = {}
        for broker in world.brokers():
            partition = broker.replicas.get(TOPIC, index)
            if partition is None:
                continue
            content = contents[broker.id] = _content(broker, index)
            values = dict(records_of(content))
            for promised in (history.acknowledged[index], history.read[index]):
                lost = {offset: value for offset, value in promised.items() if values.get(offset) != value}
                if lost:
                    problems.append(f"broker {broker.id} has lost of partition {index}: {lost}")
            problems += [
                f"{value!r} was refused and is in partition {index}"
                for value in history.refused.intersection(values.values())
            ]
        if len(set(contents.values())) > 1:
            problems.append(f"the replicas of partition {index} differ: {sorted(contents)}")
    return problems


def _content(broker: SimulatedBroker, index: int) -> bytes:
    partition = broker.replicas.get(TOPIC, index)
    assert partition is not None
    log = partition.log
    content, offset = b"", log.log_start_offset
    while offset < log.high_watermark:
        piece = log.read(offset, 1 << 20, upper_offset=log.high_watermark, at_least_one=True)
        assert piece.file is not None
        data = os.pread(piece.file.fileno(), piece.size, piece.position)
        piece.release()
        content += data
        offset = records_of(data)[-1][0] + 1
    return content
