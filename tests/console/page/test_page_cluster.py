"""A console that watches three brokers while one is killed, and a console whose only broker is killed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect
from tests.clients.broker_process import running_broker
from tests.console.page.conftest import QUICK, ConsoleProcess, Visit, running_console

import barnabas
from barnabas.client.admin import (
    AlterConfigOp,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
)
from barnabas.testing import Cluster

TOPIC = "orders"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, overrides=QUICK) as cluster:
        with barnabas.Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, 3, 3)])
        with barnabas.Producer(bootstrap_servers=cluster.bootstrap) as producer:
            for number in range(300):
                producer.send(TOPIC, b"order %d" % number, partition=number % 3)
            producer.flush()
        yield cluster


@pytest.fixture(scope="module")
def watching(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    with running_console(cluster.bootstrap, tmp_path_factory.mktemp("console")) as console:
        yield console


def test_a_killed_broker_is_seen_where_it_matters(
    context: BrowserContext, cluster: Cluster, watching: ConsoleProcess
) -> None:
    overview = Visit(context, watching.url)
    overview.open("/")
    overview.sees(overview.page.locator(".tiles"), "3 of 3")
    replication = Visit(context, watching.url)
    replication.open(f"/topics/{TOPIC}/replication")
    expect(replication.page.locator(".replica")).to_have_count(9)
    expect(replication.page.locator(".replica.leader, .replica.in")).to_have_count(9)
    killed = cluster.leader_of((TOPIC, 0))
    overview.expects_failures = replication.expects_failures = True
    cluster.kill(killed)
    # Nobody loads a page again: the pages follow what happens.
    overview.sees(overview.page.locator(".tiles"), "2 of 3")
    overview.sees(overview.table("Brokers").locator("tbody tr", has_text="not reachable"), str(killed))
    overview.sees(overview.page.locator(".events"), "election")
    expect(replication.page.locator(".replica.dead")).to_have_count(3)
    replication.sees(replication.page.locator(".replica-card").first.locator(".epochs"), "1 from")
    timeline = Visit(context, watching.url)
    timeline.expects_failures = True
    timeline.open("/replication")
    timeline.sees(timeline.table("Under-replicated partitions"), f"{TOPIC}-0")
    timeline.sees(timeline.table("Events"), "election")
    expect(timeline.page.locator(".lanes rect.span").first).to_be_visible()
    # Messages can still be read and written.
    messages = Visit(context, watching.url)
    messages.open(f"/topics/{TOPIC}/messages?partition=0&from=beginning&limit=200")
    expect(messages.page.locator("tr.linked")).to_have_count(100)
    dialog = messages.act("Produce")
    dialog.get_by_label("Partition", exact=True).select_option("0")
    dialog.get_by_label("Value", exact=True).fill("after the failure")
    messages.finish(dialog, "Produce")
    cluster.restart(killed)
    overview.sees(overview.page.locator(".tiles"), "3 of 3")
    expect(replication.page.locator(".replica.leader, .replica.in")).to_have_count(9)
    timeline.sees(
        timeline.table("Under-replicated partitions"), "All partitions have all their replicas in sync"
    )
    for visit in (overview, replication, timeline, messages):
        visit.check()


def test_a_move_to_another_broker_is_seen_while_it_happens(
    context: BrowserContext, cluster: Cluster, watching: ConsoleProcess
) -> None:
    moved = barnabas.TopicPartition("moved", 0)
    slow = {"leader.replication.throttled.replicas": "*"}
    with barnabas.Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(moved.topic, 1, 1, configs=slow)])
        old = cluster.leader_of((moved.topic, 0))
        new = next(id_ for id_ in cluster.brokers if id_ != old)
        resource = ConfigResource(ConfigResourceType.BROKER, str(old))
        rate = "leader.replication.throttled.rate"
        admin.incremental_alter_configs({resource: [AlterConfigOp(rate, "20000")]})
        with barnabas.Producer(bootstrap_servers=cluster.bootstrap) as producer:
            for _ in range(200):
                producer.send(moved.topic, os.urandom(20_000))
        visit = Visit(context, watching.url)
        visit.open("/replication")
        visit.sees(visit.table("Reassignments under way"), "No partition is being moved")
        admin.alter_partition_reassignments({moved: [new]})
        row = visit.table("Reassignments under way").locator("tbody tr", has_text="moved-0")
        expect(row.locator("td").nth(2)).to_have_text(str(new))
        expect(row.locator("td").nth(3)).to_have_text(str(old))
        visit.sees(visit.table("Events"), f"moved-0 moves: adding [{new}], removing [{old}].")
        # It may go on at full speed.
        admin.incremental_alter_configs({resource: [AlterConfigOp(rate, None, ConfigOperation.DELETE)]})
        visit.sees(visit.table("Reassignments under way"), "No partition is being moved")
        visit.sees(visit.table("Events"), "moved-0 does not move any more.")
        visit.sees(visit.table("Events"), f"the leader is broker {new}")
    visit.check()


def test_without_any_broker_the_page_keeps_what_it_knows(context: BrowserContext, tmp_path: Path) -> None:
    with running_broker(tmp_path / "broker", QUICK) as broker:
        with barnabas.Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic("kept", 2, 1)])
        with running_console(broker.bootstrap, tmp_path) as console:
            visit = Visit(context, console.url)
            visit.expects_failures = True
            visit.open("/topics")
            visit.sees(visit.table("Topics"), "kept")
            expect(visit.page.locator(".banner")).to_be_hidden()
            broker.stop()
            visit.sees(visit.page.locator(".banner"), "answers")
            visit.sees(visit.table("Topics"), "kept")
            visit.page.reload()
            visit.sees(visit.table("Topics"), "kept")
            visit.sees(visit.page.locator(".banner"), "answers")
            broker.start()
            expect(visit.page.locator(".banner")).to_be_hidden()
            visit.check()
        visit.expects_failures = True
        # The console itself is gone: the page says so, and still shows the topics.
        visit.sees(visit.page.locator(".banner"), "does not answer")
        visit.sees(visit.table("Topics"), "kept")
