"""The output of `barnabas cluster status` for a cluster with every kind of problem."""

from tests.unit.cli.test_topics_describing import MOVE, Cluster

from barnabas.cli.cluster.status import as_json, as_text, read_status
from barnabas.client.types import TopicPartition

TEXT = """\
Cluster c, controller: 1

BROKER  ADDRESS     RACK  STATE  LEADERS  REPLICAS
1       host1:9092  -     up     3        5
2       host2:9092  -     up     0        5
3       -           -     down   1        5

5 partitions: 2 offline, 2 under min ISR, 1 at min ISR, 3 under-replicated, 1 moving

Offline:
TOPIC   PARTITION  LEADER  REPLICAS  ISR
orders  3          none    1,2,3     -
orders  4          3       1,2,3     1,2,3

Under min ISR:
TOPIC   PARTITION  LEADER  REPLICAS  ISR
orders  2          1       1,2,3     1
orders  3          none    1,2,3     -

At min ISR:
TOPIC   PARTITION  LEADER  REPLICAS  ISR
orders  1          1       1,2,3     1,2

Under-replicated:
TOPIC   PARTITION  LEADER  REPLICAS  ISR
orders  1          1       1,2,3     1,2
orders  2          1       1,2,3     1
orders  3          none    1,2,3     -

Moving:
TOPIC   PARTITION  REPLICAS  ADDING  REMOVING
orders  0          1,2,3     3       1"""


def cluster() -> Cluster:
    described = Cluster()
    described.moves = {TopicPartition("orders", 0): MOVE}
    return described


def test_brokers_problems_and_moves_are_printed() -> None:
    lines = as_text(read_status(cluster())).splitlines()
    assert [line.rstrip() for line in lines] == TEXT.splitlines()


def test_the_same_as_json() -> None:
    status = as_json(read_status(cluster()))
    assert (status["clusterId"], status["controller"], status["partitions"]) == ("c", 1, 5)
    assert [(broker["id"], broker["state"]) for broker in status["brokers"]] == [
        (1, "up"),
        (2, "up"),
        (3, "down"),
    ]
    partitions = {
        kind: [each["partition"] for each in status[kind]]
        for kind in ("offline", "underMinIsr", "atMinIsr", "underReplicated")
    }
    assert partitions == {
        "offline": [3, 4],
        "underMinIsr": [2, 3],
        "atMinIsr": [1],
        "underReplicated": [1, 2, 3],
    }
    assert status["reassignments"] == [
        {"topic": "orders", "partition": 0, "replicas": [1, 2, 3], "adding": [3], "removing": [1]}
    ]
