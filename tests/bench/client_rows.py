"""The rows about Python clients: each library in its own process, in turns, all with our broker."""

import contextlib
import functools
import subprocess
import sys
from collections.abc import Iterator, Mapping

from tests.bench.clients import CONSUMING, PRODUCING, PRODUCING_BY_DEFAULT, Work
from tests.bench.figures import Sample
from tests.bench.goals import OURS, Goal
from tests.bench.rows import Rounds, Row
from tests.bench.stage import Stage, filled_topic, topic_on

RATE = "records_per_second"
PATIENCE_SECONDS = 60.0


def _work(work: str, bootstrap: str, topic: str, seconds: float) -> Sample:
    command = [sys.executable, "-m", "tests.bench.clients", work, bootstrap, topic, str(seconds)]
    try:
        patience = seconds + PATIENCE_SECONDS
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired as late:
        raise RuntimeError(f"{work} did not end within {late.timeout:.0f} s") from late
    if done.returncode:
        raise RuntimeError(f"{work}: {done.stderr.strip().splitlines()[-1]}")
    count, took, cpu = map(float, done.stdout.split())
    return Sample({RATE: count / took, "cpu_us_per_record": cpu / count * 1e6})


@contextlib.contextmanager
def _producing(works: Mapping[str, Work], stage: Stage) -> Iterator[Rounds]:
    """Each round has its own topic."""
    peer = stage.peer(OURS)

    def measure(work: str) -> Sample:
        with topic_on(peer, "bench-send") as topic:
            return _work(work, peer.target.bootstrap, topic, stage.size.client_seconds)

    yield {work: functools.partial(measure, work) for work in works}


@contextlib.contextmanager
def _consuming(stage: Stage) -> Iterator[Rounds]:
    """All on one topic of 16 KB batches that the driver filled."""
    peer = stage.peer(OURS)
    with filled_topic(stage, peer, stage.size.client_fill_bytes) as topic:
        bootstrap, seconds = peer.target.bootstrap, stage.size.client_seconds
        yield {work: functools.partial(_work, work, bootstrap, topic, seconds) for work in CONSUMING}


# Clients that return records one by one are compared with each other, and so are clients that return many.
RATIO_GOALS = {
    "ours send": {"kafka-python send": 5.0, "aiokafka send": 5.0, "confluent-kafka produce": 0.5},
    "ours send_batch": {"confluent-kafka produce": 5.0},
    "ours send, defaults": {"confluent-kafka produce, defaults": 1.0},
    "ours iterate": {"kafka-python iterate": 5.0, "aiokafka iterate": 5.0, "confluent-kafka poll": 1.0},
    "ours poll": {
        "kafka-python iterate": 5.0,
        "aiokafka getmany": 5.0,
        "confluent-kafka consume(10000)": 1.0,
    },
    "ours poll_arrow": {"confluent-kafka consume(10000)": 5.0},
}


def _goals(works: Mapping[str, Work]) -> tuple[Goal, ...]:
    return tuple(
        Goal(RATE, factor, other, ours)
        for ours, others in RATIO_GOALS.items()
        for other, factor in others.items()
        if ours in works
    )


CLIENT_ROWS = (
    Row("client-produce", "clients", "values of 100 bytes to 1 partition, acks=all, confirmed", RATE,
        functools.partial(_producing, PRODUCING), _goals(PRODUCING), warms=False),
    Row("client-defaults", "clients", "the same, record by record with the defaults of each library", RATE,
        functools.partial(_producing, PRODUCING_BY_DEFAULT), _goals(PRODUCING_BY_DEFAULT), warms=False),
    Row("client-consume", "clients", "values of 100 bytes from 1 partition, batches of 16 KB", RATE,
        _consuming, _goals(CONSUMING), warms=False),
)  # fmt: skip
