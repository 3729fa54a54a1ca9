"""The error table: Kafka's numbers, our words."""

import pytest

from barnabas.errors import ErrorCode, KafkaError


def test_the_codes_run_without_a_gap() -> None:
    assert sorted(ErrorCode) == list(range(-1, 134))


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_every_code_has_one_short_sentence(code: ErrorCode) -> None:
    assert code.text.endswith(".") and "\n" not in code.text
    assert 10 < len(code.text) <= 110


def test_no_two_codes_say_the_same() -> None:
    assert len({code.text for code in ErrorCode}) == len(ErrorCode)


@pytest.mark.parametrize(
    ("name", "number", "retriable"),
    [
        ("NONE", 0, False),
        ("CORRUPT_MESSAGE", 2, True),
        ("NOT_LEADER_OR_FOLLOWER", 6, True),
        ("MESSAGE_TOO_LARGE", 10, False),
        ("INVALID_CONFIG", 40, False),
        ("KAFKA_STORAGE_ERROR", 56, True),
        ("INVALID_RECORD", 87, False),
        ("UNKNOWN_TOPIC_ID", 100, True),
    ],
)
def test_known_codes(name: str, number: int, retriable: bool) -> None:
    assert (ErrorCode[name], ErrorCode[name].retriable) == (number, retriable)


def test_an_error_has_its_own_message_or_that_of_its_code() -> None:
    plain = KafkaError(ErrorCode.INVALID_CONFIG)
    special = KafkaError(ErrorCode.INVALID_CONFIG, "segment.bytes is too small.")
    assert plain.message == ErrorCode.INVALID_CONFIG.text
    assert str(special) == "INVALID_CONFIG: segment.bytes is too small."
    assert not special.retriable
