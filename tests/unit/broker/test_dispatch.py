"""The dispatcher at shutdown."""

import asyncio
import gc
from typing import Any

from tests.simulation.network import FakeConnection
from tests.unit.broker.conftest import Stage

from barnabas.broker.call import Api, Call
from barnabas.broker.dispatch import Dispatcher
from barnabas.broker.session import Session
from barnabas.wire.codec import RequestHeader, encode_request
from barnabas.wire.messages.api_versions import ApiVersionsRequest


def test_a_request_that_came_just_before_the_shutdown_is_cancelled(stage: Stage) -> None:
    """Its handler begins, so that nothing is left without being awaited."""
    asyncio.run(_drained_at_once(stage))


async def _drained_at_once(stage: Stage) -> None:
    begun: list[bool] = []

    async def handler(call: Call, request: Any) -> Any:
        begun.append(True)
        await asyncio.sleep(60)

    dispatcher = Dispatcher(stage, {18: Api(18, "ApiVersions", (0, 4), handler)})  # type: ignore[arg-type]
    connection = FakeConnection()
    connection.session = Session(stage.config.listeners[0], "")
    chunks = encode_request(RequestHeader(18, 0, 1, "a client"), ApiVersionsRequest())
    frame = b"".join(bytes(chunk) for chunk in chunks)[4:]  # type: ignore[arg-type]
    dispatcher.serve(connection, memoryview(bytearray(frame)))  # type: ignore[arg-type]
    await dispatcher.drain()
    gc.collect()
    assert begun == [True]
    assert connection.is_closed is False
    connection.answer.cancel()
