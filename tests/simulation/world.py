"""A cluster in one process: real brokers without sockets, on a simulated network, store and clock."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from tests.simulation.network import FakeConnection, Network
from tests.simulation.store import SharedStore, StoreClient
from tests.simulation.virtual_loop import VirtualLoop

from barnabas.broker import broker as broker_module
from barnabas.broker.broker import Broker
from barnabas.broker.connection_limits import ConnectionLimits
from barnabas.broker.session import Session
from barnabas.config.values import BrokerConfig
from barnabas.errors import DisconnectedError, KafkaTimeoutError
from barnabas.ids import Uuid
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.opening import OpenedStore
from barnabas.metadata.store import StoreUnavailable
from barnabas.replication.following.ports import WhenAnswered
from barnabas.wire.apis import api_of
from barnabas.wire.message import Message

BROKER_IDS = (1, 2, 3)
SETTINGS = {
    "zookeeper.connect": "simulated:1",
    "listeners": "PLAINTEXT://127.0.0.1:1",
    "barnabas.metrics.port": "-1",
    "log.cleaner.enable": "false",
    "replica.lag.time.max.ms": "3000",
    "replica.socket.timeout.ms": "3000",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "log.flush.offset.checkpoint.interval.ms": "5000",
}


class VirtualClock:
    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return 1_700_000_000_000 + int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()


class NoServer:
    """Takes the place of the listening sockets."""

    def __init__(self, config: BrokerConfig, dispatcher: Any, authentication: Any) -> None:
        self.limits = ConnectionLimits(config, lambda connection: None)
        dispatcher.refused = lambda connection, reason, api_key: None
        self.is_serving = False

    async def bind(self, listener: Any) -> int:
        return 1

    def reconfigure(self, config: BrokerConfig) -> None: ...

    async def listen_on(self, listeners: Any) -> None: ...

    async def serve(self) -> None:
        self.is_serving = True

    async def close(self) -> None:
        self.is_serving = False


class SimulatedConnection(NamedTuple):
    """The place of a connection to another broker."""

    peers: SimulatedPeers
    broker_id: int
    purpose: str

    async def send(self, api_key: int, message: Message, *, within: float) -> Any:
        return await self.peers.send(
            self.broker_id, api_key, message, purpose=self.purpose, within_seconds=within
        )

    # ---- for the short way of followers

    client_id = "simulation"

    def supports(self, api_key: int) -> bool:
        return api_of(api_key) is not None

    def version_of(self, api_key: int) -> int:
        api = api_of(api_key)
        assert api is not None
        return api.last

    def exchange(
        self, api_key: int, write: Callable[[int], bytes | bytearray], when_answered: WhenAnswered
    ) -> None:
        self.peers.exchange(self, bytes(write(7)), when_answered)

    def close(self, reason: str) -> None:
        self.peers.close_connection(self)


class SimulatedPeers:
    """The place of `Peers`: requests travel over the simulated network."""

    def __init__(self, network: Network, broker_id: int) -> None:
        self._network = network
        self._broker_id = broker_id
        self._connections: dict[tuple[int, str], asyncio.Lock] = {}
        self._exchanges: dict[tuple[int, str], set[asyncio.Task[None]]] = {}

    async def send(
        self, broker_id: int, api_key: int, message: Message, *, purpose: str, within_seconds: float
    ) -> Any:
        # Requests of one purpose keep their order, as on one connection.
        turn = self._connections.setdefault((broker_id, purpose), asyncio.Lock())
        try:
            async with asyncio.timeout(within_seconds):
                await turn.acquire()
        except TimeoutError:
            # The answer to the request before this one does not come: that ends a real connection, too.
            self.close_connection(SimulatedConnection(self, broker_id, purpose))
            raise KafkaTimeoutError(f"broker {broker_id} did not answer the request before") from None
        try:
            return await self._network.send(self._broker_id, broker_id, api_key, message, within_seconds)
        finally:
            turn.release()

    async def connection(self, broker_id: int, purpose: str) -> SimulatedConnection:
        return SimulatedConnection(self, broker_id, purpose)

    def existing(self, broker_id: int, purpose: str) -> SimulatedConnection:
        return SimulatedConnection(self, broker_id, purpose)

    def exchange(self, connection: SimulatedConnection, frame: bytes, when_answered: WhenAnswered) -> None:
        place = (connection.broker_id, connection.purpose)
        task = asyncio.get_running_loop().create_task(self._exchange(place, frame, when_answered))
        tasks = self._exchanges.setdefault(place, set())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _exchange(self, place: tuple[int, str], frame: bytes, when_answered: WhenAnswered) -> None:
        answer: bytes | DisconnectedError
        try:
            async with self._connections.setdefault(place, asyncio.Lock()):
                answer = await self._network.exchange_frame(self._broker_id, place[0], frame)
        except (DisconnectedError, asyncio.CancelledError) as error:
            answer = DisconnectedError(str(error))
        when_answered(answer)

    def close_connection(self, connection: SimulatedConnection) -> None:
        for task in self._exchanges.get((connection.broker_id, connection.purpose), ()):
            task.cancel()

    def follow(self, image: MetadataImage) -> None: ...

    async def close(self) -> None: ...


class SimulatedBroker(Broker):
    def take_frame(self, connection: FakeConnection, frame: bytes) -> None:
        """A frame has arrived, as from a socket. Its memory may be changed, as that of a socket's buffer."""
        if connection.session is None:
            connection.session = Session(self.config.listeners[0], connection.peer_host)
        self.dispatcher.serve(connection, memoryview(bytearray(frame)))  # type: ignore[arg-type]

    def close_files(self) -> None:
        """After a kill: what the operating system does."""
        if hasattr(self, "logs"):
            for directory in self.logs.directories:
                directory.release()


