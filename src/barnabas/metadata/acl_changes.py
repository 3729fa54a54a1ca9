"""Decisions about ACLs: create some, delete those that filters select. Pure.

An ACL that exists already is created without a record. An ACL that several filters of a request select is in
the answers of all of them, as in Kafka."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from barnabas.errors import KafkaError
from barnabas.ids import random_uuid
from barnabas.metadata.acls import acl_record
from barnabas.metadata.decision import Decision, invalid_request
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.records import MetadataRecord, RemoveAclRecord
from barnabas.security.acls import Acl, AclFilter, problem_of

# Changes that are decided and written at once.
ACLS_AT_ONCE = 500
FILTERS_AT_ONCE = 50
# The answer to these filters has at most so many ACLs; Kafka deletes no more in one request.
DELETED_MAX = 10_000

CreateResults: TypeAlias = list[KafkaError | None]
DeleteResults: TypeAlias = list[list[Acl] | KafkaError]


def create_acls(image: MetadataImage, acls: Iterable[Acl]) -> Decision[CreateResults]:
    existing = set(image.acls.values())
    records: list[MetadataRecord] = []
    results: CreateResults = []
    for acl in acls:
        problem = problem_of(acl)
        results.append(None if problem is None else invalid_request(problem))
        if problem is None and acl not in existing:
            existing.add(acl)
            records.append(acl_record(random_uuid(), acl))
    return Decision(tuple(records), results)


def delete_acls(image: MetadataImage, filters: Sequence[AclFilter]) -> Decision[DeleteResults]:
    removed: dict[bytes, None] = {}
    results: DeleteResults = []
    count = 0
    for each in filters:
        selected = {acl_id: acl for acl_id, acl in image.acls.items() if each.matches(acl)}
        count += len(selected)
        if count > DELETED_MAX:
            count -= len(selected)
            sentence = f"the filters of a request may select at most {DELETED_MAX} ACLs"
            results.append(invalid_request(sentence))
            continue
        removed |= dict.fromkeys(selected)
        results.append(list(selected.values()))
    return Decision(tuple(RemoveAclRecord(acl_id) for acl_id in removed), results)
