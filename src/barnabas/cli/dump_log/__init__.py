"""`barnabas dump-log`: prints the files of a log directory as Kafka's tool does.

It only reads files, so the broker may run or not."""

import argparse
from pathlib import Path

from barnabas.cli.dump_log.decoding import DECODERS, text_of
from barnabas.cli.dump_log.indexes import IndexFaults, dump_index, dump_time_index
from barnabas.cli.dump_log.segments import Dump, dump_segment
from barnabas.cli.dump_log.side_files import dump_snapshot, dump_transaction_index
from barnabas.cli.failures import ToolError

DESCRIPTION = """\
Print the files of a partition: .log, .index, .timeindex, .txnindex, .snapshot. The exit code is 1 if
something is wrong: a batch that does not match its checksum, bytes that are not a batch, an index that does
not match its log."""
EXAMPLES = """\
  barnabas dump-log --files data/orders-0/00000000000000000000.log
  barnabas dump-log --files data/orders-0/00000000000000000000.log --deep-iteration --print-data-log
  barnabas dump-log --files data/orders-0/00000000000000000000.index --verify-index-only
  barnabas dump-log --files data/__consumer_offsets-12/00000000000000000000.log --offsets-decoder
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--files", required=True, metavar="FILE,FILE", help="the files to print, separated by commas")
    add("--deep-iteration", action="store_true", help="print the records of each batch, not only the batches")
    add("--print-data-log", action="store_true", help="print the records with their keys and values")
    add("--index-sanity-check", action="store_true", help="only check whether an index is valid")
    add(
        "--verify-index-only", action="store_true", help="compare an index with its log and print only errors"
    )
    add("--max-bytes", type=int, metavar="BYTES", help="read at most this much of a .log file")
    add("--max-message-size", type=int, metavar="BYTES", help=argparse.SUPPRESS)
    add("--skip-record-metadata", action="store_true", help="print only the keys and values of records")
    add("--offsets-decoder", action="store_true", help="decode records of __consumer_offsets")
    add("--transaction-log-decoder", action="store_true", help="decode records of __transaction_state")
    for name in ("--key-decoder-class", "--value-decoder-class"):
        add(name, nargs="?", metavar="NAME", help="only Kafka's StringDecoder is supported")


def run(options: argparse.Namespace) -> int:
    dump = _dump_of(options)
    faults = IndexFaults()
    for name in options.files.split(","):
        path = Path(name)
        print(f"Dumping {name}")
        match path.suffix:
            case ".log":
                dump_segment(path, dump)
            case ".index":
                dump_index(path, options, faults)
            case ".timeindex":
                dump_time_index(path, options, faults)
            case ".snapshot":
                dump_snapshot(path)
            case ".txnindex":
                dump_transaction_index(path)
            case _:
                raise ToolError(
                    f"Ignoring unknown file {name}: its name must end with .log, .index, "
                    ".timeindex, .txnindex or .snapshot."
                )
    faults.print()
    dump.print_gaps()
    return 1 if faults.has_any or dump.damaged else 0


def _dump_of(options: argparse.Namespace) -> Dump:
    for name in ("key_decoder_class", "value_decoder_class"):
        decoder = getattr(options, name)
        if decoder is not None and decoder.rpartition(".")[2] != "StringDecoder":
            raise ToolError(f"{decoder} is a Java class, which cannot be run here; leave the option out.")
    chosen = [name for name in DECODERS if getattr(options, name)]
    if len(chosen) > 1:
        raise ToolError("Choose one of --offsets-decoder and --transaction-log-decoder.")
    decode = DECODERS[chosen[0]] if chosen else text_of
    prints = options.print_data_log or bool(chosen)
    return Dump(
        prints_data=prints,
        is_deep=options.deep_iteration or prints,
        skips_metadata=options.skip_record_metadata,
        bytes_max=options.max_bytes,
        decode=decode,
    )
