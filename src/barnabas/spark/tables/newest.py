"""The last row of each key: by a column that orders them, else as they come. Needs pyarrow."""

from typing import Any

import pyarrow

from barnabas.spark.tables.target import TableError, TableTarget

ROW = "__row"


def newest_of_each_key(rows: Any, target: TableTarget) -> Any:
    """Of rows with the same key the one with the largest `order_by`; of equals the last."""
    missing = [name for name in (*target.key, target.order_by) if name and name not in rows.column_names]
    if missing:
        raise TableError(
            f"The rows for {target.path} have no column {missing[0]}, only {', '.join(rows.column_names)}."
        )
    if target.order_by is not None:
        # Sorting is stable, so that equals stay as they came.
        rows = rows.sort_by([(target.order_by, "ascending")])
    numbered = rows.append_column(ROW, pyarrow.array(range(rows.num_rows), pyarrow.int64()))
    last = numbered.group_by(list(target.key)).aggregate([(ROW, "max")])
    return rows.take(last.column(f"{ROW}_max").combine_chunks().sort())
