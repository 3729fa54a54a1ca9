"""`barnabas start`: run one broker until SIGTERM or SIGINT."""

import argparse
import asyncio
import gc
import json
import logging
import platform
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas import __version__
from barnabas.cli import garbage
from barnabas.cli.connecting import key_values
from barnabas.cli.console import check_installed
from barnabas.cli.console_process import ConsoleProcess, add_console_port
from barnabas.cli.failures import ToolError
from barnabas.cli.secure import SecureFiles, how_to_connect, listeners

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.config.values import BrokerConfig

logger = logging.getLogger("barnabas")

DEFAULT_PORT = 9092
LOCALHOST = "127.0.0.1"

DESCRIPTION = """\
Run one broker. It reads Kafka's server.properties and understands its keys (docs/configuration.md
lists them). Without a listener setting, it listens on localhost only."""
EXAMPLES = """\
  barnabas start                                     a broker on 127.0.0.1:9092, data in /tmp/kafka-logs
  barnabas start --port 0 --data-dir ./data --ready-file ready
                                                     any free port, which is written to ./ready
  barnabas start --config server.properties          Kafka's own file
  barnabas start --override num.partitions=4 --override log.retention.hours=24
  barnabas start --console-port 8080                 with the web console at http://127.0.0.1:8080
  barnabas start --secure --data-dir ./data          with TLS, an admin user and ACLs; see ./data/secure
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="server.properties", help="as --config")
    parser.add_argument("--config", type=Path, metavar="FILE", help="a server.properties file")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting that wins over the file; may be repeated",
    )
    parser.add_argument("--port", type=int, help="listen on 127.0.0.1 at this port; 0 means a free port")
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="the data directory, instead of log.dirs"
    )
    parser.add_argument(
        "--secure",
        action="store_true",
        help="TLS, passwords and ACLs; certificates and the settings of an admin go to DIR/secure",
    )
    parser.add_argument(
        "--ready-file",
        type=Path,
        metavar="FILE",
        help="write host:port of the first listener to FILE when the broker answers requests",
    )
    parser.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="serve /metrics for Prometheus, /health and /ready on 127.0.0.1:PORT; 0 means a free port",
    )
    add_console_port(parser)
    parser.add_argument("--log-level", default="INFO", choices=["DEBUG", "INFO", "WARNING", "ERROR"])
    parser.add_argument(
        "--log-format",
        default="text",
        choices=["text", "json"],
        help="one line of text, or one JSON object, per event",
    )


def run(options: argparse.Namespace) -> int:
    from barnabas.broker.startup import broker_config
    from barnabas.log.errors import LogDirError
    from barnabas.metadata.store import StoreError
    from barnabas.net.spinning import new_event_loop

    configure_logging(options.log_level, options.log_format)
    overrides = key_values(options.override, "--override")
    if options.metrics_port is not None:
        overrides["barnabas.metrics.port"] = str(options.metrics_port)
    if options.console_port is not None:
        check_installed()
    secure = _secure_files(options) if options.secure else None
    if secure is not None:
        port = DEFAULT_PORT if options.port is None else options.port
        overrides = {**secure.broker_settings(), **secure.shared_secrets(), **listeners(port), **overrides}
    config = broker_config(options.config or options.file, options.data_dir, options.port, overrides)
    for sentence in config.unknown_sentences():
        logger.warning("%s", sentence)
    if config.without_effect:
        logger.warning("these settings have no effect yet: %s", ", ".join(config.without_effect))
    logger.info(
        "Barnabas %s (Python %s) starts broker %d: data in %s, listeners %s",
        __version__,
        platform.python_version(),
        config.node_id,
        ", ".join(str(Path(each).absolute()) for each in config.log_dirs),
        ", ".join(map(str, config.listeners)),
    )
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(config, options, secure))
    except (LogDirError, StoreError, OSError) as error:
        # Imported here: few starts fail.
        from barnabas.cli.start_problems import why_not_started

        raise ToolError(why_not_started(error, config.log_dirs)) from error
    return 0


def _secure_files(options: argparse.Namespace) -> SecureFiles:
    if options.data_dir is None:
        raise ToolError("--secure needs --data-dir DIR: certificates and passwords go to DIR/secure.")
    files = SecureFiles(options.data_dir)
    files.make()
    return files


async def _serve(config: "BrokerConfig", options: argparse.Namespace, secure: SecureFiles | None) -> None:
    from barnabas.broker.broker import Broker

    broker = Broker(config)
    console: ConsoleProcess | None = None
    collecting: asyncio.Task[None] | None = None
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        if await _started(broker, stop):
            _announce(broker, options.ready_file)
            collecting = asyncio.create_task(garbage.collect_from_time_to_time())
            console = _console(broker, options.console_port, secure)
            if secure is not None:
                first = broker.endpoints[0]
                print(how_to_connect(f"{first.host}:{first.port}", secure), flush=True)
            await stop.wait()
    finally:
        if collecting is not None:
            collecting.cancel()
        if console is not None:
            await asyncio.to_thread(console.stop)
        await broker.stop()


def _console(broker: "Broker", port: int | None, secure: SecureFiles | None) -> ConsoleProcess | None:
    if port is None:
        return None
    first = broker.endpoints[0]
    if secure is None and first.protocol != "PLAINTEXT":
        logger.warning(
            "there is no console: the listener %s wants %s; run `barnabas console --command-config FILE` "
            "with the settings of a client",
            first.name,
            first.protocol,
        )
        return None
    login = None if secure is None else secure.login
    return ConsoleProcess(f"{first.host or LOCALHOST}:{first.port}", port, command_config=login).start()


async def _started(broker: "Broker", stop: asyncio.Event) -> bool:
    """Start the broker; False if it is to stop before it is ready. A start may wait for other processes."""
    starting = asyncio.ensure_future(_start(broker))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            return True
        logger.info("stopping before the broker was ready")
        return False
    finally:
        starting.cancel()
        stopping.cancel()
        await asyncio.gather(starting, return_exceptions=True)


async def _start(broker: "Broker") -> None:
    """Start the broker without garbage collection. The start creates many objects that stay and hardly any
    garbage; scanning them would take a quarter of a start with many partitions, and cause pauses later."""
    gc.disable()
    try:
        await broker.start()
    finally:
        gc.enable()
    garbage.keep_for_good()


def _announce(broker: "Broker", ready_file: Path | None) -> None:
    first = broker.endpoints[0]
    logger.info("ready on %s", ", ".join(map(str, broker.endpoints)))
    if broker.metrics_port is not None:
        base = f"http://{broker.config['barnabas.metrics.host']}:{broker.metrics_port}"
        logger.info("metrics on %s/metrics, probes on %s/health and %s/ready", base, base, base)
    if ready_file is not None:
        # Rename a complete file, so that nobody who polls for it reads half an address.
        partial = ready_file.with_name(ready_file.name + ".partial")
        partial.write_text(f"{first.host}:{first.port}\n")
        partial.replace(ready_file)


class TextFormatter(logging.Formatter):
    """Kafka's format: [time] LEVEL message (logger). A message is one line; a traceback has lines of its
    own."""

    def __init__(self) -> None:
        super().__init__("[%(asctime)s] %(levelname)s %(message)s (%(name)s)")

    def formatMessage(self, record: logging.LogRecord) -> str:
        from barnabas.broker.loggers import one_line

        record.message = one_line(record.message)
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event)


def configure_logging(level: str, style: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
