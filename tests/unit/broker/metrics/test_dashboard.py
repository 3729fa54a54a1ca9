"""Every query of the Grafana dashboard is run on a live /metrics and must give numbers. When a metric or a
label is renamed, the query that uses it finds nothing and fails here."""

import json
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from tests.support.promql import Evaluation, NoSamplesError, Scrape
from tests.support.raw_calls import Topic, batch_of, fetch_partition, new_topic, produce_batch
from tests.support.raw_client import RawClient
from tests.support.raw_groups import RawGroup
from tests.support.raw_transactions import RawTransactional
from tests.support.visible_broker import VisibleBroker, visible_broker

from barnabas.client.admin import Admin
from barnabas.security.quotas import CLIENT_ID

DASHBOARD = Path(__file__).parents[4] / "docs" / "grafana-dashboard.json"
TARGET = {"job": "barnabas", "instance": "127.0.0.1:9404"}
VARIABLES = {"$job": "barnabas", "$instance": "127.0.0.1:9404", "$__rate_interval": "1m"}


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return loaded


def queries() -> list[tuple[str, str, str]]:
    """Title of the panel, expression, legend."""
    return [
        (panel["title"], target["expr"], target["legendFormat"])
        for panel in dashboard()["panels"]
        for target in panel.get("targets", [])
    ]


def filled_in(text: str) -> str:
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    assert "$" not in text, f"an unknown variable in {text}"
    return text


def some_traffic(client: RawClient, topic: Topic) -> None:
    for _ in range(3):
        produce_batch(client, topic, batch_of(b"a record"))
        fetch_partition(client, topic)


def scrape(running: VisibleBroker) -> Scrape:
    with urlopen(f"http://127.0.0.1:{running.broker.metrics_port}/metrics") as response:
        return Scrape(response.read().decode(), time.monotonic(), **TARGET)


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluation]:
    """Two scrapes of a broker that has clients with quotas, a group that is behind, and an open
    transaction."""
    overrides = {"barnabas.metrics.port": "0", "group.initial.rebalance.delay.ms": "0"}
    with (
        visible_broker(tmp_path_factory.mktemp("dashboard"), overrides) as running,
        RawClient("127.0.0.1", running.port) as client,
    ):
        with Admin(bootstrap_servers=f"127.0.0.1:{running.port}") as admin:
            quotas = dict.fromkeys(("producer_byte_rate", "consumer_byte_rate", "request_percentage"), 1e9)
            admin.alter_client_quotas({((CLIENT_ID, client.client_id),): quotas})
        topic = new_topic(client, name="orders")
        some_traffic(client, topic)
        group = RawGroup(client, "workers")
        group.find()
        assert group.commit(topic, 1) == 0
        producer = RawTransactional(client, "mover")
        producer.init()
        assert producer.produce(topic, b"in a transaction") == 0
        before = scrape(running)
        some_traffic(client, topic)
        yield Evaluation(before, scrape(running))


@pytest.mark.parametrize(
    ("title", "expression", "legend"), queries(), ids=[title for title, _, _ in queries()]
)
def test_the_query_gives_numbers(evaluation: Evaluation, title: str, expression: str, legend: str) -> None:
    result = evaluation.run(filled_in(expression))
    assert any(math.isfinite(value) for value in result.values()), f"{title}: only NaN"
    named = set(re.findall(r"\{\{(\w+)\}\}", legend))
    for labels in result:
        assert named <= {name for name, _ in labels}, f"{title}: the legend names labels that are not there"


def test_figures_of_the_queries(evaluation: Evaluation) -> None:
    """The evaluation itself gives what has happened, not just any number."""
    by_title = {title: filled_in(expression) for title, expression, _ in reversed(queries())}
    (lag,) = evaluation.run(by_title["Lag by group and topic"]).values()
    assert lag == 6
    (size,) = (
        value
        for labels, value in evaluation.run(by_title["Bytes in by topic"]).items()
        if ("topic", "orders") in labels
    )
    assert size > 0
    p99 = evaluation.run(by_title["Latency p99 by API"])[frozenset({("request", "Produce")})]
    p50 = evaluation.run(by_title["Latency p50 by API"])[frozenset({("request", "Produce")})]
    assert 0 < p50 <= p99 < 60
    assert 0 < next(iter(evaluation.run(by_title["CPU"]).values())) < 64


@pytest.mark.parametrize(
    "expression",
    [
        "sum(kafka_renamed_metric)",
        'kafka_log_log_size{broker="1"}',
        'kafka_log_log_size{topic="none"}',
        "sum by (broker) (kafka_log_log_size)",
        "rate(kafka_log_log_size_total[1m])",
    ],
)
def test_a_query_for_something_that_is_not_there_fails(evaluation: Evaluation, expression: str) -> None:
    with pytest.raises(NoSamplesError):
        evaluation.run(expression)


def test_the_variables_find_their_values(evaluation: Evaluation) -> None:
    variables = [each for each in dashboard()["templating"]["list"] if each["type"] == "query"]
    assert [variable["name"] for variable in variables] == ["job", "instance"]
    for variable in variables:
        match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
        assert match is not None
        assert variable["query"]["query"] == variable["definition"]
        for labels in evaluation.run(filled_in(match[1])):
            assert match[2] in dict(labels)


# A broker that is alone has no samples of these.
ONLY_IN_CLUSTERS = {
    "barnabas_follower_lag",
    "barnabas_zookeeper_connected",
    "kafka_server_sessionexpirelistener_zookeeperexpires_total",
}


def test_every_metric_that_the_guide_names_is_there(evaluation: Evaluation) -> None:
    # The metrics of pipelines are those of another process.
    guide = (DASHBOARD.parent / "monitoring.md").read_text().partition("## Pipelines")[0]
    names = set(re.findall(r"`((?:kafka|barnabas|process)_\w+)`", guide))
    assert len(names) > 15
    assert names >= ONLY_IN_CLUSTERS
    for name in names - ONLY_IN_CLUSTERS:
        suffix = "_count" if name.endswith("totaltime_seconds") else ""
        evaluation.run(name + suffix)


def test_the_dashboard_is_tidy() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        if panel["type"] != "row":
            assert panel["description"]
            assert panel["datasource"]["uid"] == "${datasource}"
