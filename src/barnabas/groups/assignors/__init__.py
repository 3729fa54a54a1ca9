"""Server-side assignors: which member of a group reads which partitions. Pure functions.

Every assignor gives each partition of a subscribed topic to exactly one subscriber. The result does not
depend on the order of members and topics."""

from barnabas.groups.assignors.range import assign_ranges
from barnabas.groups.assignors.spec import NOTHING, Assignment, Assignor, MemberSpec, PartitionCounts
from barnabas.groups.assignors.uniform import assign_uniformly

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}

__all__ = ["ASSIGNORS", "NOTHING", "Assignment", "Assignor", "MemberSpec", "PartitionCounts"]
