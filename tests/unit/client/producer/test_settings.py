"""Combinations of a producer's settings: their effect, and which are refused."""

from typing import Any

import pytest

from barnabas.client.config import producer_config
from barnabas.client.errors import ConfigError
from barnabas.client.producer.accumulator import Limits
from barnabas.client.producer.ports import SenderSettings
from barnabas.client.producer.settings import limits_of, sender_settings_of
from barnabas.records.compression import GZIP, ZSTD


def settings_of(**keywords: Any) -> SenderSettings:
    return sender_settings_of(producer_config(bootstrap_servers="localhost:9092", **keywords))


def limits(**keywords: Any) -> Limits:
    return limits_of(producer_config(bootstrap_servers="localhost:9092", **keywords))


def test_idempotence_is_on_unless_another_setting_rules_it_out() -> None:
    assert settings_of().is_idempotent
    assert not settings_of(acks=1).is_idempotent
    assert not settings_of(retries=0).is_idempotent
    assert not settings_of(max_in_flight_requests_per_connection=6).is_idempotent
    assert not settings_of(enable_idempotence=False).is_idempotent


@pytest.mark.parametrize(
    "keywords",
    [
        {"enable_idempotence": True, "acks": 1},
        {"enable_idempotence": True, "retries": 0},
        {"transactional_id": "t", "acks": 0},
        {"transactional_id": "t", "enable_idempotence": False},
    ],
)
def test_idempotence_set_together_with_a_conflicting_setting_is_refused(keywords: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"enable\.idempotence"):
        settings_of(**keywords)


def test_the_delivery_timeout_covers_lingering_and_a_request() -> None:
    assert settings_of(request_timeout_ms=130_000).delivery_seconds == 130.005
    with pytest.raises(ConfigError, match=r"delivery\.timeout\.ms"):
        settings_of(delivery_timeout_ms=1000)


def test_compression_and_its_level() -> None:
    assert settings_of(compression_type="zstd").packing[:2] == (ZSTD, None)
    assert settings_of(compression_type="zstd", compression_zstd_level=9).packing[:2] == (ZSTD, 9)
    assert settings_of(compression_type="gzip", compression_gzip_level=-1).packing[:2] == (GZIP, None)
    assert settings_of(transactional_id="t").packing.transactional


def test_an_open_batch_is_never_larger_than_a_request() -> None:
    assert limits(batch_size=16_384, max_request_size=1_000).batch_bytes == 1_000
    assert limits(batch_size=500, max_request_size=1_000).batch_bytes == 500
