"""Rules for producers, transactions and tokens that are functions of their own."""

from __future__ import annotations

from typing import Any

from barnabas.broker.authorization.rules import PASSED, Outcome, Right, Rights, refused
from barnabas.broker.authorization.topics import DENIED
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode
from barnabas.ids import INTERNAL_TOPICS, TopicPartition
from barnabas.records.batch import ATTRIBUTES_POSITION, HEADER_SIZE, TRANSACTIONAL_FLAG
from barnabas.replication.gate import ACKS_NONE
from barnabas.security.acls import Operation, ResourceType
from barnabas.security.principal import Principal
from barnabas.transactions.batches import FIRST_BATCHED_VERSION, response_of, result_of, transactions_of
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

WRITE_ID = Right(Operation.WRITE, ResourceType.TRANSACTIONAL_ID)
DENIED_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
WRITE_TOPIC = Right(Operation.WRITE, ResourceType.TOPIC)
DESCRIBE_TOPIC = Right(Operation.DESCRIBE, ResourceType.TOPIC)
IDEMPOTENT_WRITE = Right(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
CLUSTER_ACTION = Right(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
CREATE_TOKENS = Right(Operation.CREATE_TOKENS, ResourceType.USER)
DESCRIBE_TOKENS = Right(Operation.DESCRIBE_TOKENS, ResourceType.USER)
DESCRIBE_TOKEN = Right(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN)
PLAINTEXT = "PLAINTEXT"


# ---- producers


def produce(rights: Rights, request: ProduceRequest) -> Work[Outcome]:
    """What is in a transaction needs the right to its id. The rights to the topics are asked by the gate."""
    is_transactional = False
    for topic in request.topic_data:
        for partition in topic.partition_data:
            is_transactional = is_transactional or _is_transactional(partition.records)
            yield
    transactional_id = request.transactional_id
    if not is_transactional or (transactional_id is not None and rights.may(*WRITE_ID, transactional_id)):
        return PASSED
    if request.acks == ACKS_NONE:
        # There is no answer that could have the error.
        rights.call.connection.close()
        return refused(None)
    return refused(_refused_produce(request, DENIED_ID))


def _is_transactional(records: Any) -> bool:
    has_header = records is not None and len(records) >= HEADER_SIZE
    return has_header and bool(records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_FLAG)


def _refused_produce(request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=partition.index, error_code=code, base_offset=-1)
                    for partition in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def init_producer_id(rights: Rights, request: InitProducerIdRequest) -> Work[Outcome]:
    """A producer without transactions needs IDEMPOTENT_WRITE, or the right to write to any topic."""
    yield from ()
    if request.transactional_id is not None:
        if rights.may(*WRITE_ID, request.transactional_id):
            return PASSED
        return refused(_no_producer(DENIED_ID))
    authorizer, session = rights.call.broker.authorizer, rights.call.session
    if rights.may(*IDEMPOTENT_WRITE, logs_denied=False) or authorizer.allows_any(session, *WRITE_TOPIC):
        return PASSED
    return refused(_no_producer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))


def _no_producer(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


# ---- transactions


def add_partitions(rights: Rights, request: AddPartitionsToTxnRequest) -> Work[Outcome]:
    """From clients one transaction, of which all or nothing is added; from brokers many."""
    version = rights.call.version
    if version >= FIRST_BATCHED_VERSION:
        if rights.may(*CLUSTER_ACTION):
            return PASSED
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return refused(AddPartitionsToTxnResponse(error_code=code))
    (transaction,) = transactions_of(request, version)
    if not rights.may(*WRITE_ID, transaction.transactional_id):
        return refused(response_of([result_of(transaction, lambda place: DENIED_ID)], version))
    # The handler refuses internal topics, for everybody.
    names = [topic.name for topic in transaction.topics if topic.name not in INTERNAL_TOPICS]
    allowed = yield from rights.allowed(WRITE_TOPIC, names)
    if allowed.issuperset(names):
        return PASSED
    image = rights.call.broker.image

    def code_of(place: TopicPartition) -> ErrorCode:
        if place.topic not in allowed:
            return DENIED
        is_there = image.partition(*place) is not None
        return ErrorCode.OPERATION_NOT_ATTEMPTED if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    return refused(response_of([result_of(transaction, code_of)], version))


def described_topics(rights: Rights, request: Any) -> Work[Outcome]:
    """The topics of a transaction are shown only to those who may describe them."""
    yield from ()

    def finish(response: Any) -> Work[None]:
        for state in response.transaction_states:
            allowed = yield from rights.allowed(DESCRIBE_TOPIC, [topic.topic for topic in state.topics])
            state.topics = [topic for topic in state.topics if topic.topic in allowed]

    return Outcome(finish=(finish,))


# ---- delegation tokens


def create_token(rights: Rights, request: CreateDelegationTokenRequest) -> Work[Outcome]:
    """Everybody may create tokens of their own; those of others need a right."""
    yield from ()
    call = rights.call
    requester = call.session.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    if not call.session.may_manage_tokens and not call.is_forwarded:
        # The handler says that there are no tokens here.
        return PASSED
    if owner == requester or rights.may(*CREATE_TOKENS, str(owner)):
        return PASSED
    return refused(
        CreateDelegationTokenResponse(
            error_code=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=requester.type,
            token_requester_principal_name=requester.name,
            issue_timestamp_ms=-1,
            expiry_timestamp_ms=-1,
            max_timestamp_ms=-1,
        )
    )


def described_tokens(rights: Rights, request: Any) -> Work[Outcome]:
    """Users see tokens that they own or may renew. All others need a right to the token or to its owner."""
    yield from ()
    principal = rights.call.session.principal

    def is_visible(token: Any) -> bool:
        owner = Principal(token.principal_type, token.principal_name)
        renewers = (Principal(renewer.principal_type, renewer.principal_name) for renewer in token.renewers)
        return (
            principal == owner
            or principal in renewers
            or rights.may(*DESCRIBE_TOKEN, token.token_id)
            or rights.may(*DESCRIBE_TOKENS, str(owner))
        )

    def finish(response: Any) -> Work[None]:
        visible = []
        for token in response.tokens:
            if is_visible(token):
                visible.append(token)
            yield
        response.tokens = visible

    return Outcome(finish=(finish,))
