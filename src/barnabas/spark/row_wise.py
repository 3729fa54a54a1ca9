"""Frames that choose rows and columns of one batch and compute others, row by row, and do nothing else. They
can be read together: a row leaves Spark once, whatever the number of frames.

Spark's optimizer says how a frame is computed. It joins steps and filters, so that most of these frames are
one list of columns above conditions. What looks different is not read together."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


class RowWise(NamedTuple):
    """How a frame is computed from the columns of a batch, in Spark's expressions: its columns by their
    names, and the conditions that its rows fulfil."""

    columns: Mapping[str, Any]
    conditions: Sequence[Any]


class Part(NamedTuple):
    """Where a frame is in rows that were read together: the names that its columns have there, and the column
    that is true for its rows; None if all are its rows."""

    columns: Mapping[str, str]
    mask: str | None


def row_wise(frame: DataFrame, batch: DataFrame) -> RowWise | None:
    """None if the frame is not computed row by row, and with Spark Connect, where plans cannot be seen."""
    if not hasattr(frame, "_jdf") or len(set(frame.columns)) < len(frame.columns):
        return None
    plan = node = frame._jdf.queryExecution().optimizedPlan()
    listed = plan.output()
    if plan.nodeName() == "Project":
        listed, node = plan.projectList(), plan.child()
    conditions: list[Any] = []
    while node.nodeName() in ("Filter", "Project", "Repartition"):
        if node.nodeName() == "Filter":
            conditions.insert(0, node.condition())
        elif node.nodeName() == "Project" and not all(map(_is_plain, _each(node.projectList()))):
            return None
        node = node.child()
    own = {_id(each) for each in _each(batch._jdf.queryExecution().analyzed().output())}
    is_batch = node.children().isEmpty() and {_id(each) for each in _each(node.output())} <= own
    # What is not deterministic depends on how often it is computed. Subqueries read other frames.
    if not is_batch or not plan.deterministic() or not plan.subqueriesAll().isEmpty():
        return None
    return RowWise(dict(zip(frame.columns, _each(listed), strict=True)), conditions)


def together(batch: DataFrame, frames: Sequence[RowWise]) -> tuple[DataFrame, list[Part]]:
    """The rows of all frames as one frame. Columns of the batch are in it once."""
    chosen: dict[str, Column] = {}
    parts = []
    for number, frame in enumerate(frames):
        condition = reduce(and_, map(_column, frame.conditions)) if frame.conditions else None
        mask = None if condition is None else f"mask {number}"
        if mask is not None and condition is not None:
            chosen[mask] = condition
        names = {}
        for name, expression in frame.columns.items():
            if _is_plain(expression):
                names[name], column = f"batch {_id(expression)}", _column(expression)
            else:
                names[name], column = f"{number} {name}", _column(expression.child())
                # For other rows the frame does not compute it, and it might fail.
                column = column if condition is None else F.when(condition, column)
            chosen[names[name]] = column
        parts.append(Part(names, mask))
    rows = batch.select(*(column.alias(name) for name, column in chosen.items()))
    masks = [F.col(f"`{part.mask}`") for part in parts if part.mask is not None]
    return (rows.filter(reduce(or_, masks)) if len(masks) == len(parts) else rows), parts


def _each(items: Any) -> Iterator[Any]:
    return (items.apply(place) for place in range(items.size()))


def _is_plain(expression: Any) -> bool:
    """Whether it is a column of the batch, as it is."""
    return bool(expression.nodeName() == "AttributeReference")


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def _column(expression: Any) -> Column:
    from pyspark import SparkContext
    from pyspark.sql.classic.column import Column as ClassicColumn

    jvm: Any = SparkContext._jvm
    return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))
