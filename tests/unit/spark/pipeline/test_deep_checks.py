"""Where in the file a mistake in SQL is, and functions that cannot be called."""

from pathlib import Path

import pytest

from barnabas.spark.causes import PlaceInSql
from barnabas.spark.pipeline.deep_checks import check_functions, line_of_sql
from barnabas.spark.pipeline.definition import FunctionSink, Pipeline, Source, Step

FOLDED = """\
steps:
  - name: sums
    sql: >
      SELECT category, sum(amont)
      FROM orders
      GROUP BY category
""".splitlines()
LITERAL = """\
steps:
  - name: sums
    sql: |
      SELECT category,
        sum(amont)
      FROM orders
""".splitlines()
INLINE = ["steps:", "  - {name: a, sql: 'SELECT x'}", "  - {name: sums, sql: SELECT sum(amont) FROM orders}"]


@pytest.mark.parametrize(
    "texts, first, sql, place, line",
    [
        (FOLDED, 3, "SELECT category, sum(amont) FROM orders GROUP BY category\n", (1, 21), 4),
        (FOLDED, 3, "SELECT category, sum(amont) FROM orders GROUP BY category\n", (1, 49), 6),
        (LITERAL, 3, "SELECT category,\n  sum(amont)\nFROM orders\n", (2, 6), 5),
        (INLINE, 3, "SELECT sum(amont) FROM orders", (1, 11), 3),
        (INLINE, 2, "SELECT x", (1, 7), 2),
    ],
)
def test_the_line_of_a_place_in_sql(
    texts: list[str], first: int, sql: str, place: tuple[int, int], line: int
) -> None:
    assert line_of_sql(texts, first, sql, PlaceInSql(*place)) == line


def test_functions_are_called_as_a_pipeline_calls_them(tmp_path: Path) -> None:
    def write(frame: object) -> None:
        """It does not take the number of the batch."""

    def step(spark: object, orders: object) -> object:
        return orders

    pipeline = Pipeline(
        name="functions",
        bootstrap="localhost:9092",
        checkpoint="./state",
        sources={"orders": Source(topics=("orders",))},
        steps=(Step("good", python=step, inputs=("orders",)), Step("bad", python=step)),
        sinks=(FunctionSink("orders", write), FunctionSink("orders", print)),
    )
    problems = check_functions(pipeline, {("step", "bad"): 7, ("sink", "0"): 9}, tmp_path)
    assert [(problem.sentence.partition(", which")[0], problem.line) for problem in problems] == [
        ("Step bad calls its function with (spark)", 7),
        ("The sink orders-to-write calls its function with (frame, batch)", 9),
    ]
