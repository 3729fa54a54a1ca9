"""Counts the events in topics and tables, and compares the numbers with what the shop sent."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import barnabas
from barnabas.client.consumer import ConsumerRecord
from barnabas.spark.tables.store import store_of
from barnabas.spark.tables.target import TableTarget
from tools.orders.events import Expected


class Check(NamedTuple):
    what: str
    expected: object
    counted: object

    @property
    def holds(self) -> bool:
        return self.expected == self.counted


def committed(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    """All records of a topic that a consumer with read_committed sees."""
    settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    records: list[ConsumerRecord] = []
    with barnabas.Consumer({**settings, "isolation.level": "read_committed"}) as consumer:
        places = [barnabas.TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < ends[place] for place in places):
            # Compare positions, not numbers of records: transaction markers have offsets, too.
            records += consumer.poll(0.1)
    return records


def checks(bootstrap: str, directory: Path, expected: Expected) -> list[Check]:
    """Every event is a row, a duplicate, a closing or a dead letter; no row is there twice."""
    rows = _table(directory / "tables" / "orders")
    ids = rows.column("order_id").to_pylist()
    enriched = [json.loads(record.value) for record in committed(bootstrap, "orders-enriched")]
    letters = [dict(record.headers) for record in committed(bootstrap, "orders-dead-letters")]
    undecodable = sum(1 for headers in letters if headers["barnabas.step"] == b"orders")
    revenue = _table(directory / "tables" / "revenue")
    accounted = len(ids) + expected.duplicates + len(letters) + expected.closings
    return [
        Check("events sent = rows + duplicates + quarantined + closings", expected.sent, accounted),
        Check("rows in the table of orders", expected.orders, len(ids)),
        Check("each order once, and none that was not sent", expected.ids, set(ids)),
        Check("records in orders-enriched", expected.orders, len(enriched)),
        Check("each of them once", expected.ids, {each["order_id"] for each in enriched}),
        Check("undecodable records among the dead letters", expected.undecodable, undecodable),
        Check("rejected orders among the dead letters", expected.rejected, len(letters) - undecodable),
        Check(
            "revenue over all windows, in cents",
            expected.revenue_cents,
            round(sum(revenue.column("revenue").to_pylist()) * 100),
        ),
        Check("orders over all windows", expected.orders, sum(revenue.column("orders").to_pylist())),
    ]


def _table(path: Path) -> Any:
    return store_of(TableTarget(str(path))).read()
