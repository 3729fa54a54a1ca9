"""Server-side assignors: who of a group should read which partitions. Pure functions of their arguments.

Every assignor gives each partition of a topic that has subscribers to exactly one of them, and the same
answer for the same question, in whatever order members and topics are named."""

from barnabas.groups.assignors.range import assign_ranges
from barnabas.groups.assignors.spec import NOTHING, Assignment, Assignor, MemberSpec, PartitionCounts
from barnabas.groups.assignors.uniform import assign_uniformly

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}

__all__ = ["ASSIGNORS", "NOTHING", "Assignment", "Assignor", "MemberSpec", "PartitionCounts"]
