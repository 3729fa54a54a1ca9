"""The process of HostileClients: `hostile_process RATE SEED PORT...`, until its input ends.

It is a process of its own, and gives way to others, so that it does not slow down the honest clients of the
test: on their own machines they would not notice how busy an attacker's is."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import sys

from tests.support.hostile_frames import hostile_frames

# Only APIs that change nothing: hostile bytes are meant, not valid requests of an intruder.
KEYS = (0, 1, 2, 9, 10, 15, 16, 18, 23, 32, 35, 60, 61, 65, 66)
FRAMES = 2000
# Short, so that connections come one by one, as from many hosts, and not in bursts.
TICK_SECONDS = 0.002
# How long a connection stays if the broker does not close it.
STAY_SECONDS = 0.2
OPEN_MAX = 500


class Hostile:
    def __init__(self, frames: list[bytes], ports: list[int]) -> None:
        self._frames, self._ports = itertools.cycle(frames), itertools.cycle(ports)
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0

    async def run(self, per_second: int) -> None:
        loop = asyncio.get_running_loop()
        begin, begun = loop.time(), 0
        while True:
            due = int((loop.time() - begin) * per_second)
            for _ in range(min(due - begun, OPEN_MAX - len(self._tasks))):
                task = loop.create_task(self._connection(next(self._ports), next(self._frames)))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            # What is late is left out.
            begun = due
            await asyncio.sleep(TICK_SECONDS)

    async def _connection(self, port: int, frame: bytes) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            self.connections += 1
            with contextlib.closing(writer):
                writer.write(frame)
                await writer.drain()
                async with asyncio.timeout(STAY_SECONDS):
                    while await reader.read(1 << 16):
                        continue


async def main() -> None:
    os.nice(19)
    rate, seed, *ports = map(int, sys.argv[1:])
    frames = list(itertools.islice(hostile_frames(random.Random(seed), KEYS), FRAMES))
    hostile = Hostile(frames, ports)
    print("ready", flush=True)
    working = asyncio.ensure_future(hostile.run(rate))
    await asyncio.to_thread(sys.stdin.read)
    working.cancel()
    print(json.dumps({"connections": hostile.connections}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
