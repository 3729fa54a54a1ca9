"""The tests of docs/reliability.md: what happens to the cluster, and what must hold. The file of T01 is
test_t01_*.py; T38 is soak.py."""

from typing import NamedTuple


class Promise(NamedTuple):
    fault: str
    promise: str
    # Whether it uses only what a cluster of Apache Kafka can do, too.
    on_kafka: bool = False


TESTS: dict[str, Promise] = {
    "T01": Promise(
        "`kill -9` of a leader while records are written",
        "nothing is lost, nothing is there twice, order is kept; another leader takes over",
        on_kafka=True,
    ),
    "T02": Promise(
        "`kill -9` and restart of the leader, then of the next leader, five times",
        "as T01 each time; all replicas are in sync again after each restart",
        on_kafka=True,
    ),
    "T03": Promise(
        "clean stop (SIGTERM) of brokers, five times",
        "leaderships move first: no client sees an error, no partition is away for a second",
        on_kafka=True,
    ),
    "T04": Promise(
        "`kill -9` of one follower, then of both",
        "without one follower writes go on; without both they are refused, never acknowledged; they go on "
        "when the followers return",
        on_kafka=True,
    ),
    "T05": Promise(
        "`kill -9` of the controller, also while topics are created, partitions move, replicas fall behind",
        "a new controller takes over, the old one changes nothing any more; what was begun is done or "
        "refused, there are no half-created topics",
        on_kafka=True,
    ),
    "T06": Promise(
        "`kill -9` of all brokers at once",
        "after the restart all acknowledged records, offsets of groups and transactions are there",
        on_kafka=True,
    ),
    "T07": Promise(
        "power failure of one machine, then of all three: what was not synced is gone",
        "of one: nothing is lost; of all: at most what [durability.md](durability.md) says, and an offset "
        "never has two values",
    ),
    "T08": Promise(
        "the leader is paused (SIGSTOP) for longer than its session, and goes on",
        "by then another one leads; the old one acknowledges nothing any more, removes what nobody else "
        "has, and follows",
        on_kafka=True,
    ),
    "T09": Promise(
        "network cut between the leader and its followers, not to ZooKeeper and clients",
        "the leader acknowledges nothing when too few replicas are in sync; the logs agree after the end",
    ),
    "T10": Promise(
        "network cut between the leader and ZooKeeper only",
        "it stops to accept writes before the new leader acknowledges any",
    ),
    "T11": Promise(
        "network cut between one follower and the leader, also in one direction only",
        "writes go on without it; afterwards it catches up, and all logs are the same",
    ),
    "T12": Promise(
        "network cut between clients and one broker, or all",
        "nothing is lost; what was sent again is not there twice",
    ),
    "T13": Promise(
        "ZooKeeper: one of three servers killed, all killed, slow, all sessions expire at once",
        "leaders go on to serve; the metadata stays intact, brokers register again, a controller is elected",
    ),
    "T14": Promise(
        "bad network: 100 ms ±50, 5 % loss, duplicates, 3 Mbit/s",
        "nothing is lost or twice; replicas do not fall out of sync again and again",
    ),
    "T15": Promise(
        "rolling restart of all brokers, three times",
        "nothing is lost or twice; groups do not rebalance without need, static members keep "
        "their partitions",
        on_kafka=True,
    ),
    "T16": Promise(
        "the last replica in sync dies and loses the end of its log; the others return",
        "the partition stays offline: acknowledged records of other replicas are not truncated",
    ),
    "T17": Promise(
        "an unclean election on purpose",
        "it is reported; consumers are told that the log was truncated",
    ),
    "T18": Promise(
        "two fail-overs in quick succession: A leads, B leads, A leads",
        "the logs of all replicas are the same",
    ),
    "T19": Promise(
        "clocks that are wrong by a minute, or jump to and fro",
        "no session, transaction or record expires early; time indexes stay in order",
    ),
    "T20": Promise(
        "the disk of the leader is full, and has space again",
        "writes are refused with an error; no log is torn; it goes on without a restart",
    ),
    "T21": Promise(
        "a disk fails (I/O error, read-only)",
        "its log directory is offline, the other ones are served; other brokers lead its partitions",
    ),
    "T22": Promise(
        "torn write at the end of a log: at any byte, followed by zeros or garbage",
        "the log ends with its last whole batch; nothing before it is lost, offsets go on without a gap",
    ),
    "T23": Promise(
        "one bit flips in the middle of a log",
        "damaged records are never served as good ones; all other records are; it is reported",
    ),
    "T24": Promise(
        "files beside the log (indexes, snapshots, checkpoints) are missing or damaged",
        "they are written again, and all answers are the same as before",
    ),
    "T25": Promise(
        "answers to producers are lost, requests come again or in another order, leaders change",
        "nothing is there twice, nothing is missing; a duplicate gets its first offset",
        on_kafka=True,
    ),
    "T26": Promise(
        "a job copies records in transactions, while brokers and clients are killed",
        "every record is copied exactly once; no transaction stays open",
        on_kafka=True,
    ),
    "T27": Promise(
        "`kill -9` of the transaction coordinator at each step of a commit",
        "the next coordinator ends the transaction in the same way on all partitions",
    ),
    "T28": Promise(
        "a producer is replaced by one with the same transactional id, is paused, and goes on",
        "it is fenced: its transaction is aborted, nothing that it writes later is seen",
        on_kafka=True,
    ),
    "T29": Promise(
        "a request of a transaction is delayed until after its end",
        "it changes no later transaction and leaves none open ([durability.md](durability.md) says what "
        "older clients can expect)",
    ),
    "T30": Promise(
        "a client dies with an open transaction",
        "it is aborted after its timeout, and consumers go on",
    ),
    "T31": Promise(
        "many aborted transactions, compaction and restarts",
        "consumers never see an aborted record, and all others",
    ),
    "T32": Promise(
        "consumers are killed in the middle of a rebalance, 20 join at once",
        "the group is stable again in time; each partition has one owner",
    ),
    "T33": Promise(
        "`kill -9` of the group coordinator while members join and commit",
        "committed offsets never go back; the group goes on",
        on_kafka=True,
    ),
    "T34": Promise(
        "two members with the same `group.instance.id`",
        "the older one is fenced; a coordinator's restart changes no assignment",
    ),
    "T35": Promise(
        "partitions move, get more and fewer replicas, brokers come and go, with kills",
        "moves end or are cancelled; nothing is lost or twice; no copies are left behind",
    ),
    "T36": Promise(
        "a topic is deleted and created again while clients use it",
        "no record of the old one is served as one of the new one",
    ),
    "T37": Promise(
        "hostile bytes on a thousand connections per second, during T01",
        "other clients do not suffer; the memory of the brokers is bounded",
    ),
    "T38": Promise(
        "random faults for hours, up to three at a time, a quarter of the time none",
        "nothing above is violated; memory and descriptors stay, a clean stop takes less than 10 s",
    ),
}
