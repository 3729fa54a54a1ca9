"""The rows of a cluster: three brokers, three replicas, two in sync, on one machine."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from tests.bench import frames, loads
from tests.bench.cluster_peers import (
    BROKERS,
    ClusterPeer,
    is_in_sync,
    leader_target,
    leaders_of,
    memory_bytes,
    replicated_topic,
    wait_until_in_sync,
)
from tests.bench.figures import Sample, latency_sample
from tests.bench.goals import Goal
from tests.bench.rows import RATE, Opening, Round, Rounds, Row
from tests.bench.stage import Stage
from tests.support.raw_client import RawClient

import barnabas
from barnabas.client.errors import KafkaError
from barnabas.client.types import TopicPartition
from barnabas.wire.messages import create_topics

# Before and after the clean stop of a leader.
WRITING_SECONDS = 1.0
FIRST_WRITE_SECONDS_MAX = 60.0

CONTROL_BYTES_MAX = 1 << 40
CONTROL_PAUSE_SECONDS = 0.005
CREATE_TOPICS_VERSION = 7

ClusterOpening = Callable[[Stage, ClusterPeer], AbstractContextManager[Round]]


def _beside(opening: ClusterOpening) -> Opening:
    """A row that is measured on the cluster of every peer of the run."""

    @contextlib.contextmanager
    def opened(stage: Stage) -> Iterator[Rounds]:
        with contextlib.ExitStack() as stack:
            yield {name: stack.enter_context(opening(stage, stage.cluster(name))) for name in stage.names}

    return opened


def _running(peer: ClusterPeer) -> ClusterPeer:
    if not peer.is_running:
        peer.start()
    return peer


def _produce(records: int) -> Opening:
    @contextlib.contextmanager
    def opened(stage: Stage, peer: ClusterPeer) -> Iterator[Round]:
        def measure() -> Sample:
            with replicated_topic(_running(peer), "bench-produce") as topic:
                target = leader_target(peer, topic)
                return stage.driver.run(loads.produce, target, topic, records, stage.limits).sample()

        yield measure

    return _beside(opened)


@contextlib.contextmanager
def _acknowledged(stage: Stage, peer: ClusterPeer) -> Iterator[Round]:
    with replicated_topic(_running(peer), "bench-ack") as topic:
        target, count = leader_target(peer, topic), stage.size.latency_count
        yield lambda: stage.driver.run(loads.acknowledged, target, topic, count).sample()


@contextlib.contextmanager
def _end_to_end(stage: Stage, peer: ClusterPeer) -> Iterator[Round]:
    with replicated_topic(_running(peer), "bench-e2e") as topic:
        target, count = leader_target(peer, topic), max(1, stage.size.latency_count // 4)
        yield lambda: stage.driver.run(loads.end_to_end, target, topic, count).sample()


@contextlib.contextmanager
def _start(stage: Stage, peer: ClusterPeer) -> Iterator[Round]:
    def measure() -> Sample:
        if peer.is_running:
            peer.stop()
        start = time.perf_counter()
        peer.start()
        with replicated_topic(peer, "bench-start") as topic:
            with barnabas.Producer(bootstrap_servers=peer.bootstrap) as producer:
                producer.send(topic, value=b"first").result(60)
            return Sample({"start_seconds": time.perf_counter() - start})

    yield measure


@contextlib.contextmanager
def _memory(stage: Stage, peer: ClusterPeer) -> Iterator[Round]:
    def measure() -> Sample:
        _running(peer)
        time.sleep(1)
        return Sample({"idle_megabytes": memory_bytes(peer) / 1e6})

    yield measure


@contextlib.contextmanager
def _failover(stage: Stage, peer: ClusterPeer) -> Iterator[Round]:
    """All partitions are led by others again after kill -9 of a broker that leads a third of them."""
    count = stage.size.led_partitions * BROKERS

    def measure() -> Sample:
        with (
            replicated_topic(_running(peer), "bench-failover", count) as topic,
            barnabas.Admin(bootstrap_servers=peer.bootstrap) as admin,
        ):
            victim = leaders_of(admin, topic)[0]
            peer.kill_broker(victim)
            begin = time.perf_counter()
            end_of_session = _wait_for(admin, lambda: victim not in _brokers(admin))
            end = _wait_for(admin, lambda: not {victim, -1} & set(leaders_of(admin, topic)))
            peer.start_broker(victim)
            wait_until_in_sync(admin, topic)
        return Sample({"election_seconds": end - end_of_session, "leaderless_seconds": end - begin})

    yield measure


def _brokers(admin: barnabas.Admin) -> set[int]:
    return {node.id for node in admin.describe_cluster().nodes}


def _wait_for(admin: barnabas.Admin, condition: Callable[[], bool]) -> float:
    """The time at which the condition held."""
    deadline = time.perf_counter() + 120
    while time.perf_counter() < deadline:
        with contextlib.suppress(KafkaError):
            if condition():
                return time.perf_counter()
        time.sleep(0.005)
    raise RuntimeError("the cluster did not recover within 120 s")


@contextlib.contextmanager
def _clean_stop(stage: Stage, peer: ClusterPeer) -> Iterator[Round]:
    """The longest time between two acknowledgements of a producer whose leader is stopped cleanly."""
    count = stage.size.led_partitions * BROKERS

    def measure() -> Sample:
        with (
            replicated_topic(_running(peer), "bench-stop", count) as topic,
            barnabas.Admin(bootstrap_servers=peer.bootstrap) as admin,
        ):
            leader = leaders_of(admin, topic)[0]
            with _Writer(peer.bootstrap, topic) as writer:
                time.sleep(WRITING_SECONDS)
                peer.stop_broker(leader)
                time.sleep(WRITING_SECONDS)
            peer.start_broker(leader)
            wait_until_in_sync(admin, topic)
        return Sample({"gap_seconds": writer.longest_gap_seconds})

    yield measure


class _Writer:
    """A thread that writes one record after the other to partition 0. The `with` block begins after the first
    acknowledgement and ends after one that was sent at its end, so that the longest gap is complete."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.longest_gap_seconds = 0.0
        self._failure: BaseException | None = None
        self._producer = barnabas.Producer(bootstrap_servers=bootstrap)
        self._topic = topic
        self._is_writing = threading.Event()
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "_Writer":
        self._thread.start()
        if not self._is_writing.wait(FIRST_WRITE_SECONDS_MAX):
            raise RuntimeError(f"no acknowledgement within {FIRST_WRITE_SECONDS_MAX:.0f} s")
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended.set()
        self._thread.join(120)
        self._producer.close()
        if self._failure is not None:
            raise RuntimeError(f"the producer failed: {self._failure}") from self._failure

    def _run(self) -> None:
        try:
            self._producer.send(self._topic, value=b"x", partition=0).result(60)
            before = time.perf_counter()
            self._is_writing.set()
            is_last = False
            while not is_last:
                is_last = self._is_ended.is_set()
                self._producer.send(self._topic, value=b"x", partition=0).result(60)
                now = time.perf_counter()
                self.longest_gap_seconds = max(self.longest_gap_seconds, now - before)
                before = now
        except BaseException as failure:  # raised in the thread that measures
            self._failure = failure
            self._is_writing.set()


