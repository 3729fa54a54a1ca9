"""The periodic work of the controller: balance leaders, and look for partitions that may have a leader.

A failure is logged, and the work is tried again at its next time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from barnabas.errors import KafkaError
from barnabas.metadata.controller import Controller

logger = logging.getLogger(__name__)
Sleep = Callable[[float], Awaitable[None]]


async def run_upkeep(controller: Controller, sleep: Sleep = asyncio.sleep) -> None:
    """Runs until it is cancelled."""
    settings = controller.settings
    async with asyncio.TaskGroup() as tasks:
        if settings.balance_seconds is not None:
            tasks.create_task(_repeat(controller.balance_leaders, settings.balance_seconds, sleep))
        if settings.unclean_election_seconds is not None:
            tasks.create_task(
                _repeat(controller.elect_unclean_leaders, settings.unclean_election_seconds, sleep)
            )


async def _repeat(work: Callable[[], Coroutine[Any, Any, None]], seconds: float, sleep: Sleep) -> None:
    while True:
        await sleep(seconds)
        try:
            await work()
        except KafkaError as error:
            logger.warning("periodic work of the controller failed, %s: %s", work.__name__, error)
