"""The marker of an exactly-once query: which batch was written last. What it says is decided here; no I/O.

It is an offset that the group named like the transactional.id has for partition 0 of the topic: the number of
the next batch, with the query's id in the metadata. It is committed in the transaction of its batch."""

import json
from typing import NamedTuple

from barnabas.client.types import OffsetAndMetadata
from barnabas.spark.sink.settings import WriteSettings

_QUERY, _RUN = "queryId", "runId"


class MarkerError(Exception):
    """The marker does not allow the batch to be written; the text says why, and what can be done."""


class Marker(NamedTuple):
    """A batch that was written, and by whom. A query that is not known, of a batch without tasks, is ""."""

    batch: int
    query: str
    run: str = ""

    def as_offset(self) -> OffsetAndMetadata:
        return OffsetAndMetadata(self.batch + 1, json.dumps({_QUERY: self.query, _RUN: self.run}))


def marker_of(found: OffsetAndMetadata | None) -> Marker | None:
    """MarkerError where the offset is not one of ours."""
    if found is None:
        return None
    try:
        told = json.loads(found.metadata)
        return Marker(found.offset - 1, str(told[_QUERY]), str(told[_RUN]))
    except (ValueError, KeyError, TypeError):
        raise MarkerError(
            f"The offset {found.offset} with the metadata {found.metadata!r} is no marker of this sink: the"
            " group belongs to a consumer. Choose another transactional.id."
        ) from None


def is_due(marker: Marker | None, wanted: Marker, settings: WriteSettings) -> bool:
    """Whether the batch is to be written, or was already; MarkerError where neither is certain."""
    if marker is not None and marker.query and wanted.query and marker.query != wanted.query:
        if settings["onForeignMarker"] == "fail":
            raise MarkerError(_foreign(marker, wanted, settings.transactional_id))
        marker = None
    if marker is not None and marker.batch >= wanted.batch:
        return False
    last = -1 if marker is None else marker.batch
    if last + 1 < wanted.batch and settings["onMissingMarker"] == "fail":
        raise MarkerError(_missing(marker, wanted, settings.transactional_id))
    return True


def _foreign(marker: Marker, wanted: Marker, transactional_id: str) -> str:
    return (
        f"The transactional.id {transactional_id!r} was last used by the query {marker.query}, for its batch"
        f" {marker.batch}; this is the query {wanted.query}, with batch {wanted.batch}. Two queries must not"
        " share an id. If this one takes the other's place, with a new checkpoint, say so with"
        " onForeignMarker=replace: what the other one wrote stays, and this one begins anew."
    )


def _missing(marker: Marker | None, wanted: Marker, transactional_id: str) -> str:
    found = "there is no marker" if marker is None else f"the marker is that of batch {marker.batch}"
    return (
        f"Batch {wanted.batch} follows batch {wanted.batch - 1}, and {found} of transactional.id"
        f" {transactional_id!r}: it expired (offsets.retention.minutes), or was deleted with its topic or"
        " group, or the query was not exactly-once before. Whether the batch is written already cannot be"
        " known: look at the topic, and if it is not, start once with onMissingMarker=continue."
    )
