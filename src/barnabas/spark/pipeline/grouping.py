"""Which sinks share a query. Rules only, no Spark and no files.

Sinks and dead letters that hang on one root share a query, which is named after the root. A record of the
members is kept beside the checkpoints, because a sink must not miss rows:

- A sink that is added to the file later has a query of its own, which reads from the beginning.
- A sink that has a checkpoint of its own keeps its query.
- A sink that was removed from the file is not a member any more. If it comes back, it is a new one."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.spark.pipeline.definition import DatabaseSink, Pipeline, Sink, TableSink, asides

APPEND = "append"
Record = Mapping[str, Sequence[str]]


class Member(NamedTuple):
    """A sink, or the dead letters of a frame."""

    name: str
    root: str
    mode: str


class Group(NamedTuple):
    """A query and its members. One that has only itself as a member is not shared."""

    name: str
    root: str
    mode: str
    members: tuple[str, ...]

    @property
    def is_shared(self) -> bool:
        return self.members != (self.name,)


def letters_name(query: str) -> str:
    """The name under which a shared query writes its dead letters."""
    return f"{query}-dead-letters"


def members_of(pipeline: Pipeline, roots: Mapping[str, str]) -> list[Member]:
    sinks = [
        Member(sink.name, roots[sink.source], member_mode(pipeline, sink, roots[sink.source]))
        for sink in pipeline.sinks
    ]
    return sinks + [Member(aside.query, roots[aside.frame], APPEND) for aside in asides(pipeline)]


def mode_of(sink: Sink) -> str:
    """Spark's output mode for a sink."""
    if isinstance(sink, TableSink | DatabaseSink):
        return "update" if sink.mode == "upsert" else APPEND
    return sink.mode or APPEND


def member_mode(pipeline: Pipeline, sink: Sink, root: str) -> str:
    """The output mode of the query that writes a sink. The rows of a source never change, so its updates are
    the rows that are appended."""
    mode = mode_of(sink)
    return APPEND if mode == "update" and root in pipeline.sources else mode


def groups_of(members: Iterable[Member], record: Record, started: Collection[str]) -> list[Group]:
    """The queries; `started` are the members that have a checkpoint of their own."""
    by_root: dict[tuple[str, str], list[str]] = {}
    for member in members:
        by_root.setdefault((member.root, member.mode), []).append(member.name)
    return [group for key, names in by_root.items() for group in _groups(*key, names, record, started)]


def _groups(
    root: str, mode: str, names: Sequence[str], record: Record, started: Collection[str]
) -> Iterable[Group]:
    shared = root if mode == APPEND else f"{root}-{mode}"
    together = [name for name in names if name not in started]
    if shared in record:
        together = [name for name in together if name in record[shared]]
    elif len(together) == 1:
        together = []
    if together:
        yield Group(shared, root, mode, tuple(together))
    for name in names:
        if name not in together:
            yield Group(name, root, mode, (name,))


def new_record(groups: Iterable[Group], record: Record) -> dict[str, list[str]]:
    """What is stored before the queries start. A shared query that has lost all its members stays, since
    its checkpoint does."""
    left: dict[str, list[str]] = {name: [] for name, members in record.items() if list(members) != [name]}
    return {**left, **{group.name: list(group.members) for group in groups}}
