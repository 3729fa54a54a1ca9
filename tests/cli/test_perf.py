"""The performance tools: they print what Kafka's tools print, and count correctly."""

import re
from pathlib import Path

import pytest
from tests.cli.conftest import Run

import barnabas
from barnabas.cli.perf.consumer import java_date
from barnabas.cli.perf.statistics import ProducerStatistics, now_ms

TOTAL = re.compile(
    r"(\d+) records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), "
    r"[\d.]+ ms avg latency, [\d.]+ ms max latency, "
    r"\d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)


def end_of(bootstrap: str, topic: str) -> int:
    partition = barnabas.TopicPartition(topic, 0)
    with barnabas.Consumer(bootstrap_servers=bootstrap) as consumer:
        return consumer.end_offsets([partition])[partition]


def send(run: Run, topic: str, *more: str, count: int = 1000) -> str:
    ran = run(
        "producer-perf-test", "--topic", topic, "--num-records", str(count), "--throughput", "-1", *more
    )
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def test_every_record_is_sent_and_counted(run: Run, bootstrap: str, topic_name: str) -> None:
    out = send(run, topic_name, "--record-size", "100", "--bootstrap-server", bootstrap)
    total = TOTAL.fullmatch(out.splitlines()[-1])
    assert total and total[1] == "1000"
    assert end_of(bootstrap, topic_name) == 1000


def test_the_line_of_old_scripts(run: Run, bootstrap: str, topic_name: str) -> None:
    properties = [f"bootstrap.servers={bootstrap}", "acks=-1", "linger.ms=5", "compression.type=lz4"]
    out = send(run, topic_name, "--record-size", "1024", "--producer-props", *properties)
    assert TOTAL.fullmatch(out.splitlines()[-1])


def test_values_of_a_file(run: Run, bootstrap: str, topic_name: str, tmp_path: Path) -> None:
    file = tmp_path / "values"
    file.write_text("one\ntwo\n")
    out = send(run, topic_name, "--payload-file", str(file), "--bootstrap-server", bootstrap, count=50)
    assert "Number of records read: 2" in out
    with barnabas.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([barnabas.TopicPartition(topic_name, 0)])
        seen = {record.value for record in consumer.poll(30.0)}
    assert seen == {b"one", b"two"}


def test_transactions_and_a_warm_up(run: Run, bootstrap: str, topic_name: str) -> None:
    more = ["--transaction-duration-ms", "20", "--warmup-records", "100", "--bootstrap-server", bootstrap]
    out = send(run, topic_name, "--payload-monotonic", *more)
    assert out.splitlines()[-1].startswith("900 steady state records sent, ")
    # Each transaction leaves a marker.
    assert end_of(bootstrap, topic_name) > 1000


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        (["--num-records", "0"], "--num-records should be greater than zero."),
        (
            ["--warmup-records", "1000"],
            "--warmup-records should be less than --num-records, and not negative.",
        ),
        (["--producer-props", "acks"], "--producer-props 'acks' must be written as KEY=VALUE."),
        ([], "Give the address of a broker with --bootstrap-server HOST:PORT."),
    ],
)
def test_wrong_options_of_the_producer(run: Run, wrong: list[str], sentence: str) -> None:
    usual = ["--topic", "t", "--num-records", "1000", "--throughput", "-1", "--record-size", "1"]
    ran = run("producer-perf-test", *usual, *wrong)
    assert (ran.code, ran.err) == (1, f"Error: {sentence}\n")


def test_one_line_is_printed_per_interval() -> None:
    lines: list[str] = []
    statistics = ProducerStatistics(10, 0, lines.append)
    statistics.done(now_ms() - 7, 100)
    assert len(lines) == 1
    assert re.fullmatch(
        r"1 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), "
        r"[\d.]+ ms avg latency, [\d.]+ ms max latency\.",
        lines[0],
    )
    assert statistics.total.latency_max >= 7


def test_the_consumer_counts_its_records(run: Run, bootstrap: str, topic_name: str) -> None:
    send(run, topic_name, "--record-size", "1024", "--bootstrap-server", bootstrap)
    ran = run(
        "consumer-perf-test", "--bootstrap-server", bootstrap, "--topic", topic_name, "--messages", "1000"
    )
    assert ran.code == 0
    header, figures = ran.lines
    names, values = header.split(", "), figures.split(", ")
    assert header.startswith(
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    )
    columns = dict(zip(names, values, strict=True))
    assert (columns["data.consumed.in.MB"], columns["data.consumed.in.nMsg"]) == ("0.9766", "1000")


def test_the_consumer_stops_after_the_timeout_with_a_warning(
    run: Run, bootstrap: str, topic_name: str
) -> None:
    send(run, topic_name, "--record-size", "10", "--bootstrap-server", bootstrap, count=5)
    how = ["--num-records", "6", "--timeout", "1000", "--show-detailed-stats", "--hide-header"]
    ran = run("consumer-perf-test", "--bootstrap-server", bootstrap, "--topic", topic_name, *how)
    assert ran.code == 0
    assert ran.lines[-1].startswith("WARNING: Exiting before consuming the expected number of records")


def test_date_formats_are_written_as_in_java() -> None:
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:007", java_date(1_700_000_000_007, "yyyy-MM-dd HH:mm:ss:SSS")
    )


@pytest.mark.parametrize("form", ["named", "older"])
def test_the_latency_from_producer_to_consumer(run: Run, bootstrap: str, topic_name: str, form: str) -> None:
    named = ["--bootstrap-server", bootstrap, "--topic", topic_name, "--num-records", "20"]
    named += ["--producer-acks", "all", "--record-size", "10", "--num-headers", "2", "--record-key-size", "3"]
    older = [bootstrap, topic_name, "20", "1", "10"]
    ran = run("e2e-latency", *(named if form == "named" else older))
    assert (ran.code, ran.err) == (0, "")
    assert "does not exist. Will create topic" in ran.lines[0]
    assert re.fullmatch(r"Avg latency: \d+\.\d{4} ms", ran.lines[-2])
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", ran.lines[-1])
    assert end_of(bootstrap, topic_name) == 20


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["a:1", "t", "1"], "but got 3"),
        (["a:1", "t", "1", "0", "1"], "Please use 1 or all."),
        (["a:1", "t", "0", "1", "1"], "--num-records must be a number above 0, not '0'."),
        (["--topic", "t"], "--bootstrap-server is missing."),
    ],
)
def test_wrong_options_of_the_latency_tool(run: Run, arguments: list[str], sentence: str) -> None:
    ran = run("e2e-latency", *arguments)
    assert ran.code == 1
    assert sentence in ran.err