@contextlib.contextmanager
def _catch_up(stage: Stage, peer: ClusterPeer) -> Iterator[Round]:
    """How fast a follower that was down gets what it has missed."""

    def measure() -> Sample:
        with (
            replicated_topic(_running(peer), "bench-catch-up") as topic,
            barnabas.Admin(bootstrap_servers=peer.bootstrap) as admin,
        ):
            leader = leaders_of(admin, topic)[0]
            follower = next(id_ for id_ in range(1, BROKERS + 1) if id_ != leader)
            peer.stop_broker(follower)
            stage.driver.run(loads.fill, leader_target(peer, topic), topic, stage.size.missed_bytes)
            peer.start_broker(follower)
            begin = time.perf_counter()
            while not is_in_sync(admin, topic):
                time.sleep(0.005)
            seconds = time.perf_counter() - begin
            size = admin.describe_log_dirs([follower], partitions=[TopicPartition(topic, 0)])
        moved = sum(
            replica.size
            for directories in size.values()
            for directory in directories.values()
            for replica in directory.replicas.values()
        )
        return Sample({RATE: moved / 1e6 / seconds})

    yield measure


@contextlib.contextmanager
def _control(stage: Stage, peer: ClusterPeer) -> Iterator[Round]:
    """Changes of the metadata that a broker forwards to the controller, while producers keep the controller
    and its followers as busy as they can."""

    def measure() -> Sample:
        with barnabas.Admin(bootstrap_servers=_running(peer).bootstrap) as admin:
            cluster = admin.describe_cluster()
        assert cluster.controller is not None
        others = [node for node in cluster.nodes if node != cluster.controller]
        replicas = [node.id for node in (cluster.controller, *others)]
        with replicated_topic(peer, "bench-control", assignments={0: replicas}) as topic:
            target = leader_target(peer, topic)
            limits = loads.Limits(stage.limits.seconds, CONTROL_BYTES_MAX)
            load = stage.driver.begin(loads.produce, target, topic, frames.RECORDS_IN_16K, limits)
            with RawClient(others[0].host, others[0].port) as client:
                seconds = _time_forwarded(client, load.done)
            load.result()
        return latency_sample(seconds)

    yield measure


