"""Which ids InitProducerId gives, and which requests it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest


def idempotent(**fields: int) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000, **fields)


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_an_id_of_its_own(stage: Any, version: int) -> None:
    answers = [stage.ask(idempotent(), version) for _ in range(3)]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    assert [answer.producer_id for answer in answers] == [0, 1, 2]
    assert {answer.producer_epoch for answer in answers} == {0}


def test_a_producer_that_comes_back_gets_a_new_id(stage: Any) -> None:
    first = stage.ask(idempotent(), 3).producer_id
    again = stage.ask(idempotent(producer_id=first, producer_epoch=0), 3)
    assert (again.error_code, again.producer_epoch) == (ErrorCode.NONE, 0)
    assert again.producer_id != first


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (idempotent(producer_id=5), ErrorCode.INVALID_REQUEST),
        (idempotent(producer_epoch=5), ErrorCode.INVALID_REQUEST),
        (InitProducerIdRequest(transactional_id=""), ErrorCode.INVALID_REQUEST),
    ],
)
def test_requests_that_get_no_id(stage: Any, request_: InitProducerIdRequest, code: ErrorCode) -> None:
    answer = stage.ask(request_, 5)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (code, -1, -1)
    assert stage.image.next_producer_id == 0


def test_without_a_controller_producers_get_a_retriable_error(stage: Any) -> None:
    stage.run(stage.controller.step_down())
    answer = stage.ask(idempotent(), 5)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
