"""Consumer groups of both protocols: the list, one group, its lag over time, and deletion.

Share and streams groups, which Apache Kafka has, are only listed."""

from typing import Any

from barnabas.client.admin import AdminError, ConsumerGroupDescription, MemberDescription, OffsetSpec
from barnabas.client.errors import KafkaError
from barnabas.client.types import OffsetAndMetadata, TopicPartition
from barnabas.console.calls import Call
from barnabas.console.failures import ApiError, is_unavailable, not_found
from barnabas.console.group_sampling import GroupState
from barnabas.console.routing import LIST_QUERY, Route
from barnabas.console.sampling import Sampler
from barnabas.console.shapes import Text

Item = dict[str, Any]


async def groups(call: Call) -> Item:
    sampler = call.workspace.sampler
    await sampler.ready()
    await sampler.groups.ready()
    items = [_item(sampler, id_, state) for id_, state in sampler.groups.states.items()]
    stale = sampler.stale_since_ms or sampler.groups.stale_since_ms
    return call.page_of(items, stale_since_ms=stale, name="id")


def _item(sampler: Sampler, id_: str, state: GroupState) -> Item:
    described = state.description
    return {
        "id": id_,
        "type": state.listing.type or "classic",
        "state": state.listing.state or (described.state if described is not None else None),
        "members": None if described is None else len(described.members),
        "topics": None if state.is_only_listed else len({partition.topic for partition in state.offsets}),
        "lag": sampler.groups.lag_of(state),
        "coordinator": None if described is None else described.coordinator.id,
    }


async def group(call: Call) -> Item:
    sampler = call.workspace.sampler
    await sampler.ready()
    await sampler.groups.ready()
    id_ = call.path["group"]
    admin = call.workspace.admin
    state = sampler.groups.states.get(id_)
    if state is not None and state.is_only_listed:
        return _listed_detail(id_, state) | {"stale_since_ms": sampler.groups.stale_since_ms}
    try:
        sampler.check_answering()
        described = (await admin.describe_consumer_groups([id_]))[id_]
        committed = await admin.list_consumer_group_offsets(id_)
        assigned = {each for member in described.members for each in member.assignment}
        ends = await _ends(call, {*committed, *assigned})
    except KafkaError as error:
        if state is None or state.description is None or not is_unavailable(error):
            raise
        stale = sampler.stale_since_ms or sampler.groups.stale_since_ms
        return _detail(state.description, state.offsets, sampler.ends) | {"stale_since_ms": stale}
    return _detail(described, committed, ends) | {"stale_since_ms": None}


def _listed_detail(id_: str, state: GroupState) -> Item:
    return {
        "id": id_,
        "type": state.listing.type,
        "state": state.listing.state,
        "protocol_type": state.listing.protocol,
        "assignor": None,
        "coordinator": None,
        "epoch": None,
        "target_epoch": None,
        "topics": None,
        "lag": None,
        "members": [],
        "offsets": [],
        "note": _only_listed(state),
    }


def _only_listed(state: GroupState) -> str:
    kind = state.listing.type
    return (
        f"This is a {kind} group: the console does not read its members and offsets and cannot change it; "
        f"Kafka's kafka-{kind}-groups.sh does."
    )


def check_changeable(call: Call, group: str) -> None:
    """Refuse to change a group that is only listed."""
    state = call.workspace.sampler.groups.states.get(group)
    if state is not None and state.is_only_listed:
        raise ApiError(501, "UNSUPPORTED_GROUP_TYPE", _only_listed(state))


async def _ends(call: Call, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
    """The ends of the partitions that exist. One without a leader would be waited for, so it is left out."""
    known = call.workspace.sampler.metadata
    asked = [
        each for each in partitions if each.topic not in known.topics or known.leader_of(each) is not None
    ]
    try:
        found = await call.workspace.admin.list_offsets(dict.fromkeys(asked, OffsetSpec.LATEST))
    except AdminError as error:
        found = error.results
    return {partition: listed.offset for partition, listed in found.items()}


def _detail(
    described: ConsumerGroupDescription,
    committed: dict[TopicPartition, OffsetAndMetadata],
    ends: dict[TopicPartition, int],
) -> Item:
    owners = {each: member for member in described.members for each in member.assignment}
    rows = [_offset(each, committed.get(each), ends.get(each), owners) for each in {*committed, *owners}]
    rows.sort(key=lambda row: (row["topic"], row["partition"]))
    lags = [row["lag"] for row in rows if row["lag"] is not None]
    return {
        "id": described.group_id,
        "type": described.type,
        "state": described.state,
        "protocol_type": described.protocol_type,
        "assignor": described.assignor,
        "coordinator": described.coordinator.id,
        "epoch": described.group_epoch,
        "target_epoch": described.target_assignment_epoch,
        "topics": len({row["topic"] for row in rows}),
        "lag": sum(lags) if lags else None,
        "members": [_member(member) for member in described.members],
        "offsets": rows,
        "note": None,
    }


def _member(member: MemberDescription) -> Item:
    return {
        "id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "instance_id": member.group_instance_id,
        "epoch": member.member_epoch,
        "rack": member.rack_id,
        "subscription": list(member.subscribed_topics or ()),
        "assignment": [
            {"topic": each.topic, "partition": each.partition} for each in sorted(member.assignment)
        ],
    }


def _offset(
    partition: TopicPartition,
    committed: OffsetAndMetadata | None,
    end: int | None,
    owners: dict[TopicPartition, MemberDescription],
) -> Item:
    at = None if committed is None else committed.offset
    owner = owners.get(partition)
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "committed": at,
        "end": end,
        "lag": None if at is None or end is None else max(0, end - at),
        "leader_epoch": None if committed is None or committed.leader_epoch < 0 else committed.leader_epoch,
        "metadata": None if committed is None else committed.metadata,
        "member": None if owner is None else owner.member_id,
    }


async def lag(call: Call) -> Item:
    sampler = call.workspace.sampler
    await sampler.groups.ready()
    state = sampler.groups.states.get(call.path["group"])
    if state is None:
        # A group that was not looked at yet, or that is gone.
        return {"series": [], "total": []}
    series = [
        {"topic": each.topic, "partition": each.partition, "points": list(points)}
        for each, points in sorted(state.by_partition.items())
    ]
    return {"series": series, "total": list(state.total)}


async def delete(call: Call) -> Item:
    id_ = call.path["group"]
    check_changeable(call, id_)
    call.check_confirmed(id_)
    command = call.command("consumer-groups", "--delete", "--group", id_)
    if call.is_preview:
        committed = await call.workspace.admin.list_consumer_group_offsets(id_)
        if not committed and id_ not in call.workspace.sampler.groups.states:
            raise not_found(f"There is no group {id_!r}.")
        return {"command": command, "preview": {"id": id_, "offsets": len(committed)}}
    await call.workspace.admin.delete_consumer_groups([id_])
    call.workspace.sampler.groups.states.pop(id_, None)
    return {"command": command, "id": id_}


ROUTES = (
    Route("GET", "/api/groups", groups, "The consumer groups", query=LIST_QUERY),
    Route("GET", "/api/groups/{group}", group, "One group: members, offsets and lag"),
    Route("GET", "/api/groups/{group}/lag", lag, "The lag of the last half hour"),
    Route(
        "DELETE",
        "/api/groups/{group}",
        delete,
        "Delete a group with its offsets",
        body={"confirm": Text("the name of the group again", default="")},
    ),
)
