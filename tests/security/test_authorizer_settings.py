"""The settings of the authorizer: what a broker starts with, and what it refuses in one sentence."""

import pytest

from barnabas.broker.startup import broker_config
from barnabas.config.definition import ConfigError
from barnabas.config.keys_security import STANDARD_AUTHORIZER


@pytest.mark.parametrize("name", ["kafka.security.authorizer.AclAuthorizer", "com.example.Mine"])
def test_other_authorizers_are_refused(name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        broker_config(None, overrides={"authorizer.class.name": name})
    assert STANDARD_AUTHORIZER in str(refused.value) and name in str(refused.value)


def test_super_users_are_principals() -> None:
    with pytest.raises(ConfigError, match=r"super\.users: 'alice' is not a principal"):
        broker_config(None, overrides={"super.users": "User:bob; alice"})
    config = broker_config(
        None, overrides={"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:bob;User:x"}
    )
    assert config["authorizer.class.name"] == STANDARD_AUTHORIZER
    assert not config.without_effect and not config.unknown
