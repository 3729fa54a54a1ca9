"""A member of a group with the new protocol (KIP-848): the coordinator assigns; all goes through heartbeats.

The I/O thread sends heartbeats and gets the target assignment. The polling thread revokes the partitions that
are not in it and assigns the new ones. The next heartbeat reports that to the coordinator."""

import asyncio
import time
import uuid
from collections import defaultdict

from barnabas.client.consumer.lookups import Identity
from barnabas.client.consumer.membership import Handover, MembershipContext
from barnabas.client.consumer.steps import RunOnIoThread, Steps
from barnabas.client.errors import ErrorCode, KafkaError, error_from
from barnabas.client.types import TopicPartition
from barnabas.wire.messages import consumer_group_heartbeat as wire

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
FIRST_INTERVAL_SECONDS = 0.1


class ConsumerMembership:
    def __init__(self, context: MembershipContext) -> None:
        self._context = context
        self._network = context.network
        self._handover = Handover(context)
        self._instance_id: str | None = context.config["group.instance.id"]
        self._member_id = str(uuid.uuid4())
        self._epoch = JOIN_EPOCH
        self._is_lost = False
        self._has_left = False
        self._fatal: KafkaError | None = None
        self._assigned: list[tuple[bytes, int]] | None = None
        self._target: list[TopicPartition] | None = None
        self._last_sent_owned: list[TopicPartition] | None = None
        self._last_sent: tuple[list[TopicPartition], list[str], str] | None = None
        self._interval = FIRST_INTERVAL_SECONDS
        self._heartbeat_now = asyncio.Event()
        self._heartbeats = context.io.run(self._heartbeat_loop())

    @property
    def identity(self) -> Identity:
        if self._epoch <= JOIN_EPOCH:
            return Identity(-1, "", self._instance_id)
        return Identity(self._epoch, self._member_id, self._instance_id)

    @property
    def has_work(self) -> bool:
        return self._target is not None or self._is_lost or self._has_left or self._fatal is not None

    @property
    def is_rebalancing(self) -> bool:
        """Always false: the coordinator accepts commits at any time."""
        return False

    # ---- on the polling thread

    def subscription_changed(self) -> None:
        self._context.io.call_soon(self._heartbeat_now.set)

    def poll(self, deadline: float) -> Steps[None]:
        """Revoke the partitions that are not in the target, and assign the new ones."""
        if self._fatal is not None:
            raise self._fatal
        if self._is_lost:
            self._is_lost = False
            yield from self._handover.lose()
        if self._has_left:
            # The member left because the user did not poll; now it joins again.
            self._has_left = False
            self._context.io.call_soon(self._heartbeat_now.set)
        target, self._target = self._target, None
        if target is None:
            return
        owned = set(self._handover.owned)
        yield from self._handover.revoke(owned - set(target))
        if set(target) != set(self._handover.owned) or self._last_sent_owned is None:
            yield from self._handover.assign(target)
        if self._handover.owned != self._last_sent_owned:
            self._context.io.call_soon(self._heartbeat_now.set)

    def leave(self, timeout: float) -> Steps[None]:
        """Revoke all partitions and leave the group; a static member announces that it may come back."""
        yield from self._handover.revoke(self._handover.owned)
        self._heartbeats.cancel()
        if self._epoch > JOIN_EPOCH:
            try:
                yield RunOnIoThread(self._send_leave, timeout)
            except KafkaError:
                # The coordinator removes the member when its session expires.
                self._epoch = LEAVE_EPOCH
        self._epoch = LEAVE_EPOCH

    # ---- on the I/O thread

    async def _heartbeat_loop(self) -> None:
        poll_interval_max = self._context.config.seconds("max.poll.interval.ms")
        while True:
            pause = self._interval
            try:
                if self._epoch >= JOIN_EPOCH and not self._has_left:
                    if time.monotonic() - self._context.last_poll > poll_interval_max:
                        await self._leave_because_idle()
                    else:
                        await self._send_heartbeat()
                        pause = min(self._interval, poll_interval_max / 2)
            except KafkaError as error:
                self._last_sent = None
                self._network.coordinator_failed(error.code)
                pause = self._network.cluster.backoff.seconds(1)
                if not error.retriable:
                    self._fatal = error
                    self._notify()
            await self._pause(pause)

    async def _pause(self, pause: float) -> None:
        try:
            async with asyncio.timeout(pause):
                await self._heartbeat_now.wait()
        except TimeoutError:
            return
        self._heartbeat_now.clear()

    async def _send_heartbeat(self) -> None:
        owned = self._handover.owned
        topics = sorted(self._context.topics())
        self._network.track(topics)
        sent = (owned, topics, self._context.pattern())
        request = wire.ConsumerGroupHeartbeatRequest(
            group_id=self._network.group_id,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=self._instance_id,
            topic_partitions=None,
        )
        if self._epoch == JOIN_EPOCH or sent != self._last_sent:
            self._add_details(request, owned, topics)
        epoch = self._epoch
        answer: wire.ConsumerGroupHeartbeatResponse = await self._network.ask_coordinator(
            wire.API_KEY, request
        )
        if self._epoch != epoch:
            return
        if answer.error_code:
            self._refused(answer)
            return
        self._last_sent_owned = owned
        self._last_sent = sent
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
        """Find the names of the assigned topic ids. An id without a known name is looked up again later."""
        name_of = self._network.topic_name
        if unknown := {topic_id for topic_id, _ in assigned if not name_of(topic_id)}:
            await self._network.cluster.track_by_id(unknown)
        self._target = [TopicPartition(name_of(each), index) for each, index in assigned if name_of(each)]
        if len(self._target) == len(assigned):
            self._assigned = None
        self._notify()

    def _add_details(
        self, request: wire.ConsumerGroupHeartbeatRequest, owned: list[TopicPartition], topics: list[str]
    ) -> None:
        """Add the fields that a heartbeat leaves out while they have not changed since the last answer."""
        config = self._context.config
        request.rack_id = config["client.rack"] or None
        request.rebalance_timeout_ms = config["max.poll.interval.ms"]
        request.subscribed_topic_names = topics
        request.subscribed_topic_regex = self._context.pattern()
        request.server_assignor = config["group.remote.assignor"]
        request.topic_partitions = [] if self._epoch == JOIN_EPOCH else self._by_id(owned)

    def _by_id(self, partitions: list[TopicPartition]) -> list[wire.TopicPartitions]:
        by_id: dict[bytes, list[int]] = defaultdict(list)
        for topic, partition in partitions:
            by_id[self._network.topic_id(topic)].append(partition)
        return [
            wire.TopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in by_id.items()
        ]

    def _refused(self, answer: wire.ConsumerGroupHeartbeatResponse) -> None:
        error = error_from(answer.error_code, answer.error_message)
        if error.code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self._start_over()
        elif error.code is ErrorCode.UNRELEASED_INSTANCE_ID:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error.message)
        else:
            raise error

    async def _leave_because_idle(self) -> None:
        """The user does not poll: leave, so that other members get the partitions."""
        self._has_left = True
        await self._send_leave()
        self._start_over()

    def _start_over(self) -> None:
        self._epoch = JOIN_EPOCH
        self._target = self._assigned = None
        self._last_sent_owned = self._last_sent = None
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
        with self._context.assignments.signal:
            self._context.assignments.signal.notify_all()
