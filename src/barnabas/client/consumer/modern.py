"""A member of a consumer group of the new protocol (KIP-848): the coordinator assigns, heartbeats say all.

The I/O thread sends heartbeats and learns the target; the polling thread gives up what is not in it, takes
over what is new, and the next heartbeat tells the coordinator so."""

import asyncio
import time
import uuid
from collections import defaultdict

from barnabas.client.consumer.lookups import Identity
from barnabas.client.consumer.membership import Handover, Surroundings
from barnabas.client.consumer.steps import Ask, Steps
from barnabas.client.errors import ErrorCode, KafkaError, error_from
from barnabas.client.types import TopicPartition
from barnabas.wire.messages import consumer_group_heartbeat as wire

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
FIRST_INTERVAL_SECONDS = 0.1


class ConsumerMembership:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._network = around.network
        self._handover = Handover(around)
        self._instance_id: str | None = around.config["group.instance.id"]
        self._member_id = str(uuid.uuid4())
        self._epoch = JOIN_EPOCH
        self._is_lost = False
        self._is_out = False
        self._fatal: KafkaError | None = None
        self._assigned: list[tuple[bytes, int]] | None = None
        self._target: list[TopicPartition] | None = None
        self._told: list[TopicPartition] | None = None
        self._said: tuple[list[TopicPartition], list[str], str] | None = None
        self._interval = FIRST_INTERVAL_SECONDS
        self._hurry = asyncio.Event()
        self._beating = around.io.run(self._beat())

    @property
    def identity(self) -> Identity:
        if self._epoch <= JOIN_EPOCH:
            return Identity(-1, "", self._instance_id)
        return Identity(self._epoch, self._member_id, self._instance_id)

    @property
    def has_work(self) -> bool:
        return self._target is not None or self._is_lost or self._is_out or self._fatal is not None

    @property
    def is_rebalancing(self) -> bool:
        """The coordinator takes commits at any time; a member is out, or it is not."""
        return False

    # ---- on the polling thread

    def subscription_changed(self) -> None:
        self._around.io.call_soon(self._hurry.set)

    def poll(self, deadline: float) -> Steps[None]:
        """Give up what is not in the target, take over what is new."""
        if self._fatal is not None:
            raise self._fatal
        if self._is_lost:
            self._is_lost = False
            yield from self._handover.lose()
        if self._is_out:
            # It left because nobody polled; now somebody does.
            self._is_out = False
            self._around.io.call_soon(self._hurry.set)
        target, self._target = self._target, None
        if target is None:
            return
        owned = set(self._handover.owned)
        yield from self._handover.revoke(owned - set(target))
        if set(target) != set(self._handover.owned) or self._told is None:
            yield from self._handover.assign(target)
        if self._handover.owned != self._told:
            self._around.io.call_soon(self._hurry.set)

    def leave(self, timeout: float) -> Steps[None]:
        """Give everything up and tell the group; a static member says that it will be back."""
        yield from self._handover.revoke(self._handover.owned)
        self._beating.cancel()
        if self._epoch > JOIN_EPOCH:
            try:
                yield Ask(self._send_leave, timeout)
            except KafkaError:
                # The session will run out instead.
                self._epoch = LEAVE_EPOCH
        self._epoch = LEAVE_EPOCH

    # ---- on the I/O thread

    async def _beat(self) -> None:
        poll_interval_max = self._around.config.seconds("max.poll.interval.ms")
        while True:
            pause = self._interval
            try:
                if self._epoch >= JOIN_EPOCH and not self._is_out:
                    if time.monotonic() - self._around.last_poll > poll_interval_max:
                        await self._step_out()
                    else:
                        await self._send_heartbeat()
                        pause = min(self._interval, poll_interval_max / 2)
            except KafkaError as error:
                self._said = None
                self._network.coordinator_failed(error.code)
                pause = self._network.cluster.backoff.seconds(1)
                if not error.retriable:
                    self._fatal = error
                    self._notify()
            await self._rest(pause)

    async def _rest(self, pause: float) -> None:
        try:
            async with asyncio.timeout(pause):
                await self._hurry.wait()
        except TimeoutError:
            return
        self._hurry.clear()

    async def _send_heartbeat(self) -> None:
        owned = self._handover.owned
        topics = sorted(self._around.topics())
        self._network.know(topics)
        said = (owned, topics, self._around.pattern())
        request = wire.ConsumerGroupHeartbeatRequest(
            group_id=self._network.group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=self._instance_id,
            topic_partitions=None,
        )
        if self._epoch == JOIN_EPOCH or said != self._said:
            self._say_all(request, owned, topics)
        epoch = self._epoch
        answer: wire.ConsumerGroupHeartbeatResponse = await self._network.ask_coordinator(
            wire.API_KEY, request
        )
        if self._epoch != epoch:
            return
        if answer.error_code:
            self._refused(answer)
            return
        self._told = owned
        self._said = said
        self._epoch = answer.member_epoch
        self._member_id = answer.member_id or self._member_id
        self._interval = answer.heartbeat_interval_ms / 1000
        if answer.assignment is not None:
            self._assigned = [
                (topic.topic_id, index)
                for topic in answer.assignment.topic_partitions
                for index in topic.partitions
            ]
        if self._assigned is not None:
            await self._find_target(self._assigned)

    async def _find_target(self, assigned: list[tuple[bytes, int]]) -> None:
        """The coordinator assigns topics by id. One whose name is not found yet is looked up again later."""
        name_of = self._network.topic_name
        if unknown := {topic_id for topic_id, _ in assigned if not name_of(topic_id)}:
            await self._network.cluster.want_by_id(unknown)
        self._target = [TopicPartition(name_of(each), index) for each, index in assigned if name_of(each)]
        if len(self._target) == len(assigned):
            self._assigned = None
        self._notify()

    def _say_all(
        self, request: wire.ConsumerGroupHeartbeatRequest, owned: list[TopicPartition], topics: list[str]
    ) -> None:
        """What a heartbeat leaves out while it has not changed since the last one that was answered."""
        config = self._around.config
        request.rack_id = config["client.rack"] or None
        request.rebalance_timeout_ms = config["max.poll.interval.ms"]
        request.subscribed_topic_names = topics
        request.subscribed_topic_regex = self._around.pattern()
        request.server_assignor = config["group.remote.assignor"]
        request.topic_partitions = [] if self._epoch == JOIN_EPOCH else self._by_id(owned)

    def _by_id(self, partitions: list[TopicPartition]) -> list[wire.TopicPartitions]:
        found: dict[bytes, list[int]] = defaultdict(list)
        for topic, partition in partitions:
            found[self._network.topic_id(topic)].append(partition)
        return [
            wire.TopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in found.items()
        ]

    def _refused(self, answer: wire.ConsumerGroupHeartbeatResponse) -> None:
        error = error_from(answer.error_code, answer.error_message)
        if error.code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self._start_over()
        elif error.code is ErrorCode.UNRELEASED_INSTANCE_ID:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error.message)
        else:
            raise error

    async def _step_out(self) -> None:
        """Nobody polls: give the partitions to those who do."""
        self._is_out = True
        await self._send_leave()
        self._start_over()

    def _start_over(self) -> None:
        self._epoch = JOIN_EPOCH
        self._target = self._assigned = None
        self._told = self._said = None
        self._is_lost = True
        self._interval = FIRST_INTERVAL_SECONDS
        self._notify()

    async def _send_leave(self) -> None:
        epoch = LEAVE_EPOCH if self._instance_id is None else LEAVE_STATIC_EPOCH
        request = wire.ConsumerGroupHeartbeatRequest(
            group_id=self._network.group_id,
            member_id=self._member_id,
            member_epoch=epoch,
            instance_id=self._instance_id,
            topic_partitions=None,
        )
        await self._network.ask_coordinator(wire.API_KEY, request)

    def _notify(self) -> None:
        with self._around.assignments.signal:
            self._around.assignments.signal.notify_all()
