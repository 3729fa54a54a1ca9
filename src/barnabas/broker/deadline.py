"""The time that a client allows the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from barnabas.errors import ErrorCode, KafkaError

Result = TypeVar("Result")


async def within(timeout_ms: int, work: Awaitable[Result]) -> Result:
    """Await the work, or raise REQUEST_TIMED_OUT; the controller still finishes what it has begun.

    Without a positive timeout there is no limit: clients that send 0 do not mean to be refused."""
    try:
        async with asyncio.timeout(timeout_ms / 1000 if timeout_ms > 0 else None):
            return await work
    except TimeoutError:
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT, f"the controller did not answer within {timeout_ms} ms"
        ) from None
