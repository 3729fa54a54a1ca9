"""Plans of offsets as CSV: topic,partition,offset, with the group in front where there are several."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from barnabas.cli.consumer_groups.plans import Plan
from barnabas.cli.failures import ToolError
from barnabas.client.types import TopicPartition


def plans_as_csv(plans: Mapping[str, Plan], with_group: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group, plan in plans.items():
        for (topic, partition), offset in plan.items():
            row = [topic, partition, offset]
            writer.writerow([group, *row] if with_group else row)
    return text.getvalue()


def read_plans(file: Path, groups: list[str]) -> dict[str, Plan]:
    """Lines without a group are for the one group that was named."""
    plans: dict[str, Plan] = {}
    with file.open(newline="") as lines:
        for number, row in enumerate(csv.reader(lines), start=1):
            if row:
                group, partition, offset = _entry(row, groups, f"{file}, line {number}")
                plans.setdefault(group, {})[partition] = offset
    return plans


def _entry(row: list[str], groups: list[str], where: str) -> tuple[str, TopicPartition, int]:
    if len(row) == 3 and len(groups) == 1:
        row = [groups[0], *row]
    if len(row) != 4 or not (row[2].strip().isdecimal() and row[3].strip().isdecimal()):
        raise ToolError(
            f"{where}: {','.join(row)!r} is not topic,partition,offset (for one --group) "
            "or group,topic,partition,offset."
        )
    group, topic, partition, offset = (cell.strip() for cell in row)
    return group, TopicPartition(topic, int(partition)), int(offset)
