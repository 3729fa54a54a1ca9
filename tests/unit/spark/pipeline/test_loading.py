"""Files of pipelines: what they may contain, and errors with their line and what to do."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.spark.pipeline.definition import (
    DatabaseSink,
    FunctionSink,
    Pipeline,
    Rule,
    Source,
    Step,
    TableSink,
    TopicSink,
    Watermark,
)
from barnabas.spark.pipeline.loading import load
from barnabas.spark.pipeline.options import sink_options, source_options
from barnabas.spark.pipeline.problems import PipelineError
from barnabas.spark.pipeline.schemas import columns_of, decode_options
from barnabas.spark.tables.origin import TableOrigin, origin_of
from barnabas.spark.tables.target import target_of

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
        "6: A sink needs either a topic, a table, a database or python.",
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
    (
        "topic: orders}",
        "topic: orders, decode: json, schema: id lonk}",
        "4: The schema of source orders has the type 'lonk' for the column id; did you mean long?",
    ),
    (
        "topic: orders}",
        "topic: orders, options: {maxBytesPerTriger: 1m}}",
        "4: Source orders: The data source barnabas has no option maxBytesPerTriger; did you mean"
        " maxBytesPerTrigger?",
    ),
    (
        "topic: orders}",
        "topic: orders, decode: json, schema: id long, dedupe: [nr], watermark: {column: id, delay: 1 hour}}",
        "4: Source orders has no column nr; it must be one of id, _topic, _partition, _offset, _timestamp.",
    ),
    (
        "topic: copies",
        "topic: copies, options: {stagingByts: 1}",
        "6: The sink orders-to-copies: The data source barnabas has no option stagingByts; did you mean"
        " stagingBytes?",
    ),
    (
        "topic: copies",
        "topic: copies, delivery: at-least-once, transactional_id: x, options: {runId: 1}",
        "6: The sink orders-to-copies: runId needs delivery=exactly-once: set that, or remove runId.",
    ),
    (
        "topic: copies",
        "topic: copies, key: ke",
        "6: key of the sink orders-to-copies is the column ke, which orders does not have; did you mean key?",
    ),
    (
        "sinks:\n",
        "client: {securty.protocol: SSL}\nsinks:\n",
        "4: Source orders: A kafka.* option is wrong: securty.protocol is not a setting of this client; did"
        " you mean security.protocol?",
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


def test_schemas_and_sql_in_files_of_their_own(write: Write, tmp_path: Path) -> None:
    (tmp_path / "order.ddl").write_text("-- an order\nid long,\namount double -- in euros\n")
    (tmp_path / "large.sql").write_text("SELECT *\nFROM orders;\n")
    text = SMALL.replace("topic: orders}", "topic: orders, decode: json, schema_file: order.ddl}")
    text = text.replace("sinks:\n", "steps:\n  - {name: large, sql_file: large.sql}\nsinks:\n")
    pipeline = load(write(text))
    source = pipeline.sources["orders"]
    assert pipeline.steps == (Step("large", sql="SELECT *\nFROM orders", sql_file="large.sql"),)
    assert columns_of(source, "_offset long").endswith("amount double -- in euros\n, _offset long")


AVRO = json.dumps({"type": "record", "name": "O", "fields": [{"name": "a b", "type": ["null", "long"]}]})


def test_an_avro_schema_is_the_columns_of_a_source(write: Write, tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(AVRO)
    path = write(SMALL.replace("topic: orders}", "topic: orders, decode: avro, schema_file: order.avsc}"))
    source = load(path).sources["orders"]
    assert columns_of(source, "_offset long") == "`a b` bigint\n, _offset long"
    assert decode_options(source)["avroSchema"] == AVRO


FILE_MISTAKES = (
    (
        "decode: json, schema_file: none.ddl",
        "schema_file of source orders is {}/none.ddl, which cannot be read: No such file or directory.",
    ),
    ("decode: json, schema_file: empty", "schema_file of source orders is {}/empty, which is empty."),
    (
        "decode: json, schema_file: bytes",
        "schema_file of source orders is {}/bytes, whose line 2 is not UTF-8.",
    ),
    (
        "decode: json, schema: a long, schema_file: bytes",
        "schema_file of source orders is given beside schema: remove one of them.",
    ),
    (
        "decode: avro, schema_file: broken.avsc",
        "The Avro schema of source orders in broken.avsc, line 2, is not valid JSON: Expecting value.",
    ),
    (
        "decode: avro, schema: a long",
        "The schema of source orders is not an Avro schema in JSON, which decode: avro needs without a"
        " registry: name a file such as order.avsc in schema_file, or set registry.",
    ),
    (
        'decode: avro, schema: \'{"type": "map", "values": "int"}\'',
        "Source orders: The Avro schema must be a record, whose fields become columns.",
    ),
    (
        "decode: csv, schema_file: broken.avsc",
        "The schema of source orders is JSON, but decode: csv needs one as in CREATE TABLE, such as 'id"
        " string, amount double'.",
    ),
    (
        "decode: protobuf, schema_file: bytes",
        "Source orders needs message, the name of a message in bytes, such as shop.Order.",
    ),
    (
        "decode: protobuf, message: a.B, schema_file: bytes",
        "Source orders in bytes: The Protobuf descriptors are not what protoc --include_imports"
        " --descriptor_set_out writes.",
    ),
    (
        "schema: a long",
        "Source orders decodes nothing, so it needs no schema: set decode, or remove the schema.",
    ),
    ("envelope: debezium", "envelope of source orders needs decode: json or avro."),
)


@pytest.mark.parametrize("fields, sentence", FILE_MISTAKES)
def test_a_schema_that_cannot_be_used(write: Write, tmp_path: Path, fields: str, sentence: str) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"a\n\xff")
    (tmp_path / "broken.avsc").write_text('{"type":\n}')
    path = write(SMALL.replace("topic: orders}", f"topic: orders, {fields}}}"))
    assert problems_of(path) == [f"4: {sentence.format(tmp_path)}"]


CLUSTERS = """\
name: two
checkpoint: ./state
clusters:
  west: {bootstrap: "west:9092", client: {security.protocol: SSL}}
