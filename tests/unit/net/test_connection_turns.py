"""One turn of the loop answers busy peers for a limited time, and all of them get their share."""

import asyncio
import struct
import time
from collections import Counter

from tests.support.accepting import accepting

from barnabas.net.connection import Connection
from barnabas.net.spinning import SpinningEventLoop
from barnabas.net.turn import TURN_SECONDS_MAX

PEERS, FRAMES_EACH = 12, 6
ANSWER_SECONDS = 0.003
# A frame is begun while there is time, so one more than fits into the time is answered.
FRAMES_PER_TURN_MAX = int(TURN_SECONDS_MAX / ANSWER_SECONDS) + 1


class SlowOwner:
    """Takes a while for each frame, and notes the turn of the loop that it was answered in."""

    keys_answered_first: frozenset[int] = frozenset()

    def __init__(self, loop: SpinningEventLoop) -> None:
        self._loop = loop
        self.turn = 0
        self.answered: list[tuple[int, bytes]] = []
        self.all_answered = asyncio.Event()
        self._count_turns()

    def _count_turns(self) -> None:
        self.turn += 1
        if not self.all_answered.is_set():
            self._loop.call_soon(self._count_turns)

    def opened(self, connection: Connection) -> None: ...

    def answer_first(self, connection: Connection, arrived: memoryview) -> tuple[int, bytes]:
        return 0, b""

    def frame(self, connection: Connection, frame: memoryview) -> None:
        time.sleep(ANSWER_SECONDS)
        self.answered.append((self.turn, bytes(frame[:1])))
        connection.reply([b"\0\0\0\4done"])
        if len(self.answered) == PEERS * FRAMES_EACH:
            self.all_answered.set()

    def refused(self, connection: Connection, reason: str) -> None: ...

    def closed(self, connection: Connection) -> None: ...


def frames_of(peer: int) -> bytes:
    body = bytes([peer]) + b"\0" * 15
    return (struct.pack(">i", len(body)) + body) * FRAMES_EACH


async def answered_frames(loop: SpinningEventLoop) -> list[tuple[int, bytes]]:
    owner = SlowOwner(loop)
    acceptor = await accepting(lambda: Connection(owner, loop, 1000))
    port = acceptor.port
    writers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(PEERS)]
    for peer, writer in enumerate(writers):
        writer.write(frames_of(peer))
    await asyncio.wait_for(owner.all_answered.wait(), 30)
    for writer in writers:
        writer.close()
    acceptor.close()
    return owner.answered


def test_one_turn_is_short_and_every_peer_gets_its_share() -> None:
    loop = SpinningEventLoop(spins=False)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        answered = runner.run(answered_frames(loop))
    per_turn = Counter(turn for turn, _ in answered)
    # What counts the turns runs in the middle of them, so it sees parts of two. All peers would be 48 frames.
    assert max(per_turn.values()) <= 2 * FRAMES_PER_TURN_MAX
    # Nobody gets all its answers before the last one gets its first.
    first_of_each = {peer: index for index, (_, peer) in reversed(list(enumerate(answered)))}
    assert max(first_of_each.values()) < PEERS * FRAMES_PER_TURN_MAX
    assert Counter(peer for _, peer in answered) == {bytes([peer]): FRAMES_EACH for peer in range(PEERS)}
