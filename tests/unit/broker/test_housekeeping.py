"""The periodic work on many logs goes in steps, with turns for others in between, and skips offline logs."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.housekeeping import LOGS_IN_A_STEP, Housekeeping
from barnabas.clock import FakeClock
from barnabas.config.topic import TopicConfig
from barnabas.config.values import BrokerConfig
from barnabas.ids import TopicPartition
from barnabas.log.disk import RealDisk
from barnabas.log.manager import LogManager, LogSettings

CONFIG = TopicConfig()


@pytest.mark.parametrize("job", ["_retain", "_flush", "_roll"])
def test_work_on_many_logs_goes_in_steps(tmp_path: Path, job: str) -> None:
    async def story() -> int:
        manager = LogManager([tmp_path], LogSettings("cluster", 1), RealDisk(), FakeClock())
        manager.load(lambda _: CONFIG)
        for number in range(3 * LOGS_IN_A_STEP):
            manager.get_or_create(TopicPartition("t", number), None, CONFIG)
        next(iter(manager.logs())).offline = True
        broker = SimpleNamespace(
            logs=manager,
            replicas=None,
            healer=None,
            tokens=None,
            clock=FakeClock(),
            config=BrokerConfig({}),
        )
        housekeeping = Housekeeping(cast("Broker", broker))
        working = asyncio.ensure_future(getattr(housekeeping, job)())
        turns = 0
        while not working.done():
            turns += 1
            await asyncio.sleep(0)
        await working
        manager.shutdown()
        return turns

    assert 3 <= asyncio.run(story()) < 20
