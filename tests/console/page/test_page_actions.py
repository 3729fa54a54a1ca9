"""Actions: each shows the equivalent command before and after, and does what it says."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.console.page.conftest import MakeTopic, Visit

import barnabas
from barnabas import TopicPartition
from barnabas.client.admin import ConfigResource, ConfigResourceType
from barnabas.client.errors import KafkaError
from barnabas.client.types import OffsetAndMetadata


def test_a_topic_is_created(visit: Visit, admin: barnabas.Admin) -> None:
    visit.open("/topics")
    dialog = visit.act("Create topic")
    dialog.get_by_label("Name").fill("created-here")
    dialog.get_by_label("Partitions").fill("4")
    dialog.get_by_label("Settings").fill("retention.ms=60000\ncleanup.policy=compact")
    visit.sees(dialog.locator(".command"), "--partitions 4")
    command = visit.finish(dialog, "Create")
    assert "topics" in command
    assert "--create" in command
    assert "created-here" in command
    expect(visit.page.locator("main h1")).to_have_text("created-here")
    assert len(admin.describe_topics(["created-here"])["created-here"].partitions) == 4


def test_a_topic_that_cannot_be_created_says_why(visit: Visit, make_topic: MakeTopic) -> None:
    visit.expects_failures = True
    topic = make_topic("taken")
    visit.open("/topics")
    dialog = visit.act("Create topic")
    dialog.get_by_label("Name").fill(topic)
    expect(dialog.get_by_role("alert")).to_contain_text("exist")
    expect(dialog.get_by_role("button", name="Create", exact=True)).to_be_disabled()


def test_settings_are_changed_and_reset(visit: Visit, make_topic: MakeTopic) -> None:
    topic = make_topic("settings")
    visit.open(f"/topics/{topic}/configs?search=retention.ms")
    row = visit.table("Settings").locator("tbody tr", has_text=re.compile("^retention.ms"))
    row.locator("summary").click()
    expect(row.locator("details p")).not_to_be_empty()
    row.get_by_role("button", name="Set", exact=True).click()
    dialog = visit.page.locator("dialog")
    dialog.get_by_label(f"Value for topic {topic}").fill("123456")
    command = visit.finish(dialog, "Set")
    assert "retention.ms=123456" in command
    expect(row).to_contain_text("123456")
    row.get_by_role("button", name="Reset", exact=True).click()
    command = visit.finish(visit.page.locator("dialog"), "Reset")
    assert "--delete-config" in command
    expect(row).not_to_contain_text("123456")


def test_a_setting_of_a_broker_is_changed_and_reset(visit: Visit, admin: barnabas.Admin) -> None:
    id_ = admin.describe_cluster().nodes[0].id
    resource = ConfigResource(ConfigResourceType.BROKER, str(id_))
    before = admin.describe_configs([resource])[resource]["message.max.bytes"].value
    visit.open(f"/brokers/{id_}/configs?search=message.max.bytes")
    row = visit.table("Settings").locator("tbody tr", has_text=re.compile("^message.max.bytes"))
    row.get_by_role("button", name="Set", exact=True).click()
    dialog = visit.page.locator("dialog")
    dialog.get_by_label(f"Value for broker {id_}").fill("1234567")
    command = visit.finish(dialog, "Set")
    assert "message.max.bytes=1234567" in command
    visit.sees(row, "1234567")
    visit.sees(row, "dynamic broker")
    assert admin.describe_configs([resource])[resource]["message.max.bytes"].value == "1234567"
    row.get_by_role("button", name="Reset", exact=True).click()
    assert "--delete-config" in visit.finish(visit.page.locator("dialog"), "Reset")
    expect(row).not_to_contain_text("1234567")
    assert admin.describe_configs([resource])[resource]["message.max.bytes"].value == before


def test_partitions_are_added(visit: Visit, admin: barnabas.Admin, make_topic: MakeTopic) -> None:
    topic = make_topic("grown", 2)
    visit.open(f"/topics/{topic}")
    expect(visit.table("Partitions").locator("tbody tr")).to_have_count(2)
    dialog = visit.act("Add partitions")
    dialog.get_by_label("Partitions in total").fill("5")
    assert "--partitions 5" in visit.finish(dialog, "Add")
    expect(visit.table("Partitions").locator("tbody tr")).to_have_count(5)
    assert len(admin.describe_topics([topic])[topic].partitions) == 5


def test_a_topic_is_emptied_and_deleted_only_with_its_name(
    visit: Visit, admin: barnabas.Admin, producer: barnabas.Producer, make_topic: MakeTopic
) -> None:
    topic = make_topic("doomed")
    producer.send(topic, b"gone soon").result(30)
    visit.open(f"/topics/{topic}")
    dialog = visit.act("Empty")
    visit.sees(dialog.locator(".command"), "delete-records")
    expect(dialog.get_by_role("button", name="Empty", exact=True)).to_be_disabled()
    dialog.get_by_label("Type the name").fill(topic)
    visit.finish(dialog, "Empty")
    expect(visit.table("Partitions").locator("tbody tr")).to_have_text(re.compile(r"1\s*1\s*0"))
    dialog = visit.act("Delete")
    dialog.get_by_label("Type the name").fill(topic[:-1])
    visit.sees(dialog.locator(".command"), "--delete")
    expect(dialog.get_by_role("button", name="Delete", exact=True)).to_be_disabled()
    dialog.get_by_label("Type the name").fill(topic)
    assert "--delete" in visit.finish(dialog, "Delete")
    expect(visit.page.locator("main h1")).to_have_text("Topics")
    assert topic not in admin.list_topics()


def test_a_message_is_produced_and_produced_again(visit: Visit, make_topic: MakeTopic) -> None:
    topic = make_topic("produced", 2)
    visit.open(f"/topics/{topic}/messages")
    visit.sees(visit.table("Messages"), "No messages match")
    dialog = visit.act("Produce")
    dialog.get_by_label("Partition", exact=True).select_option("1")
    dialog.get_by_label("Key as").select_option("text")
    dialog.get_by_label("Key", exact=True).fill("table 7")
    dialog.get_by_label("Value as").select_option("json")
    dialog.get_by_label("Value", exact=True).fill('{"order": 9007199254740993}')
    dialog.get_by_label("Headers").fill("trace: 7f3a")
    assert "console-producer" in visit.finish(dialog, "Produce")
    row = visit.table("Messages").locator("tbody tr.linked")
    expect(row).to_have_count(1)
    visit.sees(row, "table 7")
    row.click()
    detail = visit.page.locator(".message-detail")
    # More digits than a JavaScript number keeps.
    visit.sees(detail, "9007199254740993")
    visit.sees(detail, "trace")
    detail.get_by_role("button", name="Produce again…").click()
    dialog = visit.page.locator("dialog")
    expect(dialog.get_by_label("Key", exact=True)).to_have_value("table 7")
    visit.finish(dialog, "Produce")
    expect(visit.table("Messages").locator("tbody tr.linked")).to_have_count(2)


@pytest.fixture
def group(bootstrap: str, producer: barnabas.Producer, make_topic: MakeTopic) -> tuple[str, str]:
    """A group without members that has read 4 of 10 messages of a topic; returns both names."""
    topic = make_topic("read", 2)
    for number in range(10):
        producer.send(topic, b"message", partition=number % 2).result(30)
    name = f"group-of-{topic}"
    settings = {"bootstrap_servers": bootstrap, "group_id": name, "enable_auto_commit": False}
    with barnabas.Consumer(**settings) as consumer:
        consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        consumer.commit_sync(
            {TopicPartition(topic, 0): OffsetAndMetadata(3), TopicPartition(topic, 1): OffsetAndMetadata(1)}
        )
    return name, topic


def test_offsets_are_reset_with_a_preview_and_the_group_is_deleted(
    visit: Visit, admin: barnabas.Admin, group: tuple[str, str]
) -> None:
    name, topic = group
    visit.open(f"/groups?search={name}")
    row = visit.table("Groups").locator("tbody tr")
    expect(row).to_have_count(1)
    visit.sees(row, "6")
    row.click()
    expect(visit.page.locator("main h1")).to_have_text(name)
    visit.sees(visit.table("Offsets"), topic)
    dialog = visit.act("Reset offsets")
    dialog.get_by_label("Topic", exact=True).select_option(topic)
    dialog.get_by_label("To", exact=True).select_option("shift")
    dialog.get_by_label("By").fill("-1")
    preview = dialog.get_by_role("table", name="What would change").locator("tbody tr")
    expect(preview).to_have_text([re.compile(r"0\s*3\s*2\s*-1"), re.compile(r"1\s*1\s*0\s*-1")])
    command = visit.finish(dialog, "Reset")
    assert "--reset-offsets" in command
    assert "--shift-by -1" in command
    committed = admin.list_consumer_group_offsets(name)
    assert committed[TopicPartition(topic, 0)].offset == 2
    dialog = visit.act("Delete")
    dialog.get_by_label("Type the name").fill(name)
    assert "--delete" in visit.finish(dialog, "Delete")
    expect(visit.page.locator("main h1")).to_have_text("Groups")


@pytest.fixture(params=["classic", "consumer"])
def member(
    request: pytest.FixtureRequest, bootstrap: str, producer: barnabas.Producer, make_topic: MakeTopic
) -> Iterator[tuple[str, str, str]]:
    """A group of each protocol with one member; its name, its topic, its protocol."""
    topic = make_topic("joined", 2)
    producer.send(topic, b"message", partition=0).result(30)
    protocol = request.param
    settings = {"bootstrap_servers": bootstrap, "group_protocol": protocol, "client_id": "till-1"}
    with barnabas.Consumer(
        **settings, group_id=f"members-of-{topic}", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([topic])
        while not consumer.poll(1.0):
            continue
        consumer.commit_sync()
        yield f"members-of-{topic}", topic, protocol


def test_members_of_both_protocols_are_shown(visit: Visit, member: tuple[str, str, str]) -> None:
    name, topic, protocol = member
    visit.open(f"/groups/{name}/members")
    visit.sees(visit.page.locator(".tiles"), protocol)
    visit.sees(visit.table("Members"), "till-1")
    visit.sees(visit.table("Members"), f"{topic}: 0, 1")
    visit.page.get_by_role("link", name="Offsets and lag").click()
    expect(visit.table("Offsets").locator("tbody tr").first).to_have_text(
        re.compile(rf"{topic}\s*0\s*1\s*1\s*0")
    )
    visit.page.goto(f"{visit.base}/topics/{topic}/groups")
    visit.sees(visit.table("Groups with offsets here"), name)


def test_an_open_transaction_is_shown_and_aborted(
    visit: Visit, bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = make_topic("held")
    name = f"writer-of-{topic}"
    with barnabas.Producer(bootstrap_servers=bootstrap, transactional_id=name) as writer:
        writer.init_transactions()
        writer.begin_transaction()
        writer.send(topic, json.dumps({"open": True}).encode()).result(30)
        visit.open("/transactions")
        row = visit.table("Transactional ids").locator("tbody tr", has_text=name)
        visit.sees(row, "Ongoing")
        holding = visit.table("Partitions that an open transaction holds back")
        visit.sees(holding, f"{topic}-0")
        row.get_by_role("button", name="Abort").click()
        dialog = visit.page.locator("dialog")
        dialog.get_by_label("Type the name").fill(name)
        visit.finish(dialog, "Abort")
        expect(holding).not_to_contain_text(f"{topic}-0")
        with pytest.raises(KafkaError):
            writer.commit_transaction()
