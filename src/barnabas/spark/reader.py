"""Batch queries: the driver finds the ranges when Spark plans the query, and tasks read them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from barnabas.spark.brokers import brokers_of
from barnabas.spark.lookups import Lookups
from barnabas.spark.offsets import Offsets
from barnabas.spark.options import OptionError
from barnabas.spark.planning import Range
from barnabas.spark.pushdown import Bounds, bounds_of
from barnabas.spark.settings import ReadSettings
from barnabas.spark.starts import AtOffsets
from barnabas.spark.tasks import RangesPartition, read_ranges, tasks_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class TopicReader(DataSourceReader):
    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema
        self._bounds = Bounds()

    def partitions(self) -> Sequence[InputPartition]:
        # If there is no partition, Spark makes one of its own and passes it to read().
        return tasks_of(self._settings, self._ranges()) or [RangesPartition()]

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        assert isinstance(partition, RangesPartition)
        return read_ranges(self._settings, self._schema, partition.ranges)

    def _ranges(self) -> list[Range]:
        settings = self._settings
        brokers = brokers_of(settings.client)
        lookups = Lookups(brokers, settings)
        partitions = lookups.partitions()
        begin = lookups.offsets_at(settings.start, partitions, "startingOffsets")
        end = lookups.offsets_at(settings.end, partitions, "endingOffsets")
        if isinstance(settings.end, AtOffsets):
            _check_ends(end, lookups.ends(partitions, {}))
        begin, end = self._bounds.narrow(begin, end, brokers.at_times)
        return lookups.ranges(begin, end, has_new=False)


class PushdownReader(TopicReader):
    """A reader that takes filters. It is another class because Spark refuses a reader with pushFilters if
    filter pushdown is disabled in the session."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """All filters are returned: they reduce what is read, and Spark still applies them to each row."""
        self._bounds = bounds_of(filters)
        return filters


def _check_ends(given: Offsets, ends: Offsets) -> None:
    for partition, offset in sorted(given.items()):
        if offset > ends[partition]:
            raise OptionError(
                f"endingOffsets has offset {offset} for {partition}, but the partition ends at offset"
                f" {ends[partition]}."
            )
