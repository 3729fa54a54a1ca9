"""Single requests and answers between clients and brokers, or between two brokers: held back, or lost.

Cuts, delays and losses of whole links are those of `barnabas.testing.Cluster` (cut, degrade). This module
knows Kafka's frames."""

import asyncio
import struct
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from barnabas.testing.links import CLIENT, Links, Member
from barnabas.testing.relay import BrokenLink

# Larger than any frame that a broker accepts: what has such a size is not a frame.
FRAME_BYTES_MAX = 200 << 20
WAIT_SECONDS_MAX = 30.0
PRODUCE, FETCH, OFFSET_COMMIT, JOIN_GROUP, END_TXN, WRITE_TXN_MARKERS = 0, 1, 8, 11, 26, 27


class Request(NamedTuple):
    """What the header of a request tells."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None


@dataclass(frozen=True, slots=True)
class Which:
    """Requests of one API, and of one client if `client_id` is given."""

    api_key: int
    client_id: str | None = None

    def includes(self, request: Request) -> bool:
        return request.api_key == self.api_key and self.client_id in (None, request.client_id)


class Frames:
    """Sees the frames of all connections that `source` opens to these brokers from now on. Create it before
    the clients."""

    def __init__(self, links: Links, brokers: Collection[Member], source: Member = CLIENT) -> None:
        self.requests: Counter[int] = Counter()
        self._lock = threading.Lock()
        self._holds: list[Hold] = []
        self._losses: list[LostAnswers] = []
        self._source = source
        for broker in brokers:
            self.watch(links, broker)

    def watch(self, links: Links, broker: Member) -> None:
        """One more broker."""
        links.tap(self._source, broker, lambda: _Connection(self))

    def hold(self, which: Which, count: int | None = None, *, answers: bool = False) -> "Hold":
        """Hold back the next `count` such requests (None: all), or the answers to them, until release(). As
        with TCP, later ones of the same connection wait behind them; and requests arrive even if the client
        has closed the connection."""
        hold = Hold(self, which, count, answers=answers)
        with self._lock:
            self._holds.append(hold)
        return hold

    def lose_answers(self, which: Which, count: int | None = None) -> "LostAnswers":
        """Break the connection instead of passing on the next `count` answers (None: all) to such requests,
        until heal(). The broker has done what was asked."""
        loss = LostAnswers(self, which, count)
        with self._lock:
            self._losses.append(loss)
        return loss

    def end(self, fault: "Hold | LostAnswers") -> None:
        with self._lock:
            for faults in (self._holds, self._losses):
                if fault in faults:
                    faults.remove(fault)  # type: ignore[arg-type]

    # ---- called by connections

    async def passed(self, request: Request) -> None:
        """Return when the request may go on."""
        self.requests[request.api_key] += 1
        await self._held(request, is_answer=False)

    async def answered(self, request: Request) -> None:
        """Return when the answer to the request may go on."""
        await self._held(request, is_answer=True)

    async def _held(self, request: Request, *, is_answer: bool) -> None:
        with self._lock:
            holds = (hold for hold in self._holds if hold.answers == is_answer)
            hold = next((hold for hold in holds if hold.takes(request)), None)
            released = None if hold is None else hold.add()
        if released is not None:
            await released

    def is_lost(self, request: Request) -> bool:
        with self._lock:
            return any(loss.takes(request) for loss in self._losses)


class _Limited:
    """A fault of some requests, `count` times."""

    def __init__(self, frames: Frames, which: Which, count: int | None) -> None:
        self._frames = frames
        self.which = which
        self._left = count
        self.requests: list[Request] = []

    def takes(self, request: Request) -> bool:
        if self._left == 0 or not self.which.includes(request):
            return False
        if self._left is not None:
            self._left -= 1
        self.requests.append(request)
        return True

    def wait(self, count: int = 1) -> Self:
        """Return when it has happened to so many requests."""
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while len(self.requests) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"expected within {WAIT_SECONDS_MAX:.0f} s: {count} requests like {self.which}, "
                    f"came: {len(self.requests)}"
                )
            time.sleep(0.005)
        return self

    def __enter__(self) -> Self:
        return self


class Hold(_Limited):
    """Requests, or answers, that are held back until release(), or until the end of a `with` block."""

    def __init__(self, frames: Frames, which: Which, count: int | None, *, answers: bool = False) -> None:
        super().__init__(frames, which, count)
        self.answers = answers
        self._waiting: list[asyncio.Future[None]] = []

    def add(self) -> asyncio.Future[None]:
        self._waiting.append(asyncio.get_running_loop().create_future())
        return self._waiting[-1]

    def release(self) -> None:
        """Let them go on, and hold no more."""
        self._frames.end(self)
        for future in self._waiting:
            future.get_loop().call_soon_threadsafe(_finish, future)
        self._waiting.clear()

    def __exit__(self, *_: object) -> None:
        self.release()


class LostAnswers(_Limited):
    """Answers that are lost until heal(), or until the end of a `with` block."""

    def heal(self) -> None:
        self._frames.end(self)

    def __exit__(self, *_: object) -> None:
        self.heal()


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class _Connection:
    """The tap of one connection."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._unanswered: dict[int, Request] = {}
        self._request_splitter, self._answer_splitter = Splitter(), Splitter()

    async def requests(self, data: bytes) -> AsyncIterator[bytes]:
        for frame in self._request_splitter.frames(data):
            request = read_request(frame)
            if request is not None:
                self._unanswered[request.correlation_id] = request
                await self._frames.passed(request)
            yield frame

    async def answers(self, data: bytes) -> AsyncIterator[bytes]:
        for frame in self._answer_splitter.frames(data):
            request = self._unanswered.pop(int.from_bytes(frame[4:8], "big", signed=True), None)
            if request is not None:
                if self._frames.is_lost(request):
                    raise BrokenLink
                await self._frames.answered(request)
            yield frame


class Splitter:
    """Makes frames, with their sizes, of the bytes that arrive. What is no frame is passed on as it is."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._has_frames = True

    def frames(self, data: bytes) -> Iterator[bytes]:
        self._buffer += data
        while self._has_frames and len(self._buffer) >= 4:
            end = 4 + int.from_bytes(self._buffer[:4], "big", signed=True)
            if not 4 <= end <= FRAME_BYTES_MAX:
                self._has_frames = False
            elif end > len(self._buffer):
                return
            else:
                frame = bytes(self._buffer[:end])
                del self._buffer[:end]
                yield frame
        if not self._has_frames and self._buffer:
            yield bytes(self._buffer)
            self._buffer.clear()


def read_request(frame: bytes) -> Request | None:
    """The header of a frame with its size; None if it has none."""
    if len(frame) < 14:
        return None
    key, version, correlation_id, size = struct.unpack_from(">hhih", frame, 4)
    client_id = None if size < 0 else frame[14 : 14 + size].decode(errors="replace")
    return Request(key, version, correlation_id, client_id)
