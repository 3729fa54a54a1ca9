"""UnregisterBroker: brokers that are gone are removed, running ones are not."""

from __future__ import annotations

from typing import Any

from barnabas.errors import ErrorCode
from barnabas.ids import random_uuid
from barnabas.metadata.records import Listener
from barnabas.metadata.store import BrokerRegistration
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest

LISTENERS = (Listener("PLAINTEXT", "far.example", 9093),)


def test_a_fenced_broker_is_removed(stage: Any) -> None:
    registration = BrokerRegistration(2, random_uuid(), LISTENERS, None)
    stage.run(stage.controller.register_broker(registration))
    stage.run(stage.controller.fence_broker(2))
    response = stage.ask(UnregisterBrokerRequest(broker_id=2), 0)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, "")
    assert set(stage.image.brokers) == {1}
    again = stage.ask(UnregisterBrokerRequest(broker_id=2), 0)
    assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert again.error_message == "Broker ID 2 is not currently registered"


def test_a_running_broker_stays(stage: Any) -> None:
    response = stage.ask(UnregisterBrokerRequest(broker_id=1), 0)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.error_message == "broker 1 is running and cannot be unregistered"
    assert set(stage.image.brokers) == {1}