def _time_forwarded(client: RawClient, is_over: Callable[[], bool]) -> list[float]:
    """The seconds of each change, until the load is over. The changes are only checked, not made."""
    topic = create_topics.CreatableTopic(name="bench-checked", num_partitions=1, replication_factor=1)
    request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=True)
    seconds: list[float] = []
    while not is_over():
        begin = time.perf_counter()
        (answer,) = client.call(create_topics.API_KEY, CREATE_TOPICS_VERSION, request).topics
        seconds.append(time.perf_counter() - begin)
        if answer.error_code:
            raise RuntimeError(f"the change was refused: {answer.error_message}")
        time.sleep(CONTROL_PAUSE_SECONDS)
    return seconds


def _goal(metric: str, factor: float) -> tuple[Goal, ...]:
    return (Goal(metric, factor),)


CLUSTER_ROWS = (
    Row("cluster-start", "cluster", "three brokers from nothing to the first acknowledged record",
        "start_seconds", _beside(_start), _goal("start_seconds", 0.5), warms=False, rounds=1),
    Row("cluster-memory", "cluster", "all processes of the cluster, idle", "idle_megabytes",
        _beside(_memory), _goal("idle_megabytes", 0.25), warms=False, rounds=1),
    Row("cluster-16k", "cluster", "1 connection, 5 in flight, 16 KB batches, acks=all, 3 replicas", RATE,
        _produce(frames.RECORDS_IN_16K), _goal(RATE, 3.0)),
    Row("cluster-1m", "cluster", "the same with 1 MB batches", RATE,
        _produce(frames.RECORDS_IN_1M), _goal(RATE, 3.0)),
    Row("cluster-small", "cluster", "the same with 1 record a batch", "requests_per_second",
        _produce(1), _goal("requests_per_second", 3.0)),
    Row("cluster-ack", "cluster", "one record in flight, acks=all: sent to acknowledged", "p50_us",
        _beside(_acknowledged), _goal("p50_us", 0.7)),
    Row("cluster-e2e", "cluster", "from sending a record to receiving it with a waiting fetch", "p50_us",
        _beside(_end_to_end), _goal("p50_us", 0.7)),
    Row("cluster-failover", "cluster", "kill -9 of a leader: from the end of its session to all led again",
        "election_seconds", _beside(_failover), _goal("election_seconds", 0.5), warms=False, rounds=1),
    Row("cluster-stop", "cluster", "clean stop of a leader: the longest gap for a producer", "gap_seconds",
        _beside(_clean_stop), _goal("gap_seconds", 0.5), warms=False, rounds=1),
    Row("cluster-catch-up", "cluster", "a follower that was down gets what it has missed", RATE,
        _beside(_catch_up), _goal(RATE, 1.5), warms=False, rounds=1),
    Row("cluster-control", "cluster", "a change that is forwarded to the controller, under the load of 16k",
        "p99_us", _beside(_control), (Goal("p99_us", 100_000, against=None),), warms=False),
)  # fmt: skip