sources:
  orders: {pattern: "orders-.*", cluster: west}
  local: {topic: local}
sinks:
  - {from: local, topic: copies, cluster: west}
"""


def test_several_clusters(write: Write) -> None:
    pipeline = load(write(CLUSTERS))
    west = {"kafka.bootstrap.servers": "west:9092", "kafka.security.protocol": "SSL"}
    options = source_options(pipeline, pipeline.sources["orders"], "group")
    assert west.items() <= options.items()
    (sink,) = pipeline.sinks
    assert isinstance(sink, TopicSink)
    assert west.items() <= sink_options(pipeline, sink).items()
    own = source_options(pipeline, pipeline.sources["local"], "group")
    assert own["kafka.bootstrap.servers"] == "localhost:9092"
    assert [pipeline.cluster_of(topic, None) for topic in ("orders-7", "local")] == ["west", None]
    assert [pipeline.cluster_of("any", step) for step in ("orders", "local")] == ["west", None]
    wrong = CLUSTERS.replace("cluster: west}\n  local", "cluster: wst}\n  local")
    assert problems_of(write(wrong)) == [
        "6: cluster of source orders is 'wst', which clusters does not have; did you mean west?"
    ]


def test_other_sinks_and_tables(write: Write) -> None:
    text = SMALL + (
        "  - {from: orders, python: 'prices:price', mode: update}\n"
        "  - {from: orders, database: {url: 'sqlite:///x.db', table: t, mode: upsert, key: key}}\n"
        "tables:\n  customers: {path: ./customers, format: csv, refresh: start}\n"
    )
    pipeline = load(write(text))
    assert pipeline.sinks[1:] == (
        FunctionSink("orders", "prices:price", "update"),
        DatabaseSink("orders", "sqlite:///x.db", "t", "upsert", ("key",)),
    )
    assert pipeline.tables == {"customers": TableOrigin(path="./customers", format="csv", refresh="start")}


def test_tables_in_catalogs(write: Write, tmp_path: Path) -> None:
    catalog = "name: shop.orders, catalog: {type: rest, uri: 'http://host'}"
    text = SMALL.replace("topic: copies", f"table: {{{catalog}}}") + f"tables:\n  old: {{{catalog}}}\n"
    pipeline = load(write(text))
    settings = (("type", "rest"), ("uri", "http://host"))
    assert pipeline.sinks == (TableSink("orders", "shop.orders", format="iceberg", catalog=settings),)
    assert pipeline.tables == {"old": TableOrigin(path="shop.orders", format="iceberg", catalog=settings)}
    (sink,) = pipeline.sinks
    assert isinstance(sink, TableSink)
    target = sink.target(tmp_path)
    assert (target.path, target_of(target.as_options())) == ("shop.orders", target)
    origin = pipeline.tables["old"]
    assert origin_of(origin.as_options()) == origin


OTHER_MISTAKES = (
    ("table: {name: shop.orders}", "a table needs both name and catalog, or neither."),
    ("table: {name: a.b, path: c, catalog: {type: sql}}", "a table has a name in a catalog: remove path."),
    (
        "table: {name: orders, catalog: {type: sql}}",
        "name of a table is 'orders', but must have a namespace, as in shop.orders.",
    ),
    (
        "table: {name: a.b, format: delta, catalog: {type: sql}}",
        "The table a.b is in a catalog, which only format iceberg has, not delta.",
    ),
    (
        "python: nowhere_at_all:f",
        "The sink orders-to-f needs the module nowhere_at_all, which is neither beside the file nor"
        " installed.",
    ),
    (
        "database: {url: 'jdbc:derby:x', table: t}",
        "url of a database is one for Java: a sink needs one of SQLAlchemy, such as postgresql+psycopg://user:password@host/name.",
    ),
    (
        "database: {url: 'sqlite://', table: t, mode: upsert}",
        "The table t has mode upsert and needs a key: name the columns of the key.",
    ),
    ("table: {path: './{a}/{b}'}", "path of a table is ./{a}/{b}, but may have only one column in {}."),
)


@pytest.mark.parametrize("sink, sentence", OTHER_MISTAKES)
def test_mistakes_in_other_sinks(write: Write, sink: str, sentence: str) -> None:
    assert problems_of(write(SMALL.replace("topic: copies", sink))) == [f"6: {sentence}"]


ORIGIN_MISTAKES = (
    ("{format: csv}", "Table t needs either path, for files, or url, for a database."),
    ("{url: 'sqlite://'}", "Table t is in a database and needs either table or query."),
    (
        "{url: 'sqlite://', query: SELECT 1}",
        "Table t is a query and needs a schema, such as 'id long, name string'.",
    ),
    ("{path: ./t, query: SELECT 1}", "Table t has a path: remove table and query, which are for databases."),
)


@pytest.mark.parametrize("table, sentence", ORIGIN_MISTAKES)
def test_mistakes_in_tables(write: Write, table: str, sentence: str) -> None:
    problems = problems_of(write(SMALL + f"tables:\n  t: {table}\n"))
    assert f"8: {sentence}" in problems


def test_a_column_chooses_the_table(tmp_path: Path) -> None:
    sink = TableSink("orders", "./tables/{country}/orders")
    assert (sink.column, sink.name) == ("country", "orders-to-orders")
    values = ["de", "..", "a/b", "a~2Fb", "é", "", None]
    paths = [sink.target_for(value, tmp_path).path for value in values]
    names = ["de", "~2E~2E", "a~2Fb", "a~7E2Fb", "~C3~A9", "~~", "~"]
    assert paths == [str(tmp_path / "tables" / name / "orders") for name in names]
    for path in paths[:2]:
        Path(path).mkdir(parents=True)
    assert [target.path for target in sink.targets(tmp_path)] == sorted(paths[:2])


def test_a_sink_does_not_read_a_table(write: Write) -> None:
    text = SMALL.replace("from: orders", "from: customers") + "tables:\n  customers: {path: ./customers}\n"
    assert problems_of(write(text)) == [
        "6: A sink reads the table customers, which is no stream: write a step that joins it with a source."
    ]


def test_an_empty_file(write: Write) -> None:
    assert problems_of(write("")) == [" The file is empty; it needs name, sources and sinks."]


def test_a_module_without_a_pipeline(write: Write) -> None:
    path = write("x = 1\n", "no_pipeline.py")
    assert problems_of(path) == [
        " The module must define `pipeline`, a barnabas.spark.pipeline.definition.Pipeline."
    ]
