"""The broker is killed around the end of a transaction: a decided transaction ends on every partition,
for records and offsets; one that was not decided stays open."""

import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.broker_process import BrokerProcess, running_broker
from tests.clients.client import wait_until
from tests.clients.reading import everything
from tests.faults.transaction_stage import (
    QUICK,
    aborted,
    connected,
    cut_last_batches,
    ends,
    settled_topic,
    state_of,
    wait_for_state,
    wait_until_nothing_hangs,
    write,
)
from tests.support.raw_calls import Topic
from tests.support.raw_groups import RawGroup
from tests.support.raw_transactions import COME_AGAIN, END_TXN, NEW, OLD, RawTransactional

from barnabas.errors import ErrorCode

PARTITIONS = 5
VERSIONS = pytest.mark.parametrize("version", [OLD, NEW], ids=["version 1", "version 2"])
# One partition each, so that the file of a transactional id or of a group is known.
ONE_OF_EACH = {
    **QUICK,
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}
COMPLETE_RECORD, PREPARE_AND_COMPLETE = 1, 2


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path, ONE_OF_EACH) as broker:
        yield broker
        assert "Traceback" not in broker.log_text(), broker.log_tail()


class Story:
    """A producer that writes a record to every partition and an offset to a group in each transaction, and
    the result that readers must see."""

    def __init__(self, broker: BrokerProcess, version: int, partitions: int = PARTITIONS) -> None:
        self.broker = broker
        self.partitions = range(partitions)
        self.client = connected(broker.bootstrap)
        self.topic: Topic = settled_topic(self.client, partitions)
        self.group = RawGroup(self.client, "readers")
        self.group.find()
        self.producer = RawTransactional(self.client, "killed", version)
        self.producer.init()
        self.number = 0
        self.committed: list[bytes] = []
        self.offset = -1

    @property
    def value(self) -> bytes:
        return b"number %d" % self.number

    def write(self) -> None:
        self.number += 1
        write(self.producer, self.topic, self.value, self.partitions)
        if self.producer.transaction_version == OLD:
            assert self.producer.add_offsets(self.group.name) == 0
        wait_until(self._offset_is_taken, "the group takes the offset")

    def _offset_is_taken(self) -> bool:
        code = self.producer.commit_offset(self.group.name, self.topic, self.number)
        assert code in (0, *COME_AGAIN)
        return code == 0

    def ends_with(self, commits: bool) -> None:
        if commits:
            self.committed.append(self.value)
            self.offset = self.number

    def reconnect(self) -> None:
        self.client.close()
        self.client = self.producer.client = self.group.client = connected(self.broker.bootstrap)
        wait_until(lambda: not state_of(self.client, "killed").startswith("error"), "it is loaded")

    def judge(self) -> None:
        """All partitions agree, no transaction hangs, and the offset is that of the last commit."""
        wait_until_nothing_hangs(self.client, self.topic, len(self.partitions))
        values = everything(self.broker.bootstrap, self.topic.name, len(self.partitions))
        assert Counter(values) == {value: len(self.partitions) for value in self.committed}
        fetched = self.group.fetch(self.topic, require_stable=True)
        assert (fetched.error_code, fetched.committed_offset) == (0, self.offset)


@VERSIONS
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_a_decided_end_reaches_every_partition_after_any_number_of_markers(
    broker: BrokerProcess, version: int, commits: bool
) -> None:
    """The disk is set back to each moment at which the broker could have been killed: the decision is there,
    but the last record and some of the markers are not."""
    outcome = "CompleteCommit" if commits else "CompleteAbort"
    story = Story(broker, version)
    chance = random.Random(27)
    places = [f"{story.topic.name}-{partition}" for partition in story.partitions] + ["__consumer_offsets-0"]
    for markers_missing in (1, 3, len(places)):
        story.write()
        assert story.producer.end(commits) == 0
        story.ends_with(commits)
        wait_for_state(story.client, "killed", outcome)
        broker.stop(signal.SIGKILL)
        cut_last_batches(broker.data_dir, "__transaction_state-0", COMPLETE_RECORD)
        for place in chance.sample(places, markers_missing):
            cut_last_batches(broker.data_dir, place)
        broker.start()
        story.reconnect()
        wait_for_state(story.client, "killed", outcome)
        story.judge()
    story.write()
    assert story.producer.end(True) == 0
    story.ends_with(True)
    story.judge()


@VERSIONS
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_an_end_that_was_lost_can_be_requested_again(
    broker: BrokerProcess, version: int, commits: bool
) -> None:
    """Killed before the decision was written, with the request in flight: the transaction goes on."""
    story = Story(broker, version)
    story.write()
    before = [ends(story.client, story.topic, partition) for partition in story.partitions]
    epoch = story.producer.epoch
    assert story.producer.end(commits) == 0
    story.producer.epoch = epoch
    broker.stop(signal.SIGKILL)
    cut_last_batches(broker.data_dir, "__transaction_state-0", PREPARE_AND_COMPLETE)
    for partition in story.partitions:
        cut_last_batches(broker.data_dir, f"{story.topic.name}-{partition}")
    cut_last_batches(broker.data_dir, "__consumer_offsets-0")
    broker.start()
    story.reconnect()
    assert state_of(story.client, "killed") == "Ongoing"
    assert [ends(story.client, story.topic, partition) for partition in story.partitions] == before
    unstable = story.group.fetch(story.topic, require_stable=True)
    assert unstable.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert story.producer.end(commits) == 0
    story.ends_with(commits)
    story.judge()


@VERSIONS
def test_the_broker_is_killed_at_any_moment_after_the_request_was_sent(
    broker: BrokerProcess, version: int
) -> None:
    """With many partitions, writing the markers takes long enough to be interrupted. A client without an
    answer sends its request again, and the request is carried out once."""
    story = Story(broker, version, partitions=40)
    chance = random.Random(version)
    for turn in range(6):
        commits = turn % 2 == 0
        story.write()
        end = story.producer.end_frame(commits)
        story.client.send(END_TXN, story.producer.end_version, end)
        time.sleep(chance.choice([0.0, 0.001, 0.003, 0.006, 0.01]))
        broker.restart(signal.SIGKILL)
        story.reconnect()
        wait_until(
            lambda: not state_of(story.client, "killed").startswith("Prepare"), "what was decided is complete"
        )
        state = state_of(story.client, "killed")
        hanging = {ends(story.client, story.topic, partition).hangs for partition in story.partitions}
        assert hanging == {state == "Ongoing"}, f"partitions do not agree: {state}"
        assert state in ("Ongoing", "CompleteCommit" if commits else "CompleteAbort")
        assert story.producer.end(commits) == 0
        story.ends_with(commits)
    story.judge()
    lists = [aborted(story.client, story.topic, partition) for partition in story.partitions]
    assert [len(records) for records in lists] == [3] * len(story.partitions)


def test_killed_again_and_again_while_it_finishes(broker: BrokerProcess) -> None:
    """A coordinator dies before its first answer, several times: markers are written again each time, and no
    transaction ends twice."""
    story = Story(broker, NEW)
    story.write()
    assert story.producer.end(False) == 0
    story.judge()
    after = [ends(story.client, story.topic, partition) for partition in story.partitions]
    for _ in range(3):
        broker.stop(signal.SIGKILL)
        cut_last_batches(broker.data_dir, "__transaction_state-0", COMPLETE_RECORD)
        broker.start()
        story.reconnect()
        wait_for_state(story.client, "killed", "CompleteAbort")
    story.judge()
    assert [ends(story.client, story.topic, partition) for partition in story.partitions] == after
