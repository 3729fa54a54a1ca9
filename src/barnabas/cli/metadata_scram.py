"""`barnabas metadata add-scram`: SCRAM credentials for the first start, written while no broker runs.

Brokers that log in to each other with SCRAM, and the first administrator, need a credential before there is a
broker that could be asked to store one. kafka-storage.sh has the option --add-scram for this purpose."""

import argparse
import asyncio
import re
import sys
from collections.abc import Sequence

from barnabas.cli.failures import ToolError
from barnabas.metadata.embedded import DIRECTORY_NAME
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.opening import read_membership
from barnabas.metadata.replaying import image_of
from barnabas.metadata.scram import ScramChange, alter_scram_credentials
from barnabas.metadata.store import MetadataStore, StoreError
from barnabas.security import scram

# Living brokers have a controller, which this command would wait for.
CAMPAIGN_SECONDS_MAX = 10.0
ITERATIONS = 4096
CANDIDATE_ID = -1

_SPECIFICATION = re.compile(
    r"(?P<mechanism>[^=]+)=\[name=(?P<user>[^,]+)(?:,iterations=(?P<iterations>[0-9]+))?,password=(?P<password>.+)\]",
    re.DOTALL,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--add-scram",
        action="append",
        default=[],
        metavar="MECHANISM=[name=USER,iterations=N,password=SECRET]",
        help="add-scram: a credential; `-` reads them from standard input, one per line, so that no password "
        "is visible to other users of this machine",
    )


def add_scram(options: argparse.Namespace) -> int:
    changes = [change_of(text) for text in _specifications(options.add_scram)]
    if not changes:
        raise ToolError("Name at least one credential with --add-scram.")
    try:
        asyncio.run(_write(options, changes))
    except StoreError as error:
        raise ToolError(f"{error}.") from error
    for change in changes:
        print(f"Added a {scram.BY_CODE[change.mechanism].name} credential for user {change.user}.")
    return 0


def _specifications(given: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for text in given:
        lines += [line.rstrip("\n") for line in sys.stdin if line.strip()] if text == "-" else [text]
    return lines


def change_of(text: str) -> ScramChange:
    """`SCRAM-SHA-256=[name=alice,iterations=8192,password=secret]`. An error does not repeat the text."""
    match = _SPECIFICATION.fullmatch(text.strip())
    if match is None:
        raise ToolError(
            "A credential must be written MECHANISM=[name=USER,password=SECRET] or "
            "MECHANISM=[name=USER,iterations=N,password=SECRET]."
        )
    mechanism = scram.BY_NAME.get(match["mechanism"])
    if mechanism is None:
        raise ToolError(f"{match['mechanism']!r} is not one of {', '.join(scram.BY_NAME)}.")
    iterations = int(match["iterations"] or ITERATIONS)
    if not mechanism.iterations_min <= iterations <= mechanism.iterations_max:
        raise ToolError(
            f"The iterations of {mechanism.name} must be from {mechanism.iterations_min} "
            f"to {mechanism.iterations_max}, not {iterations}."
        )
    credential = scram.make_credential(mechanism, match["password"], iterations)
    return ScramChange(match["user"], mechanism.code, credential)


async def _write(options: argparse.Namespace, changes: Sequence[ScramChange]) -> None:
    store = await _open(options)
    try:
        try:
            async with asyncio.timeout(CAMPAIGN_SECONDS_MAX):
                leadership = await store.campaign(CANDIDATE_ID)
        except TimeoutError:
            raise ToolError(
                "Brokers of this cluster are running: use `barnabas configs --alter --user NAME` with them."
            ) from None
        try:
            image: MetadataImage = image_of(store.cluster_id, await store.read(0))
            records = alter_scram_credentials(image, changes).records
            await store.append(records, image.offset, leadership.epoch)
        finally:
            await leadership.resign()
    finally:
        await store.close()


async def _open(options: argparse.Namespace) -> MetadataStore:
    if options.zookeeper is not None:
        from barnabas.cli.zookeeper_access import settings_of
        from barnabas.metadata.zookeeper.store import ZooKeeperStore

        return await ZooKeeperStore.open(settings_of(options.zookeeper, options.config))
    from barnabas.cli.zookeeper_access import secrets_of
    from barnabas.log.checkpoints import read_meta_properties
    from barnabas.log.disk import RealDisk
    from barnabas.metadata.embedded import EmbeddedStore
    from barnabas.metadata.files import RealFiles

    directory = options.data_dir / DIRECTORY_NAME
    membership = read_membership(RealFiles(), directory)
    if membership is not None:
        raise ToolError(f"{options.data_dir} is of a cluster: use --zookeeper {membership.zookeeper}.")
    options.data_dir.mkdir(parents=True, exist_ok=True)
    meta = read_meta_properties(RealDisk(), options.data_dir)
    cluster_id = None if meta is None else meta.cluster_id
    return await EmbeddedStore.open(directory, cluster_id=cluster_id, secrets=secrets_of(options.config))
