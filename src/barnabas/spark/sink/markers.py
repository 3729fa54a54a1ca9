"""The marker of an exactly-once query: which batch was written last. Rules only, no I/O.

The marker is a committed offset for partition 0 of the topic, of a group with the same name as the
transactional.id. The offset is the number of the next batch; the metadata has the id of the query and the
number of records that were written with the transactional.id so far. It is committed in the transaction of
its batch."""

import json
from typing import NamedTuple

from barnabas.client.types import OffsetAndMetadata
from barnabas.spark.sink.settings import WriteSettings

_QUERY, _RUN, _WRITTEN = "queryId", "runId", "written"


class MarkerError(Exception):
    """The marker does not allow the batch to be written; the text says why, and what to do."""


class Marker(NamedTuple):
    """A batch that was written, and by which query. `query` is "" for a batch without tasks. `written` are
    the records of this and all earlier batches."""

    batch: int
    query: str
    run: str = ""
    written: int = 0

    def as_offset(self) -> OffsetAndMetadata:
        document = {_QUERY: self.query, _RUN: self.run, _WRITTEN: self.written}
        return OffsetAndMetadata(self.batch + 1, json.dumps(document))


def marker_of(committed: OffsetAndMetadata | None) -> Marker | None:
    """MarkerError if the committed offset is not a marker."""
    if committed is None:
        return None
    try:
        document = json.loads(committed.metadata)
        written = int(document.get(_WRITTEN, 0))
        return Marker(committed.offset - 1, str(document[_QUERY]), str(document[_RUN]), written)
    except (ValueError, KeyError, TypeError):
        raise MarkerError(
            f"The offset {committed.offset} with the metadata {committed.metadata!r} is not a marker of this"
            " sink: the group belongs to a consumer. Choose another transactional.id."
        ) from None


def is_due(marker: Marker | None, due: Marker, settings: WriteSettings) -> bool:
    """Whether the batch of `due` must be written; False if it was written before; MarkerError if neither is
    certain."""
    if marker is not None and marker.query and due.query and marker.query != due.query:
        if settings["onForeignMarker"] == "fail":
            raise MarkerError(_foreign(marker, due, settings.transactional_id))
        marker = None
    if marker is not None and marker.batch >= due.batch:
        return False
    last = -1 if marker is None else marker.batch
    if last + 1 < due.batch and settings["onMissingMarker"] == "fail":
        raise MarkerError(_missing(marker, due, settings.transactional_id))
    return True


def _foreign(marker: Marker, due: Marker, transactional_id: str) -> str:
    return (
        f"The transactional.id {transactional_id!r} was last used by the query {marker.query}, for its batch"
        f" {marker.batch}; this is the query {due.query}, with batch {due.batch}. Two queries must not share"
        " an id. If this query replaces the other one and has a new checkpoint, set onForeignMarker=replace:"
        " what the other one wrote stays, and this one begins with its first batch."
    )


def _missing(marker: Marker | None, due: Marker, transactional_id: str) -> str:
    state = "there is no marker" if marker is None else f"the marker is for batch {marker.batch}"
    return (
        f"Batch {due.batch} follows batch {due.batch - 1}, but {state} of transactional.id"
        f" {transactional_id!r}: the marker expired (offsets.retention.minutes), or was deleted with its"
        " topic or group, or the query was not exactly-once before. So it is not known whether the batch"
        " was written: look at the topic, and if it was not, start once with onMissingMarker=continue."
    )
