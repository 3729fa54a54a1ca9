"""Java consumers in groups of both protocols, and what an administrator sees and changes."""

from typing import Any

import pytest
from tests.java.conftest import Server
from tests.java.scenarios import Scenarios, result, run_scenarios

pytestmark = pytest.mark.java

BALANCED = {"afterAll": "Empty", "distinct": 240, "overlaps": [], "read": 240, "three": [2, 2, 2]}
SIMPLE = "Classic,,Empty,simple"
CLASSIC = "Classic,consumer,Stable"
MODERN = "Consumer,consumer,Stable"
LEFT = "Consumer,consumer,Empty"
KEPT = {"instances": ["first", "second"], "rebalances": 0, "sameGeneration": True, "samePartitions": True}
GROWN = {"overlaps": [], "read": 60, "shares": [3, 3]}
COMMITTED = {
    "member": [7, 0, "nöte"],
    "admin": [7, 0, "nöte"],
    "next": [7, 0, "nöte"],
    "never": None,
    "position": 7,
}
DESCRIBED: dict[str, Any] = {
    "assignment": [0, 1],
    "client": True,
    "coordinator": True,
    "epoch": True,
    "host": "/127.0.0.1",
    "id": True,
    "instance": "instance",
    "memberId": True,
    "members": 1,
    "operations": None,
    "simple": False,
    "state": "Stable",
}
# The exact results. The Java code of each scenario is in src/judge/.
EXPECTED: dict[str, Any] = {
    # Three members hold two partitions each of two topics. Range gives the first of two members more of each.
    "share-Range": BALANCED | {"described": [3, "range", "Classic"], "two": [2, 4]},
    "share-RoundRobin": BALANCED | {"described": [3, "roundrobin", "Classic"], "two": [3, 3]},
    "share-Sticky": BALANCED | {"described": [3, "sticky", "Classic"], "two": [3, 3]},
    "share-CooperativeSticky": BALANCED | {"described": [3, "cooperative-sticky", "Classic"], "two": [3, 3]},
    "share-uniform": BALANCED | {"described": [3, "uniform", "Consumer"], "two": [3, 3]},
    "share-range": BALANCED | {"described": [3, "range", "Consumer"], "two": [2, 4]},
    "pattern-classic": ["-1-0", "-2-0", "-2-1"],
    "pattern-consumer": ["-1-0", "-2-0", "-2-1"],
    "server-pattern": ["-1-0", "-2-0", "-2-1"],
    "grow-classic": GROWN,
    "grow-consumer": GROWN,
    "migrate": {"distinct": 40, "overlaps": [], "types": ["Classic", "Consumer", "Classic"]},
    "static-classic": KEPT,
    "static-consumer": KEPT,
    "same-instance-classic": {"older": "FencedInstanceIdException", "newer": "null"},
    "same-instance-consumer": {"older": "null", "newer": "UnreleasedInstanceIdException"},
    "committed-classic": COMMITTED,
    "committed-consumer": COMMITTED,
    "removed-classic": {"failure": "CommitFailedException", "again": True},
    "removed-consumer": {"failure": "CommitFailedException", "again": True},
    "too-slow-classic": {"failure": "CommitFailedException", "again": True},
    # This client forgets its membership when it leaves. It then commits without one, and an empty group
    # accepts that.
    "too-slow-consumer": {"failure": "nothing", "again": True},
    "list-groups": {
        "all": {"-simple": SIMPLE, "-classic": CLASSIC, "-consumer": MODERN, "-left": LEFT},
        "consumers": {"-simple": SIMPLE, "-classic": CLASSIC, "-consumer": MODERN, "-left": LEFT},
        "stable": {"-classic": CLASSIC, "-consumer": MODERN},
        "empty": {"-simple": SIMPLE, "-left": LEFT},
        "dead": {},
        "classic": {"-simple": SIMPLE, "-classic": CLASSIC},
        "modern": {"-consumer": MODERN, "-left": LEFT},
        "share": {},
        "stableClassic": {"-classic": CLASSIC},
        "protocol": {"-classic": CLASSIC, "-consumer": MODERN, "-left": LEFT},
    },
    "describe-classic": DESCRIBED
    | {
        "assignor": "roundrobin",
        "epochs": [False, True],
        "rack": None,
        "target": None,
        "type": "Classic",
        "upgraded": None,
    },
    "describe-consumer": DESCRIBED
    | {
        "assignor": "range",
        "epochs": [True, True],
        "rack": "rack",
        "target": [0, 1],
        "type": "Consumer",
        "upgraded": True,
    },
    "describe-others": {
        "absent": "GroupIdNotFoundException",
        "absentClassic": "GroupIdNotFoundException",
        "simple": [True, "Empty", "Classic", 0, ""],
        "classic": "",
    },
    "alter-offsets": {
        "absentGroup": "nothing",
        "offset": [4, 0, "by hand"],
        "absentTopic": "UnknownTopicOrPartitionException",
        "longNote": "OffsetMetadataTooLarge",
        "read": 16,
        "active": "UnknownMemberIdException",
        "batched": {"": {"1": 10, "9": None}, "-absent": {}},
    },
    "delete-offsets": {
        "subscribed": "GroupSubscribedToTopicException",
        "unsubscribed": "nothing",
        "kept": [""],
        "empty": "nothing",
        "gone": [],
        "absentGroup": "GroupIdNotFoundException",
    },
    "delete-groups": {
        "-classic": ["GroupNotEmptyException", "nothing", "GroupIdNotFoundException", "0"],
        "-consumer": ["GroupNotEmptyException", "nothing", "GroupIdNotFoundException", "0"],
    },
    "remove-members-classic": {
        "closed": 2,
        "unknown": "UnknownMemberIdException",
        "named": "nothing",
        "left": 1,
    },
    "remove-members-consumer": {
        "closed": 2,
        "unknown": "UnknownMemberIdException",
        "named": "nothing",
        "left": 1,
    },
}


@pytest.fixture(scope="module")
def scenarios(coordinator: Server) -> Scenarios:
    """What the Java program saw of groups, by scenario."""
    return run_scenarios(coordinator.bootstrap, "groups")


@pytest.mark.parametrize("name", EXPECTED)
def test_scenario(scenarios: Scenarios, name: str) -> None:
    assert result(scenarios, name) == EXPECTED[name]


def test_every_scenario_is_judged(scenarios: Scenarios) -> None:
    assert scenarios.keys() == EXPECTED.keys()
