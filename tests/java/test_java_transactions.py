"""The Java transactional producer, and transactions as an administrator sees and ends them."""

from typing import Any

import pytest
from tests.java.conftest import Server
from tests.java.scenarios import Scenarios, result, run_scenarios

pytestmark = pytest.mark.java

COPIED = {"copied": 600, "distinct": 600, "offsets": 600}
# The exact results. The Java code of each scenario is in src/judge/. Each marker takes an offset.
EXPECTED: dict[str, Any] = {
    "commit-and-abort": {
        "committed": ["0:a", "1:b", "5:c"],
        "uncommitted": ["0:a", "1:b", "3:no", "5:c"],
        "other": ["0:other"],
    },
    "open-transaction": {
        "committed": ["0:plain"],
        "uncommitted": ["0:plain", "1:open", "2:later"],
        "after": ["0:plain", "1:open", "2:later"],
    },
    # Before and after a commit, before and after an abort.
    "offsets-in-transaction": [None, "4in", "4in", "4in"],
    # Offsets of an older generation, of a member that left, of the member itself. A member of a consumer
    # group may use an older epoch for partitions that it has kept since then (KIP-1251).
    "stale-offsets": {
        "classic": ["CommitFailedException", "CommitFailedException", "nothing"],
        "consumer": ["nothing", "CommitFailedException", "nothing"],
    },
    "fenced": {
        "send": "InvalidProducerEpochException",
        "commit": "InvalidProducerEpochException",
        "idleSend": "InvalidProducerEpochException",
        "committed": ["2:of the second"],
    },
    "timed-out": {
        "commit": "InvalidTxnStateException",
        "state": "CompleteAbort",
        "committed": ["1:plain", "3:next"],
    },
    "copy-classic": COPIED,
    "copy-cooperative": COPIED,
    "copy-consumer": COPIED,
    # State, partitions, timeout, whether it has a start time; each transaction has its own epoch (KIP-890).
    "describe-transactions": {
        "absent": "TransactionalIdNotFoundException",
        "new": "Empty [] 54321 false",
        "open": "Ongoing [0] 54321 true",
        "coordinator": True,
        "committed": "CompleteCommit [] 54321 true",
        "epochs": 1,
        "aborted": "CompleteAbort [] 54321 true",
    },
    "list-transactions": {
        "all": {"-idle": "CompleteAbort", "-open": "Ongoing"},
        "ongoing": {"-open": "Ongoing"},
        "producer": {"-open": "Ongoing"},
        "longer": {},
        "started": {"-idle": "CompleteAbort", "-open": "Ongoing"},
        "pattern": {"-idle": "CompleteAbort"},
        "partOfName": {},
        "badPattern": "InvalidRegularExpression",
    },
    # First offset, last sequence, epoch of the coordinator that wrote the last marker.
    "describe-producers": {"open": [0, 1, -1], "same": True, "next": [3, 0, 0], "epochs": 2},
    "fence-producers": {
        "sameId": True,
        "higher": True,
        "commit": "ProducerFencedException",
        "state": "Empty",
        "committed": [],
    },
    "terminate-transaction": {
        "failure": "nothing",
        "state": "Empty",
        "commit": "ProducerFencedException",
        "committed": [],
    },
    "abort-transaction": {
        "stale": "InvalidProducerEpochException",
        "right": "nothing",
        "open": False,
        "committed": ["0:before"],
    },
}


@pytest.fixture(scope="module")
def scenarios(coordinator: Server) -> Scenarios:
    """What the Java program saw of transactions, by scenario."""
    return run_scenarios(coordinator.bootstrap, "transactions")


@pytest.mark.parametrize("name", EXPECTED)
def test_scenario(scenarios: Scenarios, name: str) -> None:
    assert result(scenarios, name) == EXPECTED[name]


def test_timeout_beyond_the_brokers_bound(scenarios: Scenarios) -> None:
    assert "transaction timeout is larger than the maximum" in result(scenarios, "timeout-bounds")


def test_every_scenario_is_judged(scenarios: Scenarios) -> None:
    assert scenarios.keys() - {"timeout-bounds"} == EXPECTED.keys()
