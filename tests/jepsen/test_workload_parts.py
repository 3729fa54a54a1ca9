"""The parts of the workload that need no cluster."""

import threading
from random import Random

import pytest
from tests.jepsen.client_processes import follow, is_interrupted, micro_sent, outcome_of
from tests.jepsen.clients import confluent
from tests.jepsen.clients.base import FAIL, OK, UNKNOWN, Client, Polled, Sent, decode, encode
from tests.jepsen.plans import DriverPlan, Load, Topic

from barnabas.ids import TopicPartition

ONE, TWO = TopicPartition("my-events", 0), TopicPartition("my-events", 1)


def test_values_keep_their_number_whatever_their_size() -> None:
    chance = Random(1)
    values = [*range(1000), *(chance.randrange(10**15) for _ in range(1000))]
    assert [decode(encode(value)) for value in values] == values
    assert len({len(encode(value)) for value in values}) > 100
    assert decode(None) == decode(b"") == decode(b"not a number") == decode(b"-7") == -1


def test_a_plan_passes_to_another_process() -> None:
    load = Load(copiers=2, settings={"copier": {"rate": 1.5}})
    processes = list(load.processes("run"))
    plan = DriverPlan("host:1", "file", 7, Topic("events", 3), Topic("copies", 2), processes)
    assert DriverPlan.from_json(plan.to_json()) == plan
    assert len({process.number for process in processes}) == len(processes)
    assert {process.library for process in processes} == {"ours", "confluent"}
    assert [process.rate for process in processes if process.kind == "copier"] == [1.5, 1.5]
    identities = [process.transactional_id for process in processes if process.transactional_id]
    assert len(set(identities)) == len(identities) == 4


def test_each_send_in_flight_has_its_outcome() -> None:
    records = [(ONE, 1), (TWO, 2), (ONE, 3)]
    sent = [Sent(OK, 10), Sent(FAIL), Sent(OK, None)]
    assert outcome_of(sent) == OK
    assert micro_sent(records, sent, OK) == [
        ["send", "my-events-0", [10, 1]],
        ["send", "my-events-1", [None, 2], "fail"],
        ["send", "my-events-0", [None, 3]],
    ]
    assert outcome_of([*sent, Sent(UNKNOWN)]) == UNKNOWN
    assert outcome_of([Sent(FAIL), Sent(FAIL)]) == FAIL


def test_what_is_polled_is_in_the_order_of_what_happened() -> None:
    polled = Polled()
    assert polled.take() == [["poll", {}]]
    polled.add_rebalance([ONE])
    polled.add_rebalance([TWO])
    polled.add_record(ONE, 5, b"7 ...")
    polled.add_record(ONE, 6, b"8")
    assert polled.take() == [
        ["rebalance", ["my-events-0", "my-events-1"]],
        ["poll", {"my-events-0": [[5, 7], [6, 8]]}],
    ]
    polled.add_record(TWO, 0, b"9")
    polled.add_rebalance([])
    assert polled.take() == [["poll", {"my-events-1": [[0, 9]]}], ["rebalance", []], ["poll", {}]]


def test_a_reader_is_where_it_has_read_since_the_last_rebalance() -> None:
    positions = {ONE: 3, TWO: 4}
    follow(positions, [["rebalance", [str(ONE)]], ["poll", {str(TWO): [[7, 1], [9, 2]]}]])
    assert positions == {TWO: 10}


def test_records_before_a_rebalance_may_belong_to_others() -> None:
    read = ["poll", {str(ONE): [[7, 1]]}]
    moved = ["rebalance", [str(ONE)]]
    assert not is_interrupted([read])
    assert not is_interrupted([moved, read])
    assert not is_interrupted([["poll", {}], moved, read])
    assert is_interrupted([read, moved, ["poll", {}]])


class Stuck:
    """A client of a library that does not come to its end."""

    def __init__(self, begun: threading.Event, release: threading.Event) -> None:
        self._begun, self._release = begun, release

    def purge(self, blocking: bool) -> None:
        """As a producer has it."""

    def __del__(self) -> None:
        self._begun.set()
        self._release.wait()


@pytest.mark.parametrize(
    ("kind", "field"), [(confluent.ConfluentReader, "_consumer"), (confluent.ConfluentWriter, "_producer")]
)
def test_a_client_that_is_given_up_does_not_hold_up_its_process(kind: type[Client], field: str) -> None:
    begun, release = threading.Event(), threading.Event()
    client = kind.__new__(kind)
    setattr(client, field, Stuck(begun, release))
    client.abandon()
    begun.wait()
    assert not release.is_set()
    release.set()
