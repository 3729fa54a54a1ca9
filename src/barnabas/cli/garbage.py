"""The garbage collector of a broker's process.

Messages have no cycles, so there is little to find. With Python's thresholds a long request made the
collector look several times at everything, for 30 ms and more. So it looks rarely by itself. What does have
cycles, such as tasks that have failed, would stay for hours once it is old: memory grew by some megabytes per
hour. Therefore the broker asks for a whole collection from time to time, between two requests."""

import asyncio
import gc
import time

THRESHOLDS = (20_000, 20, 100)
PAUSE_SECONDS = 60.0
# A process with very many objects is interrupted less often.
SHARE_OF_TIME_MAX = 1 / 5000


def keep_for_good() -> None:
    """What is there now stays: the collector looks only at what comes later."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


async def collect_from_time_to_time() -> None:
    pause = PAUSE_SECONDS
    while True:
        await asyncio.sleep(pause)
        # During a long request it is disabled (broker/long_requests.py).
        if gc.isenabled():
            began = time.perf_counter()
            gc.collect()
            pause = max(PAUSE_SECONDS, (time.perf_counter() - began) / SHARE_OF_TIME_MAX)
