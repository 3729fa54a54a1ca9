"""Rows over TLS: the loads of the broker rows, on brokers with the same key and certificate."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench import frames, loads
from tests.bench.figures import Sample
from tests.bench.goals import Goal
from tests.bench.loads import Limits, Target
from tests.bench.peers import PEERS, Peer
from tests.bench.rows import MEGABYTE, RATE, Opening, Round, Row, beside
from tests.bench.stage import Stage, filled_topic, topic_on
from tests.support.certificates import Authority

Measure = Callable[[Stage, Peer, Target], contextlib.AbstractContextManager[Round]]


def _over_tls(measure: Measure) -> Opening:
    """A broker of its own for the row. Topics are created and filled without TLS; the load uses TLS."""

    @contextlib.contextmanager
    def opened(stage: Stage, like: Peer) -> Iterator[Round]:
        directory = stage.memory_directory / f"tls-{like.name}-{id(measure)}"
        directory.mkdir()
        peer = PEERS[like.name](directory / "broker")
        authority = _certificates(stage.memory_directory / "certificates")
        stores = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(authority.with_name("broker.pem"))}
        address = peer.add_tls(stores)
        peer.start()
        try:
            with measure(stage, peer, Target(address, peer.target.pid, str(authority))) as round_:
                yield round_
        finally:
            peer.stop()

    return beside(opened)


def _certificates(directory: Path) -> Path:
    """The file of the authority; the broker's key and certificate are beside it. The same for all rows."""
    file = directory / "ca.pem"
    if not directory.exists():
        directory.mkdir()
        authority = Authority()
        authority.write_pem(file)
        authority.server().write_pem(directory / "broker.pem")
    return file


def _produce(records: int) -> Measure:
    @contextlib.contextmanager
    def measured(stage: Stage, peer: Peer, target: Target) -> Iterator[Round]:
        def measure() -> Sample:
            with topic_on(peer, "bench-tls") as topic:
                return stage.driver.run(loads.produce, target, topic, records, stage.limits).sample()

        yield measure

    return measured


@contextlib.contextmanager
def _fetch(stage: Stage, peer: Peer, target: Target) -> Iterator[Round]:
    limits = Limits(stage.size.seconds, 1 << 50)
    with filled_topic(stage, peer, stage.size.fetched_bytes) as topic:
        yield lambda: stage.driver.run(loads.fetch, target, topic, MEGABYTE, limits).sample()


@contextlib.contextmanager
def _acknowledged(stage: Stage, peer: Peer, target: Target) -> Iterator[Round]:
    with topic_on(peer, "bench-tls-ack") as topic:
        count = stage.size.latency_count
        yield lambda: stage.driver.run(loads.acknowledged, target, topic, count).sample()


@contextlib.contextmanager
def _beside_handshakes(stage: Stage, peer: Peer, target: Target) -> Iterator[Round]:
    with topic_on(peer, "bench-tls-handshakes") as topic:
        count = stage.size.handshakes

        def measure() -> Sample:
            load = stage.driver.run(loads.beside_handshakes, target, topic, count)
            values = {"longest_us": max(load.latencies) * 1e6, "handshakes_per_second": count / load.seconds}
            return Sample(load.sample().values | values)

        yield measure


TLS_ROWS = (
    Row("tls-p16k", "tls", "p16k over TLS", RATE, _over_tls(_produce(frames.RECORDS_IN_16K)),
        (Goal(RATE, 3.0),)),
    Row("tls-p1m", "tls", "p1m over TLS", RATE, _over_tls(_produce(frames.RECORDS_IN_1M)),
        (Goal(RATE, 1.5),)),
    Row("tls-fetch", "tls", "fetch over TLS", RATE, _over_tls(_fetch), (Goal(RATE, 1.5),)),
    Row("tls-ack", "tls", "ack over TLS", "p50_us", _over_tls(_acknowledged), (Goal("p50_us", 0.8),)),
    Row("tls-handshakes", "tls", "acks while 1,000 others connect at once", "longest_us",
        _over_tls(_beside_handshakes), (Goal("longest_us", 50, against=None),)),
)  # fmt: skip
