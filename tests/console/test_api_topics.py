"""Topics, settings and the overview, as the page gets them."""

from tests.console.conftest import MakeTopic, Peer
from tests.console.served import Api, eventually

from barnabas import Admin, Producer
from barnabas.client.types import TopicPartition


def names(api: Api, **query: object) -> list[str]:
    return [item["name"] for item in api.get("/api/topics", **query)["items"]]


def test_a_topic_is_created_grown_emptied_and_deleted(api: Api, broker: Peer, admin: Admin) -> None:
    body = {
        "name": "shop",
        "partitions": 2,
        "configs": {"cleanup.policy": "delete", "retention.ms": "1000000"},
    }
    preview = api.post("/api/topics", body, preview="true")
    assert preview["preview"] == {"name": "shop", "partitions": 2, "replication": 1}
    assert "shop" not in admin.list_topics()
    made = api.post("/api/topics", body)
    assert made["command"] == (
        f"barnabas topics --bootstrap-server {broker.bootstrap} --create --topic shop --partitions 2 "
        "--config cleanup.policy=delete --config retention.ms=1000000"
    )
    # The list knows it at once, not only after the next look.
    assert "shop" in names(api, search="sho")
    assert api.refused("POST", "/api/topics", body) == (409, "TOPIC_ALREADY_EXISTS")

    api.post("/api/topics/shop/partitions", {"count": 3})
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(30):
            producer.send("shop", b"value", partition=number % 3)
    topic = api.get("/api/topics/shop")
    assert [each["end"] - each["start"] for each in topic["partitions"]] == [10, 10, 10]
    assert topic["messages"] == 30

    assert api.refused("POST", "/api/topics/shop/empty", {"confirm": "shoe"}) == (400, "NOT_CONFIRMED")
    plan = api.post("/api/topics/shop/empty", preview="true")["preview"]
    assert plan["partitions"][0] == {"partition": 0, "from": 0, "to": 10}
    api.post("/api/topics/shop/empty", {"confirm": "shop"})
    assert api.get("/api/topics/shop")["messages"] == 0

    assert api.refused("DELETE", "/api/topics/shop") == (400, "NOT_CONFIRMED")
    assert "shop" in admin.list_topics()
    api.change("DELETE", "/api/topics/shop", {"confirm": "shop"})
    assert "shop" not in names(api)
    assert api.refused("GET", "/api/topics/shop") == (404, "UNKNOWN_TOPIC_OR_PARTITION")


def test_thousands_of_topics_are_paged_and_searched_by_the_server(api: Api, make_topic: MakeTopic) -> None:
    made = sorted(make_topic() for _ in range(7))
    everything = eventually(lambda: _if_all(names(api, size=500), made))
    first = api.get("/api/topics", search="topic-", size=3, page=1)
    assert len(first["items"]) == 3 and first["total"] >= 7
    assert not set(names(api, size=3, page=2)) & {
        item["name"] for item in api.get("/api/topics", size=3)["items"]
    }
    assert everything == sorted(everything)
    assert names(api, size=500, order="desc") == sorted(everything, reverse=True)
    assert api.refused("GET", "/api/topics", sort="nothing") == (400, "INVALID_REQUEST")
    assert api.refused("GET", "/api/topics", size=501) == (400, "INVALID_REQUEST")


def _if_all(shown: list[str], made: list[str]) -> list[str] | None:
    return shown if set(made) <= set(shown) else None


def test_settings_have_defaults_sources_and_explanations(api: Api, make_topic: MakeTopic) -> None:
    topic = make_topic(retention_ms="60000")
    path = f"/api/topics/{topic}/configs"
    items = {item["name"]: item for item in api.get(path)["items"]}
    retention = items["retention.ms"]
    assert (retention["value"], retention["default"], retention["source"]) == ("60000", "604800000", "topic")
    assert retention["type"] == "long" and retention["documentation"]
    found = [item["name"] for item in api.get(path, search="retention.b")["items"]]
    assert found == ["local.retention.bytes", "retention.bytes"]

    changed = api.change(
        "PATCH", path, {"set": {"cleanup.policy": "compact,delete"}, "reset": ["retention.ms"]}
    )
    assert "--add-config 'cleanup.policy=[compact,delete]' --delete-config retention.ms" in changed["command"]
    items = {item["name"]: item for item in api.get(path)["items"]}
    assert (items["retention.ms"]["source"], items["cleanup.policy"]["value"]) == (
        "default",
        "compact,delete",
    )
    wrong = {"set": {"retention.ms": "soon"}}
    assert api.refused("PATCH", path, wrong, preview="true") == (400, "INVALID_CONFIG")
    assert api.refused("PATCH", path, wrong) == (400, "INVALID_CONFIG")
    shown = eventually(lambda: _policy(api, topic))
    assert shown == "compact,delete"


def _policy(api: Api, topic: str) -> str | None:
    return str(api.get(f"/api/topics/{topic}")["cleanup_policy"] or "")


def test_the_overview_counts_and_the_rates_move(api: Api, broker: Peer, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:

        def has_rate() -> bool:
            producer.send(topic, b"x" * 100).result(30)
            points = api.get("/api/series", name="messages", topic=topic)["points"]
            return any(value for _, value in points)

        eventually(has_rate)
    overview = api.get("/api/overview")
    assert overview["health"] == [
        {"severity": "ok", "text": "All brokers answer, and all replicas are in sync.", "link": None}
    ]
    (shown,) = overview["brokers"]
    assert (shown["id"], shown["alive"], shown["is_controller"]) == (1, True, True)
    assert overview["controller_id"] == 1 and overview["counts"]["offline"] == 0
    assert any(value for _, value in api.get("/api/series", name="messages")["points"])
    detail = api.get("/api/brokers/1")
    replicas = {(each["topic"], each["partition"]) for each in detail["log_dirs"][0]["replicas"]}
    assert TopicPartition(topic, 0) in replicas and detail["log_dirs"][0]["total_bytes"] > 0
    found = api.get("/api/brokers/1/configs", search="log.dirs")["items"]
    assert found[0]["read_only"] is True
    assert api.refused("GET", "/api/brokers/9") == (404, "NOT_FOUND")


def test_events_have_samples(api: Api) -> None:
    for name, data in api.events("/api/events"):
        if name == "sample":
            assert data["stale_since_ms"] is None and data["messages_per_second"] >= 0
            return


def test_the_api_describes_itself(api: Api) -> None:
    document = api.get("/api/openapi.json")
    assert document["openapi"] == "3.1.0"
    create = document["paths"]["/api/topics"]["post"]
    schema = create["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["name"]
    assert {"session": [], "token": []} in create["security"]
    identifiers = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(identifiers) == len(set(identifiers)) > 30
    # Every route that is described is served, and answers a wrong method with the right ones.
    for path, methods in document["paths"].items():
        if "get" not in methods:
            status, code = api.refused("GET", path.replace("{", "").replace("}", ""))
            assert (status, code) == (405, "METHOD_NOT_ALLOWED")
    assert api.refused("GET", "/api/nothing/here/at/all") == (404, "NOT_FOUND")
