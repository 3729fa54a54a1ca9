"""Users that exist from the first start on: without one, nobody could log in to create the others.

`barnabas.initial.users.file` has lines `name=password`. A user who has no SCRAM credential yet gets one for
each mechanism; later changes of the file do nothing, and a user whose password was changed keeps it."""

from __future__ import annotations

import asyncio
import logging
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.config.definition import ConfigError
from barnabas.config.properties import load_properties
from barnabas.errors import ErrorCode, KafkaError, error_of
from barnabas.security.scram import BY_CODE, ScramMechanism, new_salt, salted_password
from barnabas.wire.messages import alter_user_scram_credentials as messages

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger(__name__)

CREATE_SECONDS_MAX = 30.0
READABLE_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH


async def create_initial_users(broker: Broker) -> None:
    """Create those that do not exist. Brokers of a cluster may all do this at once: the outcome is the
    same."""
    path = broker.config["barnabas.initial.users.file"]
    if path is None:
        return
    for user, password in _read(Path(path)).items():
        for mechanism in BY_CODE.values():
            if (user, mechanism.code) not in broker.image.scram_credentials:
                await _create(broker, user, password, mechanism)


def _read(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_mode & READABLE_BY_OTHERS:
            raise ConfigError(
                f"barnabas.initial.users.file has passwords, and others can read it: chmod 600 {path}"
            )
        return dict(load_properties(path.read_text()))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read barnabas.initial.users.file {path}: {error}.") from error


async def _create(broker: Broker, user: str, password: str, mechanism: ScramMechanism) -> None:
    salt = new_salt()
    iterations = mechanism.iterations_min
    salted = await asyncio.to_thread(salted_password, mechanism, password, salt, iterations)
    upsertion = messages.ScramCredentialUpsertion(
        name=user, mechanism=mechanism.code, iterations=iterations, salt=salt, salted_password=salted
    )
    request = messages.AlterUserScramCredentialsRequest(upsertions=[upsertion])
    answer = await broker.controller_channel.send(
        messages.API_KEY, request, within_seconds=CREATE_SECONDS_MAX
    )
    for result in answer.results:
        if result.error_code != ErrorCode.NONE:
            raise KafkaError(error_of(result.error_code), result.error_message)
    logger.info("created the user %s for %s", user, mechanism.name)
