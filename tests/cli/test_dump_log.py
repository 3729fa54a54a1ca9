"""dump-log prints the files of a broker, and reports what is wrong with damaged ones."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Ran, Run
from tests.clients.broker_process import running_broker

import barnabas

FIRST = "00000000000000000000"
COUNT = 2000


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a broker leaves: a topic with compressed batches, transactions that ended both ways, a group."""
    with running_broker(tmp_path_factory.mktemp("dumped")) as broker:
        bootstrap = broker.bootstrap
        with barnabas.Producer(bootstrap_servers=bootstrap, compression_type="lz4") as producer:
            for number in range(COUNT):
                key = b"key" if number % 2 else None
                producer.send("dumped", b"value %d" % number, key, headers=[("name", b"x")])
        with barnabas.Producer(bootstrap_servers=bootstrap, transactional_id="dumper") as producer:
            producer.init_transactions()
            for end in (producer.commit_transaction, producer.abort_transaction):
                producer.begin_transaction()
                producer.send("dumped", b"in a transaction")
                producer.flush()
                end()
        with barnabas.Consumer(bootstrap_servers=bootstrap, group_id="dumpers") as consumer:
            partition = barnabas.TopicPartition("dumped", 0)
            consumer.assign([partition])
            consumer.commit_sync({partition: barnabas.OffsetAndMetadata(7, "note")})
    yield broker.data_dir


@pytest.fixture
def partition(data_dir: Path, tmp_path: Path) -> Path:
    """A copy, which a test may damage."""
    return Path(shutil.copytree(data_dir / "dumped-0", tmp_path / "dumped-0"))


def dump(run: Run, *files: Path, options: tuple[str, ...] = ()) -> Ran:
    return run("dump-log", "--files", ",".join(map(str, files)), *options)


def test_batches_alone(run: Run, partition: Path) -> None:
    ran = dump(run, partition / f"{FIRST}.log")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[:2] == [f"Dumping {partition / FIRST}.log", "Log starting offset: 0"]
    assert re.fullmatch(
        r"baseOffset: 0 lastOffset: \d+ count: \d+ baseSequence: 0 lastSequence: \d+ producerId: \d+ "
        r"producerEpoch: 0 partitionLeaderEpoch: 0 isTransactional: false isControl: false "
        r"deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: \d+ size: \d+ magic: 2 "
        r"compresscodec: lz4 crc: \d+ isvalid: true",
        ran.lines[2],
    )
    assert "|" not in ran.out


def test_records_and_markers(run: Run, partition: Path) -> None:
    ran = dump(run, partition / f"{FIRST}.log", options=("--print-data-log",))
    records = [line for line in ran.lines if line.startswith("| ")]
    assert len(records) == COUNT + 4
    assert re.fullmatch(
        r"\| offset: 1 CreateTime: \d+ keySize: 3 valueSize: 7 sequence: 1 headerKeys: \[name\] "
        r"key: key payload: value 1",
        records[1],
    )
    markers = [line for line in records if "endTxnMarker" in line]
    assert [line.split()[-3] for line in markers] == ["COMMIT", "ABORT"]


def test_values_alone(run: Run, partition: Path) -> None:
    ran = dump(run, partition / f"{FIRST}.log", options=("--print-data-log", "--skip-record-metadata"))
    assert "| payload: value 0" in ran.lines
    assert "| key: key payload: value 1" in ran.lines


def test_max_bytes(run: Run, partition: Path) -> None:
    ran = dump(run, partition / f"{FIRST}.log", options=("--max-bytes", "1"))
    assert (ran.code, len(ran.lines)) == (0, 2)


def test_indexes(run: Run, partition: Path) -> None:
    files = [partition / f"{FIRST}.index", partition / f"{FIRST}.timeindex"]
    ran = dump(run, *files)
    assert (ran.code, ran.err) == (0, "")
    assert any(re.fullmatch(r"offset: \d+ position: \d+", line) for line in ran.lines)
    assert any(re.fullmatch(r"timestamp: \d+ offset: \d+", line) for line in ran.lines)
    only = dump(run, *files, options=("--verify-index-only",))
    assert (only.code, len(only.lines)) == (0, 2)
    sane = dump(run, *files, options=("--index-sanity-check",))
    assert sane.out.count("passed sanity check.") == 2


