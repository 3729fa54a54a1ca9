"""The garbage collector of a broker's process.

Messages have no cycles, so there is little to find. With Python's thresholds a long request made the
collector look several times at everything, for 30 ms and more. So it looks rarely by itself. What does have
cycles, such as tasks that have failed, would stay for hours once it is old: memory grew by some megabytes per
hour. Therefore the broker asks for a whole collection from time to time, between two requests. Then the C
library gives memory back to the system: by itself it keeps what the largest tasks have needed."""

import gc
from asyncio import sleep
from collections.abc import Callable
from time import perf_counter

THRESHOLDS = (20_000, 20, 100)
PAUSE_SECONDS = 60.0
# A process with very many objects is interrupted less often.
SHARE_OF_TIME_MAX = 1 / 5000
# A busy event loop takes longer than this for nothing. Then the collection waits, but not for ever.
QUIET_SECONDS = 0.01
WAITS_MAX = 500


def keep_for_good() -> None:
    """What is there now stays: the collector looks only at what comes later."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def memory_returner() -> Callable[[], object]:
    """What gives unused memory back to the system, if the C library can do that."""
    import ctypes  # Late: a start need not wait for it.

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return (lambda: None) if trim is None else lambda: trim(0)


async def collect_from_time_to_time() -> None:
    pause = PAUSE_SECONDS
    return_memory = memory_returner()
    while True:
        await sleep(pause)
        for _ in range(WAITS_MAX):
            if await _is_quiet():
                break
        # During a long request it is disabled (broker/long_requests.py).
        if gc.isenabled():
            began = perf_counter()
            gc.collect()
            return_memory()
            pause = max(PAUSE_SECONDS, (perf_counter() - began) / SHARE_OF_TIME_MAX)


async def _is_quiet() -> bool:
    began = perf_counter()
    await sleep(QUIET_SECONDS)
    return perf_counter() - began < 1.5 * QUIET_SECONDS
