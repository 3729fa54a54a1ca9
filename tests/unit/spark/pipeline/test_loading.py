"""Files of pipelines: what they may contain, and errors with their line and what to do."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.spark.pipeline.definition import Pipeline, Rule, Source, Step, TableSink, TopicSink, Watermark
from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.problems import PipelineError

Write = Callable[..., Path]
WHOLE = """\
name: orders
bootstrap: ${BARNABAS_TEST_BROKER:-localhost:9092}
checkpoint: ./state
trigger: 2s
dead_letters: orders-dlq
sources:
  orders:
    topic: orders
    start: now-10m
    decode: json
    schema: "order_id string, amount double, at timestamp"
    bad_records: quarantine
    watermark: {column: at, delay: 10 minutes}
    dedupe: [order_id]
    options: {maxOffsetsPerTrigger: 1000}
steps:
  - {name: clean, sql: "SELECT * FROM orders"}
  - {name: priced, python: "prices:price", from: [clean]}
quality:
  clean:
    - {name: positive, check: "amount > 0", action: drop}
    - {check: "order_id IS NOT NULL"}
sinks:
  - {from: priced, topic: priced, key: order_id}
  - {from: clean, table: {path: ./tables/orders, mode: upsert, key: [order_id], partition_by: [at]}}
"""
SMALL = """\
name: small
checkpoint: ./state
sources:
  orders: {topic: orders}
sinks:
  - {from: orders, topic: copies}
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    (tmp_path / "prices.py").write_text("def price(spark, clean):\n    return clean\n")

    def write(text: str, name: str = "pipeline.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def problems_of(path: Path) -> list[str]:
    with pytest.raises(PipelineError) as raised:
        load(path)
    return [line.removeprefix(f"{path}:") for line in str(raised.value).splitlines()]


def test_a_file_with_every_field(write: Write) -> None:
    assert load(write(WHOLE)) == Pipeline(
        name="orders",
        bootstrap="localhost:9092",
        checkpoint="./state",
        trigger="2s",
        dead_letters="orders-dlq",
        sources={
            "orders": Source(
                topics=("orders",),
                start="now-10m",
                decode="json",
                schema="order_id string, amount double, at timestamp",
                bad_records="quarantine",
                watermark=Watermark("at", "10 minutes"),
                dedupe=("order_id",),
                options={"maxOffsetsPerTrigger": "1000"},
            )
        },
        steps=(
            Step("clean", sql="SELECT * FROM orders"),
            Step("priced", python="prices:price", inputs=("clean",)),
        ),
        quality={
            "clean": (
                Rule("positive", "amount > 0", "drop"),
                Rule("order_id IS NOT NULL", "order_id IS NOT NULL", "quarantine"),
            )
        },
        sinks=(
            TopicSink("priced", "priced", key="order_id"),
            TableSink("clean", "./tables/orders", mode="upsert", key=("order_id",), partition_by=("at",)),
        ),
    )


def test_variables_come_from_the_environment(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARNABAS_TEST_BROKER", "broker:1234")
    assert load(write(WHOLE)).bootstrap == "broker:1234"


def test_the_same_in_python(write: Write) -> None:
    path = write(
        "from barnabas.spark.pipeline.definition import Pipeline, Source, TopicSink\n"
        "pipeline = Pipeline(name='small', bootstrap='localhost:9092', checkpoint='./state',\n"
        "    sources={'orders': Source(topics=('orders',))}, sinks=(TopicSink('orders', 'copies'),))\n",
        "small_pipeline.py",
    )
    assert load(path) == load(write(SMALL))


# A text in SMALL, its replacement, and the error: its line and the sentence.
STEPS = "steps:\n  - "
MISTAKES = (
    ("topic: orders}", "topc: orders}", "4: source orders has no field 'topc'; did you mean topic?"),
    (
        "topic: orders}",
        "topic: orders, start: noon}",
        "4: start of orders is 'noon', but must be earliest, latest, group, now-<duration> such as now-10m,"
        " or -<records> such as -100.",
    ),
    (
        "{from: orders,",
        "{from: oders,",
        "6: A sink reads 'oders', which is not a source or step; did you mean orders?",
    ),
    (
        "topic: copies",
        "topic: copies, delivery: exactly_once",
        "6: delivery of a sink is 'exactly_once'; did you mean exactly-once?",
    ),
    ("topic: copies", "topic: copies, topic: more", "6: topic is given twice."),
    (
        "topic: copies",
        "topic: copies, mode: update",
        "6: mode of a sink to a topic must be append or complete, not 'update'.",
    ),
    (
        "checkpoint: ./state",
        "checkpoint: ${NOT_SET}",
        "2: checkpoint of the pipeline uses ${NOT_SET}, which is not set; "
        "set it, or write ${NOT_SET:-default}.",
    ),
    ("checkpoint: ./state\n", "", "1: the pipeline needs the field checkpoint."),
    (
        "topic: orders}",
        "topic: orders, decode: json}",
        "4: Source orders decodes JSON and needs a schema, such as 'id string, amount double'.",
    ),
    (
        "topic: orders}",
        "topic: orders, dedupe: [id]}",
        "4: Source orders drops duplicates and needs a watermark, so that old rows can be forgotten.",
    ),
    (
        "topic: copies",
        "table: {path: ./t, mode: upsert}",
        "6: The table ./t has mode upsert and needs a key: name the columns of the key.",
    ),
    (
        "topic: copies",
        "table: {path: ./t, format: parquet, mode: upsert, key: a}",
        "6: The table ./t is plain Parquet, which does not allow upsert: choose delta or iceberg.",
    ),
    (
        "topic: copies",
        "topic: copies, table: {path: ./t}",
        "6: A sink needs either a topic or a table.",
    ),
    (
        "sinks:\n",
        "trigger: often\nsinks:\n",
        " trigger is 'often', but must be a duration such as 5s, or available-now.",
    ),
    (
        "sinks:\n",
        f"{STEPS}{{name: orders, sql: SELECT 1}}\nsinks:\n",
        "6: The name orders is used twice: sources and steps need different names.",
    ),
    (
        "sinks:\n",
        f"{STEPS}{{name: a, python: nowhere_at_all:f}}\nsinks:\n",
        "6: Step a needs the module nowhere_at_all, which is neither beside the file nor installed.",
    ),
    (
        "sinks:\n",
        "quality:\n  orders: [{check: a > 0}]\nsinks:\n",
        "6: Rules of orders quarantine rows: name their topic in dead_letters.",
    ),
    ("sources:", "sources: [", "5: This is not valid YAML: expected ',' or ']', but got '<scalar>'."),
)


@pytest.mark.parametrize("old, new, message", MISTAKES)
def test_a_mistake_is_reported_with_its_line(write: Write, old: str, new: str, message: str) -> None:
    assert old in SMALL
    assert message in problems_of(write(SMALL.replace(old, new)))


def test_all_mistakes_are_reported_at_once(write: Write) -> None:
    wrong = SMALL.replace("topic: orders}", "topc: orders}").replace("from: orders", "from: oders")
    assert len(problems_of(write(wrong))) == 3


def test_an_empty_file(write: Write) -> None:
    assert problems_of(write("")) == [" The file is empty; it needs name, sources and sinks."]


def test_a_module_without_a_pipeline(write: Write) -> None:
    path = write("x = 1\n", "no_pipeline.py")
    assert problems_of(path) == [
        " The module must define `pipeline`, a barnabas.spark.pipeline.definition.Pipeline."
    ]
