"""How many tasks read topics, by where Spark runs."""

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.spark.session import read_in_fewer_tasks


def session(master: str) -> Any:
    return SimpleNamespace(
        _jsparkSession=None, sparkContext=SimpleNamespace(master=master, defaultParallelism=4)
    )


def test_on_this_machine_a_task_for_each_core_reads() -> None:
    options = {"subscribe": "orders"}
    assert read_in_fewer_tasks(session("local[4]"), options) == {"subscribe": "orders", "maxPartitions": "4"}


@pytest.mark.parametrize("name", ["minPartitions", "minpartitions", "maxPartitions"])
def test_who_says_how_many_gets_them(name: str) -> None:
    assert read_in_fewer_tasks(session("local[4]"), {name: "9"}) == {name: "9"}


def test_a_cluster_may_get_more_cores() -> None:
    assert read_in_fewer_tasks(session("spark://host:7077"), {}) == {}
    assert read_in_fewer_tasks(SimpleNamespace(), {}) == {}, "Spark Connect"  # type: ignore[arg-type]
