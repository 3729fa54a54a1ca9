"""Which frames hang on which root. A root is a source, or a step with state of its own, such as a sum or a
join. Every frame that Spark computes row by row from one root can be computed from each batch of that root,
so one query is enough for all of them.

Spark's plan of a frame shows how it is computed. Only steps that are known to have no state are allowed, so
whatever else there is in a plan makes a root."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyspark.sql import DataFrame

from barnabas.spark.pipeline.definition import Pipeline
from barnabas.spark.pipeline.frames import Frames, inputs_of

STATELESS = frozenset(
    {
        "CTERelationDef",
        "CTERelationRef",
        "Expand",
        "Filter",
        "Generate",
        "MapInArrow",
        "MapInPandas",
        "Project",
        "Repartition",
        "RepartitionByExpression",
        "SubqueryAlias",
        "Union",
        "View",
        "WithCTE",
    }
)
# The alias of a root in a plan, with the name of its frame.
ALIAS = "barnabas_root_"
# A line of a plan: three characters for each level above the node, then the node, with ~ if it is a stream.
_NODE = re.compile(r"((?:[ :] {2})*(?:[:+]- )?)~?(\w+)(?: (\w+))?")
_ANALYZED = re.compile(r"== Analyzed Logical Plan ==\n(.*?)\n\n== ", re.DOTALL)


def roots_of(pipeline: Pipeline, frames: Frames, names: Iterable[str]) -> dict[str, str]:
    """The root of each source, of each frame in `names`, and of the frames that those use. Reads nothing."""
    roots = {name: name for name in pipeline.sources}
    steps = _needed(pipeline, names)
    for name in pipeline.sources if steps else ():
        frames.put(name, frames.unchecked(name).alias(f"{ALIAS}{name}"))
    for name in steps:
        frame = frames.unchecked(name)
        used = roots_in(plan_of(frame))
        if used is not None and len(used) == 1:
            roots[name] = used.pop()
        else:
            roots[name] = name
            frames.put(name, frame.alias(f"{ALIAS}{name}"))
    return roots


def _needed(pipeline: Pipeline, names: Iterable[str]) -> list[str]:
    """The steps among these frames and all that they use, in the order of the file."""
    needed = set(names)
    for step in reversed(pipeline.steps):
        if step.name in needed:
            needed.update(inputs_of(step, pipeline))
    return [step.name for step in pipeline.steps if step.name in needed]


def plan_of(frame: DataFrame) -> str:
    """Spark's plan after names were resolved, as text."""
    if hasattr(frame, "_jdf"):
        return str(frame._jdf.queryExecution().analyzed().toString())
    text: str = frame._explain_string(extended=True)  # type: ignore[operator]
    found = _ANALYZED.search(text)
    # The first lines of this section are the columns; they are no nodes of the plan.
    return "" if found is None else found[1].partition("\n")[2]


class _Node(NamedTuple):
    depth: int
    kind: str
    first_word: str


def roots_in(plan: str) -> set[str] | None:
    """The roots that a plan uses; None if there is a step with state, or one that is not known, above
    them."""
    roots: set[str] = set()
    below: int | None = None
    for node in _nodes(plan):
        if below is not None and node.depth > below:
            continue
        below = None
        if node.kind == "SubqueryAlias" and node.first_word.startswith(ALIAS):
            roots.add(node.first_word.removeprefix(ALIAS))
            below = node.depth
        elif node.kind not in STATELESS:
            return None
    return roots


def _nodes(plan: str) -> Iterator[_Node]:
    for line in plan.splitlines():
        found = _NODE.match(line)
        if found is None:
            yield _Node(0, line, "")
        else:
            yield _Node(len(found[1]) // 3, found[2], found[3] or "")
