"""From updates of the metadata log to an image. Pure."""

from collections.abc import Sequence

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import MetadataRecord
from barnabas.metadata.store import Snapshot, Update


def start_and_records(
    image: MetadataImage, updates: Sequence[Update]
) -> tuple[MetadataImage, list[MetadataRecord]]:
    """The image to begin with, and the records to apply to it. It is another image after a snapshot."""
    start, records = image, list[MetadataRecord]()
    for update in updates:
        if isinstance(update, Snapshot):
            # A snapshot replaces all records below its end. The image counts its records, so it must begin
            # at an offset that makes the count end there.
            base = update.end_offset - len(update.records)
            start, records = MetadataImage(cluster_id=image.cluster_id, offset=base), []
        records.extend(update.records)
    return start, records


def image_of(cluster_id: str, updates: Sequence[Update]) -> MetadataImage:
    """The image of a whole log."""
    start, records = start_and_records(MetadataImage(cluster_id=cluster_id), updates)
    return start.apply(records)
