"""A broker's candidacy for controller: wait for the leadership, be the controller until it is lost, repeat.

At the start of its leadership, and whenever a session begins or ends, the controller updates the brokers
in the image to match the sessions. If that fails, it gives up the leadership and tries again a little
later."""

import asyncio
import logging
from collections.abc import Mapping

from barnabas.errors import KafkaError
from barnabas.metadata.controller import Controller
from barnabas.metadata.store import BrokerRegistration, Leadership, MetadataStore, StoreError
from barnabas.metadata.upkeep import run_upkeep

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


class Candidacy:
    def __init__(
        self,
        store: MetadataStore,
        controller: Controller,
        broker_id: int,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._store = store
        self._controller = controller
        self._broker_id = broker_id
        self._retry_seconds = retry_seconds
        self._living: Mapping[int, BrokerRegistration] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # Has the reason when a leadership was given up.
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    def _ended(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("broker %d can no longer become the controller", self._broker_id, exc_info=error)
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self.failure.done():
            self.failure.set_result(error)

    async def _run(self) -> None:
        while True:
            try:
                leadership = await self._store.campaign(self._broker_id)
                await self._serve(leadership)
            except (StoreError, KafkaError) as error:
                logger.warning("broker %d is no longer the controller: %s", self._broker_id, error)
                self._fail(error)
                await asyncio.sleep(self._retry_seconds)

    async def _serve(self, leadership: Leadership) -> None:
        logger.info("broker %d is the controller, epoch %d", self._broker_id, leadership.epoch)
        self._controller.lead(leadership)
        try:
            await self._controller.announce(self._broker_id)
            cancel = await self._store.watch_sessions(self._take_sessions)
            upkeep = asyncio.ensure_future(run_upkeep(self._controller))
            upkeep.add_done_callback(_log_failure)
            try:
                await self._follow_sessions(leadership)
            finally:
                upkeep.cancel()
                cancel()
        finally:
            await self._controller.step_down()
            await leadership.resign()

    async def _follow_sessions(self, leadership: Leadership) -> None:
        lost = asyncio.ensure_future(self._wake_when_lost(leadership))
        try:
            while not leadership.lost.is_set():
                self._changed.clear()
                await self._controller.reconcile_sessions(self._living)
                await self._changed.wait()
        finally:
            lost.cancel()

    async def _wake_when_lost(self, leadership: Leadership) -> None:
        await leadership.lost.wait()
        self._changed.set()

    def _take_sessions(self, living: Mapping[int, BrokerRegistration]) -> None:
        self._living = living
        self._changed.set()


def _log_failure(upkeep: "asyncio.Task[None]") -> None:
    error = None if upkeep.cancelled() else upkeep.exception()
    if error is not None:
        logger.error("the periodic work of the controller has ended", exc_info=error)
