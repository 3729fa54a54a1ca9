"""Consumer groups of both protocols: what is shown, how offsets are set, and deletion."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
from tests.console.conftest import MakeTopic, Peer
from tests.console.served import Api, console, eventually

from barnabas import Consumer, Producer
from barnabas.client.admin.types import GroupListing
from barnabas.client.aio.admin import AsyncAdmin


def fill(broker: Peer, topic: str, count: int, partitions: int) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(count):
            producer.send(
                topic, b"v", partition=number % partitions, timestamp=1_700_000_000_000 + number * 1000
            )


@contextmanager
def reading(broker: Peer, topic: str, group: str, protocol: str) -> Iterator[None]:
    """A member of the group, until the block ends; its offsets are committed at its end."""
    ready, stop = threading.Event(), threading.Event()

    def run() -> None:
        with Consumer(
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            group_protocol=protocol,
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.subscribe([topic])
            while not stop.is_set():
                if list(consumer.poll(0.1)):
                    ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(60)
        yield
    finally:
        stop.set()
        thread.join(60)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_its_members_its_lag_and_a_reset(
    api: Api, broker: Peer, make_topic: MakeTopic, protocol: str
) -> None:
    topic, group = make_topic(2), f"readers/{uuid.uuid4().hex[:6]}"
    path = f"/api/groups/{quote(group, safe='')}"
    fill(broker, topic, 20, 2)
    with reading(broker, topic, group, protocol):

        def shown() -> Any:
            found = api.call("GET", path)
            detail = found.json()
            return detail if found.status_code == 200 and len(detail["offsets"]) == 2 else None

        detail = eventually(shown)
        assert (detail["type"], detail["state"]) == (protocol, "Stable")
        (member,) = detail["members"]
        assert member["assignment"] == [{"topic": topic, "partition": number} for number in (0, 1)]
        assert {row["member"] for row in detail["offsets"]} == {member["id"]}
        body = {"topics": None, "to": "earliest", "value": None}
        assert api.refused("POST", f"{path}/reset", body) == (409, "NON_EMPTY_GROUP")
        assert api.refused("DELETE", path, {"confirm": group})[0] == 409
    detail = eventually(lambda: _without_members(api, path))
    assert [(row["committed"], row["end"], row["lag"]) for row in detail["offsets"]] == [(10, 10, 0)] * 2

    expected = {"type": protocol, "topics": 1, "members": 0, "lag": 0}
    eventually(lambda: expected.items() <= _listed(api, group).items())
    assert [each["id"] for each in api.get(f"/api/topics/{topic}/groups")["items"]] == [group]

    check_resets(api, path, topic, group)
    fill(broker, topic, 10, 2)
    eventually(lambda: any(value for _, value in api.get(f"{path}/lag")["total"]))
    assert {each["topic"] for each in api.get(f"{path}/lag")["series"]} == {topic}

    assert api.refused("DELETE", path) == (400, "NOT_CONFIRMED")
    assert api.change("DELETE", path, preview="true")["preview"] == {"id": group, "offsets": 2}
    api.change("DELETE", path, {"confirm": group})
    assert api.refused("GET", path) == (404, "GROUP_ID_NOT_FOUND")


def _listed(api: Api, group: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = api.get("/api/groups", search=group)["items"]
    return found[0] if found else {}


def _without_members(api: Api, path: str) -> Any:
    detail = api.get(path)
    return detail if not detail["members"] else None


def check_resets(api: Api, path: str, topic: str, group: str) -> None:
    def rows(to: str, value: int | None = None, **query: Any) -> list[tuple[int, int]]:
        answer = api.post(f"{path}/reset", {"topics": [topic], "to": to, "value": value}, **query)
        plan = answer["preview"] if query else answer
        return [(row["from"], row["to"]) for row in plan["rows"]]

    assert rows("earliest", preview="true") == [(10, 0), (10, 0)]
    assert rows("offset", 99, preview="true") == [(10, 10), (10, 10)]
    assert rows("shift", -4, preview="true") == [(10, 6), (10, 6)]
    assert rows("time", 1_700_000_000_000 + 10_000, preview="true") == [(10, 5), (10, 5)]
    assert rows("duration", 1000, preview="true") == [(10, 10), (10, 10)]
    assert [row["committed"] for row in api.get(path)["offsets"]] == [10, 10]
    one = {"partitions": [{"topic": topic, "partition": 1}], "to": "offset", "value": 3}
    answer = api.post(f"{path}/reset", one)
    assert answer["rows"] == [{"topic": topic, "partition": 1, "from": 10, "to": 3}]
    assert f"--group {group} --topic {topic}:1 --to-offset 3 --execute" in answer["command"]
    assert [row["committed"] for row in api.get(path)["offsets"]] == [10, 3]
    assert api.refused("POST", f"{path}/reset", {"to": "offset"}) == (400, "INVALID_REQUEST")


def test_a_group_that_does_not_exist(api: Api) -> None:
    assert api.refused("GET", "/api/groups/nobody") == (404, "GROUP_ID_NOT_FOUND")
    assert api.get("/api/groups/nobody/lag") == {"series": [], "total": []}


def test_share_and_streams_groups_are_listed_only(
    broker: Peer, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Apache Kafka lists them; our brokers have no such groups, so their listing is added here."""
    real = AsyncAdmin.list_groups

    async def listed(admin: AsyncAdmin, **options: Any) -> list[GroupListing]:
        return [
            *await real(admin, **options),
            GroupListing("shared", "share", "share", "Stable"),
            GroupListing("streaming", "streams", "streams", "NotReady"),
            GroupListing("connect-copies", "classic", "connect", "Stable"),
        ]

    monkeypatch.setattr(AsyncAdmin, "list_groups", listed)
    with console(broker.bootstrap) as api:
        items = {item["id"]: item for item in api.get("/api/groups", size=500)["items"]}
        assert (items["shared"]["type"], items["shared"]["state"]) == ("share", "Stable")
        assert (items["streaming"]["type"], items["streaming"]["state"]) == ("streams", "NotReady")
        assert items["shared"]["members"] is items["shared"]["lag"] is None
        assert "connect-copies" not in items
        detail = api.get("/api/groups/shared")
        assert detail["members"] == detail["offsets"] == []
        assert detail["note"].startswith("This is a share group: ")
        assert api.get("/api/groups/shared/lag") == {"series": [], "total": []}
        refused = (501, "UNSUPPORTED_GROUP_TYPE")
        assert api.refused("DELETE", "/api/groups/shared", {"confirm": "shared"}) == refused
        assert api.refused("POST", "/api/groups/shared/reset", {"to": "earliest"}) == refused
