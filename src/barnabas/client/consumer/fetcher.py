"""Fetches data in advance, on the I/O thread: one fetch at a time per broker, some answers per partition.

Unknown positions are looked up first: the committed offset, otherwise as auto.offset.reset says. When the
leader of a partition changes, the position is checked against the new leader's log before reading
(KIP-320)."""

import asyncio
import contextlib
from collections import defaultdict
from typing import Any

from barnabas.client.config import ClientConfig
from barnabas.client.consumer.fetched import Fetched, Reading
from barnabas.client.consumer.network import Network
from barnabas.client.consumer.positions import Positions
from barnabas.client.consumer.state import BUFFERS_MAX, Assignments, PartitionState
from barnabas.client.errors import ErrorCode, KafkaError, error_from
from barnabas.client.metadata import Leader
from barnabas.client.types import Node, TopicPartition
from barnabas.wire.messages import fetch

# While the buffers of some partitions are full, the fetch for the others must not wait long at the broker:
# the partitions that were left out are in the next fetch.
HELD_BACK_WAIT_MS = 20
RECHECK_SECONDS = 1.0
_Requested = dict[TopicPartition, tuple[PartitionState, int, int]]


class Fetcher:
    def __init__(
        self, config: ClientConfig, network: Network, assignments: Assignments, positions: Positions
    ) -> None:
        self._config = config
        self._network = network
        self._assignments = assignments
        self._positions = positions
        self._busy: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._woken = asyncio.Event()
        self._is_settled = False
        # As in Kafka: after this time the leader is asked again which replica is the nearest.
        self._preferred_seconds = config.seconds("metadata.max.age.ms")
        self._reading = Reading(
            deserializer(config["key.deserializer"]),
            deserializer(config["value.deserializer"]),
            config["check.crcs"],
            config["isolation.level"] == "read_committed",
        )

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """Look up positions and keep one fetch per broker in flight, until cancelled."""
        while True:
            self._woken.clear()
            try:
                await self._positions.resolve()
                self._start_fetches()
            except KafkaError as error:
                if not error.retriable:
                    self._assignments.fail(error)
                await self._network.recover()
                continue
            self._is_settled = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._wait_seconds()):
                    await self._woken.wait()
            self._is_settled = False

    def _wait_seconds(self) -> float:
        """The time until a failed partition may be tried again."""
        now = asyncio.get_running_loop().time()
        waiting = [state.retry_at - now for state in list(self._assignments.states.values())]
        return min([RECHECK_SECONDS, *(pause for pause in waiting if pause > 0)])

    def _start_fetches(self) -> None:
        by_leader: dict[int, list[PartitionState]] = defaultdict(list)
        held_back: set[int] = set()
        now = asyncio.get_running_loop().time()
        for state in list(self._assignments.states.values()):
            node = self._node_to_read(state, now)
            if state.fetch_offset < 0 or state.paused or node is None or state.retry_at > now:
                continue
            if len(state.buffers) >= BUFFERS_MAX:
                held_back.add(node)
            else:
                by_leader[node].append(state)
        for node, states in by_leader.items():
            if node not in self._busy:
                self._busy.add(node)
                task = asyncio.get_running_loop().create_task(self._fetch(node, states, node in held_back))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _node_to_read(self, state: PartitionState, now: float) -> int | None:
        """The replica that the leader has named, as long as that holds; otherwise the leader."""
        if state.preferred_node >= 0:
            if now < state.preferred_until and self._network.has_node(state.preferred_node):
                return state.preferred_node
            state.preferred_node = -1
        return self._network.cached_leader(state.partition)

    async def _fetch(self, node: int, states: list[PartitionState], has_held_back: bool) -> None:
        has_no_errors = False
        try:
            request, requested = self._request(states, has_held_back)
            if not requested:
                return
            timeout = self._config.seconds("request.timeout.ms")
            answer = await self._network.ask(node, fetch.API_KEY, request, within=timeout)
            if answer.error_code:
                raise error_from(answer.error_code)
            has_no_errors = self._take(answer, requested)
        except KafkaError as error:
            for state in states:
                state.preferred_node = -1
            if not error.retriable:
                self._assignments.fail(error)
            await self._network.recover()
        except Exception as error:
            # A bug of ours must not leave the consumer waiting forever.
            self._assignments.fail(error)
            await self._network.recover()
        finally:
            self._busy.discard(node)
            if has_no_errors and self._is_settled and not self._woken.is_set():
                # Nothing has changed since the positions were checked: start the next fetch.
                self._start_fetches()
            else:
                self._woken.set()

    def _request(
        self, states: list[PartitionState], has_held_back: bool
    ) -> tuple[fetch.FetchRequest, _Requested]:
        config = self._config
        requested: _Requested = {}
        topics: dict[str, fetch.FetchTopic] = {}
        with self._assignments.signal:
            for state in states:
                topic, partition = state.partition
                topic_id = self._network.topic_id(topic)
                if state.fetch_offset < 0 or state.topic_id != topic_id:
                    # The user is seeking right now, or the topic was created again.
                    continue
                requested[state.partition] = (state, state.version, state.fetch_offset)
                if topic not in topics:
                    topics[topic] = fetch.FetchTopic(topic=topic, topic_id=topic_id)
                topics[topic].partitions.append(
                    fetch.FetchPartition(
                        partition=partition,
                        # Not a newer one: a leader whose log the position was not checked against refuses.
                        current_leader_epoch=state.leader_epoch,
                        fetch_offset=state.fetch_offset,
                        partition_max_bytes=config["max.partition.fetch.bytes"],
                    )
                )
        wait_ms = config["fetch.max.wait.ms"]
        request = fetch.FetchRequest(
            max_wait_ms=min(wait_ms, HELD_BACK_WAIT_MS) if has_held_back else wait_ms,
            min_bytes=config["fetch.min.bytes"],
            max_bytes=config["fetch.max.bytes"],
            isolation_level=int(self._reading.read_committed),
            topics=list(topics.values()),
            rack_id=config["client.rack"],
        )
        return request, requested

    def _take(self, answer: fetch.FetchResponse, requested: _Requested) -> bool:
        """Add the fetched data of all partitions. Returns whether there was no error."""
        has_no_errors = True
        if answer.node_endpoints:
            self._learn_leaders(answer)
        for topic in answer.responses:
            name = topic.topic or self._network.topic_name(topic.topic_id)
            for data in topic.partitions:
                entry = requested.get(TopicPartition(name, data.partition_index))
                if entry is not None and data.error_code:
                    self._failed(entry, data)
                    has_no_errors = False
                elif entry is not None:
                    self._take_partition(entry, data)
        return has_no_errors

    def _learn_leaders(self, answer: fetch.FetchResponse) -> None:
        leaders = {
            TopicPartition(topic.topic or self._network.topic_name(topic.topic_id), data.partition_index): (
                Leader(data.current_leader.leader_id, data.current_leader.leader_epoch)
            )
            for topic in answer.responses
            for data in topic.partitions
            if data.current_leader.leader_id >= 0
        }
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in answer.node_endpoints]
        self._network.learn_leaders(leaders, nodes)

    def _take_partition(self, entry: tuple[PartitionState, int, int], data: fetch.PartitionData) -> None:
        state, version, offset = entry
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            state.preferred_node = data.preferred_read_replica
            state.preferred_until = asyncio.get_running_loop().time() + self._preferred_seconds
        records: Any = data.records
        if records is not None and len(records):
            aborted = data.aborted_transactions
            fetched = Fetched(state.partition, records, offset, aborted, self._reading)
            self._assignments.put(state, version, offset, fetched)

    def _failed(self, entry: tuple[PartitionState, int, int], data: fetch.PartitionData) -> None:
        state, version, offset = entry
        error = error_from(data.error_code)
        if state.preferred_node >= 0:
            # The replica may be behind, or may have become the leader or nothing: ask the leader again.
            state.preferred_node = -1
            if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                return
        if data.current_leader.leader_id < 0:
            state.retry_at = asyncio.get_running_loop().time() + self._config.seconds("retry.backoff.ms")
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions.out_of_range(state, version, offset)
            return
        if error.retriable:
            self._network.request_update()
        else:
            self._assignments.fail(
                KafkaError(error.code, f"{state.partition} cannot be read: {error.message}")
            )


def deserializer(given: Any) -> Any:
    """A callable of (topic, bytes). The user may give None, a callable of bytes, or an object with
    deserialize(topic, bytes). A plain callable is not called for a null key or value: it stays None."""
    if given is None:
        return None
    if hasattr(given, "deserialize"):
        return given.deserialize
    return lambda _topic, data: None if data is None else given(data)
