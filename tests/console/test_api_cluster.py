"""The console and a cluster: replicas as they are, and what is shown while brokers are down."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.console.served import Api, console, eventually

from barnabas import Admin, Producer
from barnabas.client.admin import NewTopic
from barnabas.testing import Broker, Cluster

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
TOPIC = "orders"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, 3, 3, {"min.insync.replicas": "2"})])
        yield cluster


@pytest.fixture(scope="module")
def cluster_api(cluster: Cluster) -> Iterator[Api]:
    with console(cluster.bootstrap) as api:
        yield api


def write(cluster: Cluster, count: int) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        futures = [producer.send(TOPIC, b"v", partition=number % 3) for number in range(count)]
        for future in futures:
            future.result(60)


def test_a_killed_broker_is_shown_and_comes_back(cluster: Cluster, cluster_api: Api) -> None:
    api = cluster_api
    write(cluster, 30)
    partitions = eventually(lambda: _all_equal(api))
    assert [each["end"] for each in partitions[0]["replicas"]] == [10, 10, 10]
    assert {each["high_watermark"] for each in partitions[0]["replicas"]} == {10}
    victim = partitions[0]["leader"]

    cluster.kill(victim)
    eventually(lambda: _is_down(api, victim))
    overview = api.get("/api/overview")
    texts = " ".join(line["text"] for line in overview["health"])
    assert f"Broker {victim} is gone." in texts
    assert overview["counts"]["under_replicated"] >= 3 and overview["counts"]["at_min_isr"] >= 3
    assert [item["name"] for item in api.get("/api/topics", problem="under_replicated")["items"]] == [TOPIC]
    detail = api.get(f"/api/brokers/{victim}")
    # What was known about it is still shown.
    assert detail["alive"] is False and detail["log_dirs"]

    write(cluster, 30)
    assert len(api.get(f"/api/topics/{TOPIC}/messages", limit=100)["items"]) == 60
    shown = api.get(f"/api/topics/{TOPIC}/replication")
    moved = shown["partitions"][0]
    assert moved["leader"] != victim
    dead = next(each for each in moved["replicas"] if each["broker"] == victim)
    assert (dead["alive"], dead["in_sync"], dead["end"]) == (False, False, None)
    assert [each["epoch"] for each in moved["epochs"]] == sorted(
        (each["epoch"] for each in moved["epochs"]), reverse=True
    )
    assert moved["epochs"][0] == {"epoch": moved["leader_epoch"], "start": 10}
    kinds = {(event["kind"], event["topic"]) for event in api.get("/api/replication")["timeline"]}
    assert {("broker", None), ("election", TOPIC), ("isr", TOPIC)} <= kinds
    assert all(event["topic"] == TOPIC for event in shown["timeline"])

    cluster.brokers[victim].start()
    eventually(lambda: _all_equal(api))
    assert any(
        event["text"] == f"Broker {victim} is here." for event in api.get("/api/replication")["timeline"]
    )
    eventually(lambda: api.get("/api/overview")["counts"]["under_replicated"] == 0)


def _all_equal(api: Api) -> Any:
    """The partitions, once all replicas have everything."""
    partitions = api.get(f"/api/topics/{TOPIC}/replication")["partitions"]
    replicas = [replica for each in partitions for replica in each["replicas"]]
    is_equal = all(each["in_sync"] and each["lag"] == 0 for each in replicas)
    watermarks = all(each["high_watermark"] == each["end"] for each in replicas)
    return partitions if is_equal and watermarks else None


def _is_down(api: Api, broker: int) -> bool:
    return any(each["id"] == broker and not each["alive"] for each in api.get("/api/overview")["brokers"])


def test_without_any_broker_the_last_state_is_shown_with_its_age() -> None:
    with Broker(subprocess=True) as broker, console(broker.bootstrap) as api:
        api.post("/api/topics", {"name": "kept", "partitions": 1})
        api.get("/api/groups")
        broker.kill()
        since = eventually(lambda: api.get("/api/overview")["stale_since_ms"])
        assert since > 1_700_000_000_000
        assert [each["name"] for each in api.get("/api/topics")["items"]] == ["kept"]
        assert api.get("/api/topics")["stale_since_ms"] == since
        assert api.get("/api/brokers")["items"][0]["alive"] is False
        assert api.get("/health")["status"] == "degraded"
        assert api.begin()["csrf"]
        assert api.get("/api/topics/kept")["stale_since_ms"] == since
        status, code = api.refused("GET", "/api/topics/kept/messages")
        assert (status, code) == (503, "BROKER_UNAVAILABLE")
        assert api.refused("POST", "/api/topics", {"name": "more"}) == (503, "BROKER_UNAVAILABLE")
        broker.start()
        eventually(lambda: api.get("/api/overview")["stale_since_ms"] is None)
