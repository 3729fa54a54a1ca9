"""UpdateFeatures, key 57, versions 0-2: change the levels of the cluster's features.

Behaviour: a feature stays at the level that this release has. An update to that level succeeds and changes
nothing; any other is refused with INVALID_UPDATE_VERSION, and the whole request with it. A feature that is
named twice has one result.
Versions:  v0 allow_downgrade · v1 upgrade_type, validate_only · v2 no results of single features.
Not done:  Kafka lowers a feature where the update says that a downgrade is safe; here none can be lowered."""

from __future__ import annotations

from barnabas.broker.call import Call
from barnabas.broker.handlers.api_versions import FEATURES, LEVEL_MIN
from barnabas.broker.turns import Work
from barnabas.errors import ErrorCode, shortened
from barnabas.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def update_features(call: Call, request: UpdateFeaturesRequest) -> Work[UpdateFeaturesResponse]:
    for update in request.feature_updates:
        yield
        problem = _problem(call, update)
        if problem is not None:
            return UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                error_message=shortened(
                    "The update failed for all features since the following feature had an error: "
                    f"Invalid update version {update.max_version_level} for feature {update.feature}. "
                    f"{problem}"
                ),
            )
    names = dict.fromkeys(update.feature for update in request.feature_updates)
    return UpdateFeaturesResponse(
        error_message=None,
        # Kafka writes the name of the error, NONE, as the message of a success.
        results=[UpdatableFeatureResult(feature=name, error_message=ErrorCode.NONE.name) for name in names],
    )


def _problem(call: Call, update: FeatureUpdateKey) -> str | None:
    level = update.max_version_level
    may_lower = update.allow_downgrade
    if call.version > 0:
        if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            return "The controller does not support the given upgrade type."
        may_lower = update.upgrade_type != UPGRADE
    if level < LEVEL_MIN:
        return "A feature version cannot be less than 0."
    current = FEATURES.get(update.feature)
    if current is None:
        if level == LEVEL_MIN:
            return f"Feature {update.feature} not found."
        return f"Local controller {call.broker.controller_id} does not support this feature."
    if level > current:
        return f"Local controller {call.broker.controller_id} only supports versions {LEVEL_MIN}-{current}"
    if level == current:
        return None
    if may_lower:
        return "This release cannot lower it."
    return (
        "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
        "unsafe downgrade."
    )
