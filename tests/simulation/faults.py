"""The faults of a simulation, one after another, chosen by the world's random numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.simulation.clients import PARTITIONS, TOPIC
from tests.simulation.network import CLIENT
from tests.simulation.world import BROKER_IDS, World

from barnabas.errors import KafkaError
from barnabas.wire.messages import alter_partition_reassignments
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)


class Faults:
    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.random
        # What happened and when, for the message of a test that fails.
        self.log: list[str] = []
        self._background: set[asyncio.Future[None]] = set()
        self._kinds: list[Callable[[], Awaitable[None]]] = [
            self._kill,
            self._kill_two,
            self._stop,
            self._cut_broker,
            self._cut_one_way,
            self._cut_store,
            self._cut_all_stores,
            self._slow_down,
            self._reassign,
        ]

    async def run(self, seconds: float) -> None:
        end = self._world.loop.time() + seconds
        while self._world.loop.time() < end:
            await asyncio.sleep(self._random.uniform(0.2, 4.0))
            kind = self._random.choice(self._kinds)
            await kind()
            if self._random.random() < 0.5:
                await asyncio.sleep(self._random.uniform(0.0, 12.0))
                self._say("heal")
                self._world.heal()

    async def end(self) -> None:
        """End all faults, and start the brokers that are down."""
        self._say("end of faults")
        self._world.heal()
        await asyncio.gather(*self._background)
        for broker_id in BROKER_IDS:
            self._start(broker_id)
        for _ in range(60):
            if await self._move(BROKER_IDS):
                return
            await asyncio.sleep(1.0)
        raise AssertionError("the partitions cannot be moved to all brokers again")

    def _say(self, what: str) -> None:
        self.log.append(f"{self._world.loop.time():.3f} {what}")

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        async def act() -> None:
            await asyncio.sleep(seconds)
            action()

        task = asyncio.ensure_future(act())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _start(self, broker_id: int) -> None:
        if self._world.process(broker_id) is None:
            self._say(f"start {broker_id}")
            self._world.start(broker_id)

    # ---- the kinds

    async def _kill(self) -> None:
        broker_id = self._random.choice(BROKER_IDS)
        self._say(f"kill {broker_id}")
        self._world.kill(broker_id)
        self._later(self._random.choice((0.0, 1.0, 15.0)), lambda: self._start(broker_id))

    async def _kill_two(self) -> None:
        for broker_id in self._random.sample(BROKER_IDS, 2):
            self._say(f"kill {broker_id}")
            self._world.kill(broker_id)
            self._later(self._random.uniform(0.0, 10.0), lambda again=broker_id: self._start(again))  # type: ignore[misc]

    async def _stop(self) -> None:
        broker_id = self._random.choice(BROKER_IDS)
        self._say(f"stop {broker_id}")

        async def stop() -> None:
            await self._world.stop(broker_id)
            await asyncio.sleep(1.0)
            self._start(broker_id)

        task = asyncio.ensure_future(stop())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _cut_broker(self) -> None:
        broker_id = self._random.choice(BROKER_IDS)
        with_store = self._random.random() < 0.5
        self._say(f"cut {broker_id} off the others{' and the store' if with_store else ''}")
        for other in BROKER_IDS:
            if other != broker_id:
                self._world.network.cut(broker_id, other)
                self._world.network.cut(other, broker_id)
        if with_store:
            self._world.cut_store(broker_id)

    async def _cut_one_way(self) -> None:
        sender, receiver = self._random.sample((*BROKER_IDS, CLIENT), 2)
        self._say(f"cut {sender} -> {receiver}")
        self._world.network.cut(sender, receiver)

    async def _cut_store(self) -> None:
        broker_id = self._random.choice(BROKER_IDS)
        self._say(f"cut {broker_id} off the store")
        self._world.cut_store(broker_id)

    async def _cut_all_stores(self) -> None:
        self._say("cut all off the store")
        for broker_id in BROKER_IDS:
            self._world.cut_store(broker_id)

    async def _slow_down(self) -> None:
        sender, receiver = self._random.sample(BROKER_IDS, 2)
        seconds = self._random.uniform(0.05, 4.0)
        self._say(f"slow down {sender} -> {receiver} by {seconds:.2f} s")
        self._world.network.slow_down(sender, receiver, seconds)

    async def _reassign(self) -> None:
        targets = tuple(self._random.sample(BROKER_IDS, self._random.choice((2, 3))))
        self._say(f"move all partitions to {targets}")
        await self._move(targets)

    async def _move(self, targets: tuple[int, ...]) -> bool:
        """Ask for it once; whether the controller said that it does it."""
        partitions = [
            ReassignablePartition(partition_index=index, replicas=list(targets))
            for index in range(PARTITIONS)
        ]
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=2000, topics=[ReassignableTopic(name=TOPIC, partitions=partitions)]
        )
        try:
            answer = await self._world.network.send(
                CLIENT,
                self._random.choice(BROKER_IDS),
                alter_partition_reassignments.API_KEY,
                request,
                3.0,
            )
        except (KafkaError, OSError):
            self._say("no answer")
            return False
        results = [result for topic in answer.responses for result in topic.partitions]
        return not answer.error_code and not any(result.error_code for result in results)
