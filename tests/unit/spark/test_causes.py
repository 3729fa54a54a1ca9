"""The causes of failed queries, from the texts of real failures in tests/unit/spark/failures."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from barnabas.client.errors import KafkaTimeoutError
from barnabas.spark.causes import PlaceInSql, cause_of, place_in_sql
from barnabas.spark.options import OptionError

FAILURES = Path(__file__).parent / "failures"
LESS = "let batches read less (options: {maxBytesPerTrigger: 64m} of the source)."
CAUSES = {
    # Spark's own code fails while it handles the error.
    "avro_without_schema": "decode=avro needs a schema: give schema.registry.url or avroSchema.",
    "bad_record": "The value of in-bad-1 at offset 0 cannot be decoded: JSON parse error: Column(/id) changed"
    " from number to string in row 0. Set badRecords to null or dlq:<topic> to go on without it.",
    "broker_down": "REQUEST_TIMED_OUT: 127.0.0.1:1 did not answer within 2 s; the last error was:"
    " NETWORK_EXCEPTION: cannot connect to 127.0.0.1:1: [Errno 111] Connect call failed ('127.0.0.1', 1)."
    " Check that the broker runs, and bootstrap in the file.",
    "jar_of_another_spark": "A jar was made for another version of Spark: use the release of it that is for"
    " this version, or leave it out.",
    "missing_topic": "There is no topic nowhere at 127.0.0.1:43715: check the name, or create it.",
    "rule_does_not_parse": "Syntax error at or near '>'. (in: id >> > 5)",
    "rule_fail": "A row breaks the rule 'known': id > 5. Correct the data, or set the rule's action to"
    " quarantine or drop.",
    "schema_does_not_parse": 'Unsupported data type "LONK". (in: id lonk, _topic string, _partition int,'
    " _offset bigint, _timestamp timestamp, _error string)",
    "sink_key_column": "A column, variable, or function parameter with name `nr` cannot be resolved. Did you"
    " mean one of the following? [`id`, `text`, `amount`, `_topic`, `_offset`].",
    "sink_option": "The data source barnabas has no option stagingbyts; did you mean stagingBytes?",
    "sql_at_run_time": 'The value \'abc\' of the type "STRING" cannot be cast to "BIGINT" because it is'
    " malformed. Correct the value as per the syntax, or change its target type. Use `try_cast` to tolerate"
    " malformed input and return NULL instead. (in: SELECT CAST(text AS BIGINT) AS n FROM orders)",
    "sql_syntax": "Syntax error at or near 'SELEC'. (in: SELEC amont FROM orders)",
    "sql_unknown_column": "A column, variable, or function parameter with name `amont` cannot be resolved."
    " Did you mean one of the following? [`amount`, `id`, `text`, `_offset`, `_topic`].",
    "table_not_writable": "TableNotFoundError: Could not create local directory: /srv/shop/afile/t. Check the"
    " path, and that this user may write there.",
    "udf_dies": "A Python process of Spark ended unexpectedly. Often the machine has no memory left: give"
    f" Spark fewer cores, or {LESS}",
    "udf_memory": f"A Python process of Spark ran out of memory: give Spark fewer cores, or {LESS}",
    "udf_raises": "KeyError: 1 (failing.py, line 10, in price)",
    "upsert_key_missing": "The rows for /srv/shop/tables/upsert-key-missing have no column nr; they have id,"
    " amount, text, _topic, _partition, _offset, _timestamp.",
    "worker_late": "Spark's Python process did not start in time, because the machine is busy: stop other"
    " programs, or give Spark fewer cores, for example --master local[1].",
}


def failure(name: str) -> PySparkException:
    return PySparkException((FAILURES / f"{name}.txt").read_text())


@pytest.mark.parametrize("name", sorted(path.stem for path in FAILURES.glob("*.txt")))
def test_the_cause_of_a_failure(name: str) -> None:
    assert cause_of(failure(name)) == CAUSES[name]


@pytest.mark.parametrize(
    "name, place",
    [
        ("sql_unknown_column", PlaceInSql(1, 7)),
        ("rule_does_not_parse", PlaceInSql(1, 6)),
        ("udf_raises", None),
    ],
)
def test_where_in_sql(name: str, place: PlaceInSql | None) -> None:
    assert place_in_sql(failure(name)) == place


def test_an_error_of_our_own_is_its_own_text() -> None:
    assert cause_of(OptionError("The option x is wrong.")) == "The option x is wrong."
    assert cause_of(KafkaTimeoutError("b:1 did not answer within 2 s")).endswith(
        "b:1 did not answer within 2 s. Check that the broker runs, and bootstrap in the file."
    )


def test_an_error_of_a_function_on_the_driver_has_its_line() -> None:
    def step() -> None:
        raise ZeroDivisionError("division by zero")

    with pytest.raises(ZeroDivisionError) as raised:
        step()
    assert cause_of(raised.value).startswith("ZeroDivisionError: division by zero (test_causes.py, line ")


CHAIN = """\
Traceback (most recent call last):
  File "/srv/shop/prices.py", line 3, in price
KeyError: 'tea'

{link}

Traceback (most recent call last):
  File "/srv/shop/prices.py", line 5, in price
{second}
"""


@pytest.mark.parametrize(
    "link, second, cause",
    [
        (
            "During handling of the above exception, another exception occurred:",
            "AttributeError: closed",
            "KeyError: 'tea' (prices.py, line 3, in price)",
        ),
        (
            "The above exception was the direct cause of the following exception:",
            "shop.PriceError: tea has no price",
            "PriceError: tea has no price (prices.py, line 5, in price)",
        ),
        (
            "During handling of the above exception, another exception occurred:",
            "barnabas.spark.tables.target.TableError: There is no table.",
            "There is no table.",
        ),
    ],
)
def test_which_error_of_a_chain_is_the_cause(link: str, second: str, cause: str) -> None:
    assert cause_of(PySparkException(CHAIN.format(link=link, second=second))) == cause


def test_the_first_cause_in_java() -> None:
    text = (
        "Job aborted due to stage failure: org.apache.spark.SparkException: Task failed\n"
        "\tat a.B.c(B.java:1)\n"
        "Caused by: java.io.IOException: stream is closed\n\tat a.B.c(B.java:1)\n"
        "Caused by: java.net.SocketException: Connection reset\n\tat a.B.c(B.java:1)\n"
    )
    assert cause_of(PySparkException(text)) == "Connection reset"


def test_a_text_without_an_error() -> None:
    assert cause_of(PySparkException("something\nmore")) == "something"
    assert cause_of(PySparkException("")).startswith("PySparkException")