def test_side_files(run: Run, partition: Path) -> None:
    ran = dump(run, partition / f"{FIRST}.txnindex", *partition.glob("*.snapshot"))
    assert re.search(
        r"^version: 0 producerId: \d+ firstOffset: 2002 lastOffset: 2003 ", ran.out, re.MULTILINE
    )
    assert re.search(r"firstSequence: \d+ lastSequence: 1999 lastOffset: 1999 ", ran.out)


def test_the_offsets_topic(run: Run, data_dir: Path) -> None:
    files = [path for path in data_dir.glob(f"__consumer_offsets-*/{FIRST}.log") if path.stat().st_size]
    ran = dump(run, *files, options=("--offsets-decoder",))
    assert 'key: {"type":"1","data":{"group":"dumpers","topic":"dumped","partition":0}}' in ran.out
    assert '"offset":7,"leaderEpoch":-1,"metadata":"note"' in ran.out


def test_the_transaction_topic(run: Run, data_dir: Path) -> None:
    files = [path for path in data_dir.glob(f"__transaction_state-*/{FIRST}.log") if path.stat().st_size]
    ran = dump(run, *files, options=("--transaction-log-decoder",))
    assert 'key: {"type":"0","data":{"transactionalId":"dumper"}}' in ran.out
    assert '"transactionPartitions":[{"topic":"dumped","partitionIds":[0]}]' in ran.out


def test_records_that_are_not_offsets_are_skipped(run: Run, partition: Path) -> None:
    ran = dump(run, partition / f"{FIRST}.log", options=("--offsets-decoder",))
    assert ran.code == 0
    assert "Error at offset 0, skipping." in ran.out


def test_a_flipped_bit_is_reported(run: Run, partition: Path) -> None:
    log = partition / f"{FIRST}.log"
    damaged = bytearray(log.read_bytes())
    damaged[100] ^= 1
    log.write_bytes(damaged)
    ran = dump(run, log, options=("--deep-iteration",))
    assert ran.code == 1
    assert "isvalid: false" in ran.lines[2]


def test_an_incomplete_last_batch_is_reported(run: Run, partition: Path) -> None:
    log = partition / f"{FIRST}.log"
    log.write_bytes(log.read_bytes()[:-1])
    ran = dump(run, log)
    assert (ran.code, ran.lines[-1]) == (1, f"Found 77 invalid bytes at the end of {FIRST}.log")


@pytest.mark.parametrize(
    "kind, message", [("index", "Mismatches in :"), ("timeindex", "not found in the log.")]
)
def test_a_wrong_index_is_reported(run: Run, partition: Path, kind: str, message: str) -> None:
    index = partition / f"{FIRST}.{kind}"
    damaged = bytearray(index.read_bytes())
    damaged[3 if kind == "index" else 11] ^= 1
    index.write_bytes(damaged)
    ran = dump(run, index)
    assert ran.code == 1
    assert message in ran.err


def test_the_error_for_a_truncated_index_is_one_sentence(run: Run, partition: Path) -> None:
    index = partition / f"{FIRST}.index"
    index.write_bytes(index.read_bytes()[:-1])
    ran = dump(run, index)
    assert ran.code == 1
    assert "is not a multiple of 8." in ran.err


def test_the_error_for_a_missing_file_is_one_sentence(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / f"{FIRST}.log"
    ran = dump(run, missing)
    assert (ran.code, ran.err) == (1, f"Error: {missing}: No such file or directory.\n")


def test_the_error_for_a_file_of_another_kind_is_one_sentence(run: Run, partition: Path) -> None:
    ran = dump(run, partition / "partition.metadata")
    assert ran.code == 1
    assert "its name must end with .log" in ran.err