# The broker to which the running code belongs. Its timers and tasks inherit this, and end when it is killed.
_owner: contextvars.ContextVar[Process | None] = contextvars.ContextVar("owner", default=None)


class Process:
    """One start of one broker. Its code runs in its own context, also when others cause it."""

    def __init__(self, broker: SimulatedBroker) -> None:
        self.broker = broker
        self.store: StoreClient | None = None
        self.is_dead = False
        self.context = contextvars.copy_context()
        self.context.run(_owner.set, self)
        self._connections: set[FakeConnection] = set()

    @property
    def is_serving(self) -> bool:
        server: Any = self.broker.server
        return bool(server.is_serving) and not self.is_dead

    async def exchange(self, connection: FakeConnection, frame: bytes) -> bytes | None:
        """Give the broker a frame, and wait for its answer."""
        self._connections.add(connection)
        try:
            # A context cannot be entered twice, as by a broker that sends something to itself.
            self.context.copy().run(self.broker.take_frame, connection, frame)
            return await connection.answer
        finally:
            self._connections.discard(connection)

    def kill(self) -> None:
        """None of its code runs after this. The operating system closes its files and connections."""
        self.is_dead = True
        for connection in self._connections:
            if not connection.answer.done():
                connection.answer.set_exception(DisconnectedError("the simulated broker was killed"))
        if self.store is not None:
            self.store.die()
        self.broker.close_files()


class OwnedLoop(VirtualLoop):
    """Leaves out the callbacks of processes that were killed."""

    def __init__(self) -> None:
        super().__init__()
        # The tasks of killed processes wait for ever. Without this they would be collected, and their
        # `finally` clauses would run in the middle of the story.
        self._kept: set[asyncio.Task[Any]] = set()
        self._left_out: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self._is_ending = False
        self.set_task_factory(self._make_task)

    def _make_task(self, loop: Any, work: Any, context: Any = None) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, context=context)
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)
        return task

    def cancel_all(self) -> None:
        # Now even the tasks of killed processes run, to end.
        self._is_ending = True
        for task in asyncio.all_tasks(self):
            task.cancel()
        for callback, arguments in self._left_out:
            super().call_soon(callback, *arguments)
        super().cancel_all()

    def call_soon(self, callback: Any, *arguments: Any, context: Any = None) -> Any:
        return super().call_soon(self._guarded(callback, context), *arguments, context=context)

    def call_at(self, when: float, callback: Any, *arguments: Any, context: Any = None) -> Any:
        return super().call_at(when, self._guarded(callback, context), *arguments, context=context)

    def _guarded(
        self, callback: Callable[..., Any], context: contextvars.Context | None
    ) -> Callable[..., Any]:
        owner = _owner.get() if context is None else context.get(_owner)
        if owner is None:
            return callback

        def run(*arguments: Any) -> None:
            if owner.is_dead and not self._is_ending:
                self._left_out.append((callback, arguments))
            else:
                callback(*arguments)

        return run


