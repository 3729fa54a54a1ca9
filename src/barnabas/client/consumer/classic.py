"""A member of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

A rebalance begins on the polling thread: it revokes partitions and then waits, poll after poll, until the I/O
thread has the answers to JoinGroup and SyncGroup. The I/O thread keeps sending heartbeats meanwhile. If the
user does not poll within max.poll.interval.ms, the member leaves the group, so that others get its
partitions."""

import asyncio
import concurrent.futures
import time

from barnabas.client.consumer.assignors import Assignor, Subscription, assignors_of
from barnabas.client.consumer.lookups import Identity
from barnabas.client.consumer.membership import Handover, MembershipContext
from barnabas.client.consumer.steps import RunOnIoThread, Steps, Wait
from barnabas.client.consumer.subscriptions import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.client.errors import ErrorCode, KafkaError, KafkaTimeoutError, error_from
from barnabas.client.types import TopicPartition
from barnabas.wire.messages import heartbeat, join_group, leave_group, sync_group

PROTOCOL_TYPE = "consumer"
JOIN_GRACE_SECONDS = 5.0
_START_OVER = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MEMBER_ID_REQUIRED,
)


class ClassicMembership:
    def __init__(self, context: MembershipContext) -> None:
        config = context.config
        self._context = context
        self._network = context.network
        self._handover = Handover(context)
        self._assignors: list[Assignor] = assignors_of(config["partition.assignment.strategy"])
        # Members may keep partitions during a rebalance only if all assignors are cooperative.
        self._is_cooperative = all(assignor.is_cooperative for assignor in self._assignors)
        self._instance_id: str | None = config["group.instance.id"]
        self._member_id = ""
        self._generation = -1
        self._previous_generation = -1
        self._is_stable = False
        self._needs_join = True
        self._is_lost = False
        self._fatal: KafkaError | None = None
        self._joined_topics: tuple[str, ...] = ()
        self._led_counts: dict[str, int] | None = None
        self._previous_partitions: list[TopicPartition] = []
        self._join_future: concurrent.futures.Future[list[TopicPartition]] | None = None
        self._heartbeats = context.io.run(self._heartbeat_loop())

    @property
    def identity(self) -> Identity:
        return Identity(self._generation, self._member_id, self._instance_id)

    @property
    def has_work(self) -> bool:
        return self._needs_join or self._is_lost or self._join_future is not None or self._fatal is not None

    @property
    def is_rebalancing(self) -> bool:
        return self._join_future is not None

    # ---- on the polling thread

    def subscription_changed(self) -> None:
        self._needs_join = True

    def poll(self, deadline: float) -> Steps[None]:
        """Take part in rebalances until the deadline: revoke partitions, join, and assign the new ones."""
        if self._fatal is not None:
            raise self._fatal
        if self._is_lost:
            self._is_lost = False
            yield from self._handover.lose()
        while self._needs_join or self._join_future is not None:
            if self._join_future is None:
                self._needs_join = False
                yield from self._give_up()
                self._join_future = self._context.io.run(self._join())
                self._join_future.add_done_callback(self._notify)
            join_future = self._join_future
            if not (yield Wait(join_future.done, deadline)):
                return
            self._join_future = None
            if join_future.cancelled() or join_future.exception() is not None:
                # result() raises the error below; the next poll joins again.
                self._needs_join = True
            yield from self._take_over(join_future.result())

    def leave(self, timeout: float) -> Steps[None]:
        """Revoke all partitions and leave the group. A static member does not leave: it may come back."""
        yield from self._handover.revoke(self._handover.owned)
        self._heartbeats.cancel()
        if self._join_future is not None:
            self._join_future.cancel()
        if self._member_id and self._instance_id is None:
            try:
                yield RunOnIoThread(lambda: self._send_leave("the consumer is closing"), timeout)
            except (KafkaError, KafkaTimeoutError):
                # The coordinator removes the member when its session expires.
                self._forget()
        self._forget()

    def _give_up(self) -> Steps[None]:
        self._previous_partitions = self._handover.owned or self._previous_partitions
        gone = self._handover.owned
        if self._is_cooperative:
            topics = set(self._context.topics())
            gone = [each for each in gone if each.topic not in topics]
        yield from self._handover.revoke(gone)

    def _take_over(self, partitions: list[TopicPartition]) -> Steps[None]:
        given_up = set(self._handover.owned) - set(partitions)
        yield from self._handover.revoke(given_up)
        self._previous_partitions = partitions
        if given_up and self._is_cooperative:
            # Join again, so that the revoked partitions can be assigned to other members.
            self._needs_join = True
        yield from self._handover.assign(partitions)

    def _notify(self, _: object) -> None:
        with self._context.assignments.signal:
            self._context.assignments.signal.notify_all()

    # ---- on the I/O thread

    async def _join(self) -> list[TopicPartition]:
        """Join and synchronise until there is an assignment; errors that are not retriable are raised."""
        self._is_stable = False
        while True:
            try:
                return await self._join_once()
            except KafkaError as error:
                self._network.coordinator_failed(error.code)
                if error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
                    self._forget()
                elif error.code not in _START_OVER and not error.retriable:
                    raise
                if error.code is not ErrorCode.MEMBER_ID_REQUIRED:
                    await self._network.recover()

    async def _join_once(self) -> list[TopicPartition]:
        self._joined_topics = self._context.topics()
        config = self._context.config
        request = join_group.JoinGroupRequest(
            group_id=self._network.group_id,
            session_timeout_ms=config["session.timeout.ms"],
            rebalance_timeout_ms=config["max.poll.interval.ms"],
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                join_group.JoinGroupRequestProtocol(name=assignor.name, metadata=self._metadata(assignor))
                for assignor in self._assignors
            ],
        )
        timeout = config.seconds("max.poll.interval.ms") + JOIN_GRACE_SECONDS
        answer: join_group.JoinGroupResponse = await self._network.ask_coordinator(
            join_group.API_KEY, request, within=timeout
        )
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
        if answer.error_code:
            raise error_from(answer.error_code)
        self._member_id, self._generation = answer.member_id, answer.generation_id
        plan = {}
        self._led_counts = None
        if answer.leader == answer.member_id and not answer.skip_assignment:
            plan = await self._plan(answer)
        partitions = await self._sync(answer.protocol_name or "", plan)
        self._previous_generation = self._generation
        self._is_stable = True
        return partitions

    def _metadata(self, assignor: Assignor) -> bytes:
        owned = tuple(self._handover.owned) if self._is_cooperative else ()
        user_data = assignor.user_data(self._previous_partitions, self._previous_generation)
        topics = self._joined_topics
        rack = self._context.config["client.rack"] or None
        return encode_subscription(
            Subscription(topics, owned, self._previous_generation, self._instance_id, user_data), rack
        )

    async def _plan(self, answer: join_group.JoinGroupResponse) -> dict[str, list[TopicPartition]]:
        members = {
            member.member_id: decode_subscription(bytes(member.metadata), member.group_instance_id)
            for member in answer.members
        }
        topics = {topic for member in members.values() for topic in member.topics}
        self._network.track(topics)
        if any(not self._network.cluster.metadata.partition_count(topic) for topic in topics):
            await self._network.cluster.refresh()
        self._led_counts = self._counts(topics)
        assignor = next(each for each in self._assignors if each.name == answer.protocol_name)
        return assignor.assign({topic: count for topic, count in self._led_counts.items() if count}, members)

    def _counts(self, topics: set[str]) -> dict[str, int]:
        metadata = self._network.cluster.metadata
        return {topic: metadata.partition_count(topic) for topic in topics}

    async def _sync(self, protocol: str, plan: dict[str, list[TopicPartition]]) -> list[TopicPartition]:
        request = sync_group.SyncGroupRequest(
            group_id=self._network.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=protocol,
            assignments=[
                sync_group.SyncGroupRequestAssignment(
                    member_id=member, assignment=encode_assignment(partitions)
                )
                for member, partitions in plan.items()
            ],
        )
        timeout = self._context.config.seconds("max.poll.interval.ms") + JOIN_GRACE_SECONDS
        answer = await self._network.ask_coordinator(sync_group.API_KEY, request, within=timeout)
        if answer.error_code:
            raise error_from(answer.error_code)
        return decode_assignment(bytes(answer.assignment))

    async def _heartbeat_loop(self) -> None:
        """Send heartbeats while the member is in the group; leave the group when the user stops polling."""
        interval = self._context.config.seconds("heartbeat.interval.ms")
        poll_interval_max = self._context.config.seconds("max.poll.interval.ms")
        while True:
            await asyncio.sleep(min(interval, poll_interval_max / 2))
            if not self._is_stable:
                continue
            try:
                if time.monotonic() - self._context.last_poll > poll_interval_max:
                    await self._leave_because_idle()
                else:
                    await self._send_heartbeat()
            except KafkaError as error:
                self._network.coordinator_failed(error.code)

    async def _leave_because_idle(self) -> None:
        """The user does not poll: leave, so that others get the partitions. A static member only stops its
        heartbeats; the group keeps its partitions until its session expires."""
        self._lost_membership()
        if self._instance_id is None:
            await self._send_leave("the consumer did not poll within max.poll.interval.ms")
        self._forget()

    async def _send_heartbeat(self) -> None:
        if self._led_counts is not None and self._led_counts != self._counts(set(self._led_counts)):
            self._need_join()
        request = heartbeat.HeartbeatRequest(
            group_id=self._network.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
        )
        generation = self._generation
        answer = await self._network.ask_coordinator(heartbeat.API_KEY, request)
        if not answer.error_code or generation != self._generation or not self._is_stable:
            return
        error = error_from(answer.error_code)
        if error.code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._need_join()
        elif error.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._lost_membership()
            self._forget()
        elif error.code is ErrorCode.FENCED_INSTANCE_ID:
            self._fatal = error
            self._lost_membership()
        else:
            raise error

    def _need_join(self) -> None:
        self._needs_join = True
        self._notify(None)

    def _lost_membership(self) -> None:
        """This member is no longer in the group; the next poll joins again."""
        self._is_stable = False
        self._is_lost = True
        self._need_join()

    def _forget(self) -> None:
        self._is_stable = False
        self._generation = self._previous_generation = -1
        self._member_id = ""

    async def _send_leave(self, reason: str) -> None:
        identity = leave_group.MemberIdentity(
            member_id=self._member_id, group_instance_id=self._instance_id, reason=reason
        )
        request = leave_group.LeaveGroupRequest(
            group_id=self._network.group_id, members=[identity], member_id=self._member_id
        )
        await self._network.ask_coordinator_separately(leave_group.API_KEY, request)
