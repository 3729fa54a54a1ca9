"""A broker that recovers its logs answers probes, says how far it is, and can be stopped."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.support.raw_calls import batch_of, new_topic, produce_batch
from tests.support.raw_client import RawClient
from tests.support.visible_broker import visible_broker

from barnabas.broker.broker import Broker
from barnabas.broker.startup import broker_config
from barnabas.log import manager, names

SECONDS_MAX = 30


class SlowDisk:
    """The first log is opened at once; the next one only when `go_on` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()
        self.is_waiting = threading.Event()
        self.opened: list[Any] = []
        self._open_log = manager.open_log
        monkeypatch.setattr(manager, "open_log", self._open)

    def _open(self, *arguments: Any) -> Any:
        if len(self.opened) == 1:
            self.is_waiting.set()
            assert self.go_on.wait(SECONDS_MAX)
        self.opened.append(arguments[0].partition)
        return self._open_log(*arguments)


@pytest.fixture
def crashed(tmp_path: Path) -> Path:
    """The directory of a broker that was not stopped cleanly, with three logs."""
    with visible_broker(tmp_path) as running, RawClient("127.0.0.1", running.port) as client:
        for name in ("orders", "payments", "refunds"):
            produce_batch(client, new_topic(client, name=name), batch_of(b"a record"))
    (tmp_path / names.CLEAN_SHUTDOWN).unlink()
    return tmp_path


async def probe(broker: Broker, path: str) -> tuple[int, dict[str, Any]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.metrics_port)
    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), json.loads(body)


def while_it_recovers(
    directory: Path, disk: SlowDisk, story: Callable[[Broker, asyncio.Task[None]], Coroutine[Any, Any, None]]
) -> None:
    async def run() -> None:
        broker = Broker(broker_config(None, directory, 0, {"barnabas.metrics.port": "0"}))
        starting = asyncio.get_running_loop().create_task(broker.start())
        try:
            assert await asyncio.to_thread(disk.is_waiting.wait, SECONDS_MAX)
            await story(broker, starting)
        finally:
            disk.go_on.set()
            await broker.stop()

    asyncio.run(run())


def test_probes_are_answered(crashed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SlowDisk(monkeypatch)

    async def story(broker: Broker, starting: asyncio.Task[None]) -> None:
        assert (await probe(broker, "/health"))[0] == 200
        status, document = await probe(broker, "/ready")
        assert status == 503
        assert document["checks"]["started"].startswith(
            "the broker is starting: 1 of 3 logs are recovered after an unclean stop, "
        )
        disk.go_on.set()
        await starting
        assert (await probe(broker, "/ready"))[0] == 200
        assert len(disk.opened) == 3

    while_it_recovers(crashed, disk, story)


def test_a_stop_does_not_wait_for_all_logs(crashed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SlowDisk(monkeypatch)

    async def story(broker: Broker, starting: asyncio.Task[None]) -> None:
        starting.cancel()
        await asyncio.sleep(0)
        disk.go_on.set()
        await asyncio.wait([starting])
        assert starting.cancelled()
        assert len(disk.opened) == 2

    while_it_recovers(crashed, disk, story)
    # Nothing stays locked, and the next start recovers the logs.
    with visible_broker(crashed) as running:
        assert len(list(running.broker.logs.logs())) == 3
