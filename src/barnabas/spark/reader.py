"""Batch queries: the ranges are found when Spark plans, and are read by tasks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from barnabas.spark.brokers import brokers_of
from barnabas.spark.lookups import Lookups
from barnabas.spark.offsets import Offsets
from barnabas.spark.options import OptionError
from barnabas.spark.partition import RangePartition
from barnabas.spark.planning import Range, split
from barnabas.spark.pushdown import Bounds, bounds_of
from barnabas.spark.settings import ReadSettings
from barnabas.spark.starts import AtOffsets
from barnabas.spark.tasks import read_range

if TYPE_CHECKING:
    from pyarrow import RecordBatch


class TopicReader(DataSourceReader):
    def __init__(self, settings: ReadSettings, schema: StructType) -> None:
        self._settings = settings
        self._schema = schema
        self._bounds = Bounds()

    def partitions(self) -> Sequence[InputPartition]:
        found = split(
            self._ranges(), self._settings["maxRecordsPerPartition"], self._settings["minPartitions"]
        )
        # Spark makes a partition of its own where there is none, and would hand that to read().
        return [RangePartition.of(each) for each in found] or [RangePartition()]

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        assert isinstance(partition, RangePartition)
        return read_range(self._settings, self._schema, partition.range)

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
    """With filters: a class of its own, since Spark refuses a reader that could take filters while taking
    them is switched off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """All filters are given back: they narrow what is read, and Spark checks each row all the same."""
        self._bounds = bounds_of(filters)
        return filters


def _check_ends(wanted: Offsets, ends: Offsets) -> None:
    for partition, offset in sorted(wanted.items()):
        if offset > ends[partition]:
            raise OptionError(
                f"endingOffsets has {offset} for {partition}, which ends at {ends[partition]} as yet."
            )
