"""Who is the controller: the first of the candidates, in the order in which they came.

Each candidate has an ephemeral, sequential node and watches only the one before it, so the end of a
leadership wakes one candidate. The first one raises the epoch, in a transaction that checks its own node."""

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable

from barnabas.metadata.store import ControllerFenced, StoreError
from barnabas.metadata.zookeeper.claim import Claim
from barnabas.metadata.zookeeper.connection import Connection, NoNodeError
from barnabas.metadata.zookeeper.layout import Paths
from barnabas.metadata.zookeeper.own_node import OwnNode
from barnabas.metadata.zookeeper.tasks import Tasks

logger = logging.getLogger(__name__)


class _CandidateGone(Exception):
    """The session of the candidate's node has expired."""


class ZooKeeperLeadership:
    def __init__(self, claim: Claim, resign: "Callable[[ZooKeeperLeadership], Awaitable[None]]") -> None:
        self.claim = claim
        self.node: OwnNode | None = None
        self._resign = resign

    @property
    def epoch(self) -> int:
        return self.claim.epoch

    @property
    def lost(self) -> asyncio.Event:
        return self.claim.lost

    async def resign(self) -> None:
        if not self.lost.is_set():
            await self._resign(self)


class Election:
    def __init__(self, connection: Connection, paths: Paths, epoch_base: int, tasks: Tasks) -> None:
        self._connection = connection
        self._paths = paths
        self._epoch_base = epoch_base
        self._tasks = tasks
        self._leaderships: dict[int, ZooKeeperLeadership] = {}
        connection.when_session_lost(self.end_all)

    def claim(self, epoch: int) -> Claim:
        """The claim of a leadership of this store; ControllerFenced if there is none with this epoch."""
        leadership = self._leaderships.get(epoch)
        if leadership is None:
            raise ControllerFenced(f"controller epoch {epoch} is over, or it belongs to another broker")
        return leadership.claim

    async def campaign(self, broker_id: int) -> ZooKeeperLeadership:
        token = secrets.token_hex(8)
        try:
            while True:
                try:
                    return await self._campaign(broker_id, token)
                except _CandidateGone:
                    logger.info("broker %d lost its session and becomes a candidate again", broker_id)
        except BaseException:
            if not self._connection.is_closed:
                self._tasks.start(self._withdraw(token))
            raise

    async def depose(self, epoch: int, within_seconds: float) -> None:
        await self._connection.until_answered(lambda: self._depose(epoch), within_seconds)

    async def _depose(self, epoch: int) -> None:
        """Remove the first candidate. Nothing happens if the epoch is over. If the candidate is only about to
        get the next epoch, it becomes a candidate again."""
        names = await self._candidates()
        if names:
            is_current = ("check", self._paths.epoch, epoch - self._epoch_base)
            await self._connection.transaction([is_current, ("delete", self._paths.candidate(names[0]))])

    def end_all(self) -> None:
        for leadership in list(self._leaderships.values()):
            self._end(leadership)

    async def _campaign(self, broker_id: int, token: str) -> ZooKeeperLeadership:
        connection = self._connection
        data = json.dumps({"broker": broker_id}).encode()
        name = await connection.until_answered(lambda: self._enter(token, data))
        turn = asyncio.Event()
        watch = connection.event_setter(turn)
        while not await connection.until_answered(lambda: self._is_first(name, watch)):
            await turn.wait()
            turn.clear()
        generation = connection.generation
        claim = await connection.until_answered(lambda: self._take(name, broker_id))
        if generation != connection.generation:
            raise _CandidateGone
        leadership = ZooKeeperLeadership(claim, self._resign)
        leadership.node = OwnNode(connection, claim.candidate, lambda: self._end(leadership), self._tasks)
        self._leaderships[claim.epoch] = leadership
        return leadership

    async def _enter(self, token: str, data: bytes) -> str:
        """The name of this candidate's node, which may exist already."""
        for name in await self._candidates():
            if name.startswith(token):
                return name
        path: str = await self._connection.call(
            "create", self._paths.candidate(f"{token}-"), data, ephemeral=True, sequence=True
        )
        return path.rpartition("/")[2]

    async def _candidates(self) -> list[str]:
        """The names of all candidates, the first one first. A name is a token and a number."""
        await self._connection.call("sync", self._paths.candidates)
        names = await self._connection.call("get_children", self._paths.candidates)
        return sorted(names, key=lambda name: int(name.rpartition("-")[2]))

    async def _is_first(self, name: str, watch: Callable[[object], None]) -> bool:
        """Whether this candidate is the first one; if not, the one before it is watched."""
        while True:
            names = await self._candidates()
            if name not in names:
                raise _CandidateGone
            position = names.index(name)
            if position == 0:
                return True
            before = self._paths.candidate(names[position - 1])
            if await self._connection.call("exists", before, watch) is not None:
                return False

    async def _take(self, name: str, broker_id: int) -> Claim:
        candidate = self._paths.candidate(name)
        holder = json.dumps({"broker": broker_id}).encode()
        check, change = await self._connection.transaction(
            [("check", candidate, 0), ("set_data", self._paths.epoch, holder)]
        )
        if isinstance(check, NoNodeError):
            raise _CandidateGone
        if isinstance(change, Exception):
            raise StoreError(f"cannot raise the controller epoch: {change!r}")
        return Claim(broker_id, self._epoch_base + change.version, change.version, candidate)

    async def _resign(self, leadership: ZooKeeperLeadership) -> None:
        self._end(leadership)
        token = leadership.claim.candidate.rpartition("/")[2].partition("-")[0]
        await self._tasks.run_for_a_while(self._withdraw(token), self._connection.goodbye_seconds)

    def _end(self, leadership: ZooKeeperLeadership) -> None:
        self._leaderships.pop(leadership.epoch, None)
        leadership.lost.set()
        if leadership.node is not None:
            leadership.node.forget()

    async def _withdraw(self, token: str) -> None:
        """Remove this candidate's node, whatever it takes: the next candidate waits for that."""
        await self._connection.until_answered(lambda: self._remove(token))

    async def _remove(self, token: str) -> None:
        for name in await self._candidates():
            if name.startswith(token):
                try:
                    await self._connection.call("delete", self._paths.candidate(name))
                except NoNodeError:
                    logger.debug("the candidate %s is gone already", name)