class World:
    def __init__(self, loop: VirtualLoop, directory: Path, seed: int) -> None:
        self.loop = loop
        self.random = random.Random(seed)
        self.network = Network(self, random.Random(seed + 1))
        self.store = SharedStore(random.Random(seed + 2))
        self.clock = VirtualClock(loop)
        self._directory = directory
        self._processes: dict[int, Process] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self.failures: list[BaseException] = []
        self._incarnations: dict[int, Uuid] = {}

    # ---- brokers

    def running(self, broker_id: int) -> SimulatedBroker | None:
        """The broker if it answers requests."""
        process = self._processes.get(broker_id)
        return process.broker if process is not None and process.is_serving else None

    def brokers(self) -> list[SimulatedBroker]:
        return [broker for broker_id in BROKER_IDS if (broker := self.running(broker_id)) is not None]

    def process(self, broker_id: int) -> Process | None:
        process = self._processes.get(broker_id)
        return None if process is None or process.is_dead else process

    async def start_all(self) -> None:
        for broker_id in BROKER_IDS:
            self.start(broker_id)
        await self.until(lambda: len(self.brokers()) == len(BROKER_IDS), "all brokers run")

    def start(self, broker_id: int) -> None:
        """Start a process; it takes a while."""
        assert self.process(broker_id) is None
        config = BrokerConfig(
            {**SETTINGS, "node.id": str(broker_id), "log.dirs": str(self._directory / str(broker_id))}
        )
        broker = SimulatedBroker(config, clock=self.clock, open_store=self.open_store)
        process = self._processes[broker_id] = Process(broker)
        task = self.loop.create_task(self._run(process), context=process.context)
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _run(self, process: Process) -> None:
        try:
            await process.broker.start()
        except StoreUnavailable:
            # It ends with an error, as without ZooKeeper, and is started again later.
            process.kill()
        except Exception as error:
            # As a process that ends with an error; it is not started again.
            self.failures.append(error)
            raise

    def kill(self, broker_id: int) -> None:
        """Like kill -9: nothing of it runs any more; its files stay as they are."""
        process = self.process(broker_id)
        if process is not None:
            process.kill()

    async def stop(self, broker_id: int) -> None:
        """A clean stop, as by SIGTERM."""
        process = self.process(broker_id)
        if process is None or self.running(broker_id) is None:
            return
        stopping = self.loop.create_task(process.broker.stop(), context=process.context)
        # It may be killed while it stops; then this task never ends.
        await self.until(lambda: stopping.done() or process.is_dead, "the broker has stopped")
        process.kill()

    def heal(self) -> None:
        self.network.heal()
        for process in self._processes.values():
            if process.store is not None and not process.is_dead:
                process.store.heal()

    def cut_store(self, broker_id: int) -> None:
        process = self.process(broker_id)
        if process is not None and process.store is not None:
            process.store.cut()

    # ---- waiting

    async def until(self, condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
        end = self.loop.time() + seconds
        while not condition():
            if self.failures:
                raise self.failures[0]
            assert self.loop.time() < end, f"not true within {seconds:g} simulated seconds: {what}"
            await asyncio.sleep(0.05)

    # ---- the parts that are simulated

    async def open_store(self, directory: Path, *_: Any, incarnation: Uuid, **__: Any) -> OpenedStore:
        process = _owner.get()
        assert process is not None
        process.store = StoreClient(self.store)
        # A broker that knows its last incarnation replaces it. Another one waits until that has expired.
        broker_id = process.broker.id
        previous = self._incarnations.get(broker_id) if self.random.random() < 0.5 else None
        self._incarnations[broker_id] = incarnation
        return OpenedStore(process.store, previous)

    def make_peers(self, *_: Any, **__: Any) -> SimulatedPeers:
        process = _owner.get()
        assert process is not None
        return SimulatedPeers(self.network, process.broker.id)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """While this is open, brokers get the simulated parts."""
        with (
            mock.patch.object(broker_module, "Peers", self.make_peers),
            mock.patch.object(broker_module, "Server", NoServer),
            # Ids of topics, incarnations and sessions come from the seed, too.
            mock.patch("os.urandom", self.random.randbytes),
            mock.patch("random._urandom", self.random.randbytes),
        ):
            yield
