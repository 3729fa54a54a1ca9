"""`barnabas features`: the features of a cluster and their levels, as kafka-features prints them."""

import argparse

from barnabas.cli.connecting import add_connection, admin_of
from barnabas.cli.failures import ToolError
from barnabas.cli.output import print_json
from barnabas.client.admin.types import FeatureUpdate, FeatureUpgrade

DESCRIPTION = """\
Describe and change the features of a cluster. Barnabas has group.version (1: the groups of KIP-848) and
transaction.version (2: transactions of KIP-890); both are in use from the first start. It has no
metadata.version: brokers of one release have one format of metadata."""
EXAMPLES = """\
  barnabas features --bootstrap-server localhost:9092 describe
  barnabas features --bootstrap-server localhost:9092 upgrade --feature group.version=1 --dry-run
"""

ACTIONS = ("describe", "upgrade", "downgrade", "disable", "version-mapping", "feature-dependencies")
LEVEL_MAX = 2**15
# Kafka's names of the levels of its metadata.version, from level 7 on.
METADATA_VERSION = "metadata.version"
METADATA_VERSION_NAMES = (
    "3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4"
    " 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 4.2-IV1 4.3-IV0 4.4-IV0"
)
METADATA_VERSIONS = dict(enumerate(METADATA_VERSION_NAMES.split(), 7))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection(parser, server_flags=("--bootstrap-server", "--bootstrap-controller"))
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help=", ".join(ACTIONS))
    parser.add_argument(
        "--feature", action="append", default=[], metavar="NAME=LEVEL", help="may be repeated; disable: NAME"
    )
    parser.add_argument("--unsafe", action="store_true", help="downgrade although metadata may be lost")
    parser.add_argument("--dry-run", action="store_true", help="check the change, but do not make it")
    parser.add_argument("--release-version", "--metadata", metavar="VERSION", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="describe: print JSON")


def run(options: argparse.Namespace) -> int:
    if options.release_version is not None:
        raise ToolError(
            "There are no release versions of Kafka here: name features with --feature, such as "
            "group.version=1."
        )
    if options.action in ("describe", "version-mapping"):
        return _describe(options)
    if options.action == "feature-dependencies":
        for text in options.feature:
            name, level = _name_and_level(text)
            print(f"{name}={level} has no dependencies.")
        return 0
    return _update(options)


def _describe(options: argparse.Namespace) -> int:
    with admin_of(options) as admin:
        features = dict(sorted(admin.describe_features().items()))
    if options.json:
        print_json({name: feature._asdict() for name, feature in features.items()})
        return 0
    for name, feature in features.items():
        if options.action == "version-mapping":
            print(f"{name}={feature.max_version}")
            continue
        epoch = "-" if feature.epoch is None else feature.epoch
        # The widths are those of Kafka's tool.
        least, most, level = (
            level_text(name, each) for each in (feature.min_version, feature.max_version, feature.level)
        )
        print(
            f"Feature: {name:42}SupportedMinVersion: {least:<17}SupportedMaxVersion: {most:<17}"
            f"FinalizedVersionLevel: {level:<17}Epoch: {epoch}"
        )
    return 0


def level_text(feature: str, level: int) -> str:
    """A level as Kafka's tool prints it."""
    names = METADATA_VERSIONS if feature == METADATA_VERSION else {}
    return names.get(level, str(level))


def _update(options: argparse.Namespace) -> int:
    updates = _updates(options)
    if not updates:
        raise ToolError(f"You must specify at least one feature to {options.action}")
    with admin_of(options) as admin:
        outcomes = admin.update_features(updates, validate_only=options.dry_run)
    failures = 0
    for name in sorted(updates):
        level = "" if options.action == "disable" else f" to {updates[name].level}"
        error = outcomes.get(name)
        if error is not None:
            failures += 1
            print(
                f"{'Can' if options.dry_run else 'Could'} not {options.action} {name}{level}. {error.message}"
            )
        else:
            done = {"upgrade": "upgraded", "downgrade": "downgraded", "disable": "disabled"}[options.action]
            print(f"{name} {'can be' if options.dry_run else 'was'} {done}{level}.")
    if failures:
        raise ToolError(f"{failures} out of {len(updates)} operation(s) failed.")
    return 0


def _updates(options: argparse.Namespace) -> dict[str, FeatureUpdate]:
    kind = FeatureUpgrade.UPGRADE
    if options.action != "upgrade":
        kind = FeatureUpgrade.UNSAFE_DOWNGRADE if options.unsafe else FeatureUpgrade.SAFE_DOWNGRADE
    updates: dict[str, FeatureUpdate] = {}
    for text in options.feature:
        name, level = (text, 0) if options.action == "disable" else _name_and_level(text)
        if name in updates:
            raise ToolError(f"Feature {name} was specified more than once.")
        updates[name] = FeatureUpdate(level, kind)
    return updates


def _name_and_level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals:
        raise ToolError(f"Can't parse feature=level string {text}: equals sign not found.")
    if not level.strip().isdecimal() or int(level) >= LEVEL_MAX:
        raise ToolError(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
    return name.strip(), int(level)
