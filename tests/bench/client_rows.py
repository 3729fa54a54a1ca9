"""The rows about Python clients: each library in a process of its own, one after the other on one broker."""

import subprocess
import sys
from collections.abc import Iterator

from tests.bench import frames, loads
from tests.bench.clients import CONSUMING, PRODUCING, Outcome, Work
from tests.bench.connection import create_topic, delete_topic
from tests.bench.loads import Limits
from tests.bench.rows import Bench, Figure

PARTNER = "confluent-kafka"
FILL_BYTES = 700_000_000
GOALS = {
    "ours send": ">= 0.5x confluent-kafka, 5x the others",
    "ours send_batch": "5x confluent-kafka",
    "ours poll": ">= 1x confluent-kafka, 5x the others",
    "ours iterate": ">= 1x confluent-kafka, 5x the others",
    "ours poll_arrow": "5x confluent-kafka",
}


def client_rows(bench: Bench) -> Iterator[Figure]:
    """Producers on a topic each; consumers on one topic of 16 KB batches that a driver filled."""
    seconds = bench.size.seconds
    found: dict[str, Outcome] = {}
    for number, name in enumerate(PRODUCING):
        topic = f"bench-produce-{number}"
        create_topic(bench.peer.bootstrap, topic)
        found[name] = _outcome(bench, name, topic, seconds)
        delete_topic(bench.peer.bootstrap, topic)
        bench.tick(number / 20)
    yield from _figures(PRODUCING, found)
    topic = "bench-consume"
    create_topic(bench.peer.bootstrap, topic)
    batch = frames.value_batch(frames.RECORDS_IN_16K)
    loads.produce(bench.peer, topic, batch, Limits(60, FILL_BYTES), lambda part: None)
    for number, name in enumerate(CONSUMING):
        found[name] = _outcome(bench, name, topic, seconds)
        bench.tick((len(PRODUCING) + number) / 20)
    delete_topic(bench.peer.bootstrap, topic)
    yield from _figures(CONSUMING, found)


def _outcome(bench: Bench, work: str, topic: str, seconds: float) -> Outcome:
    command = [sys.executable, "-m", "tests.bench.clients", work, bench.peer.bootstrap, topic, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{work}: {done.stderr.strip().splitlines()[-1]}")
    count, took, cpu = done.stdout.split()
    return int(count), float(took), float(cpu)


def _figures(works: dict[str, Work], found: dict[str, Outcome]) -> Iterator[Figure]:
    """Records a second and CPU a record, both compared with the best that confluent-kafka has."""
    partners = [found[name] for name in works if name.startswith(PARTNER)]
    rate = max(count / seconds for count, seconds, _ in partners)
    cost = min(cpu / count for count, _, cpu in partners)
    for name in works:
        count, seconds, cpu = found[name]
        shown = (
            f"{count / seconds / 1000:,.0f} k rec/s, {count / seconds / rate:.2f}x",
            f"{cpu / count * 1e6:.2f} us CPU/rec, {cost / (cpu / count):.2f}x",
        )
        yield Figure("clients", name, shown, GOALS.get(name, ""))
