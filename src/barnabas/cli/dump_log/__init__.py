"""`barnabas dump-log`: what is in the files of a log directory, printed as Kafka's tool prints it.

Reads files only; the broker may run meanwhile, or be gone."""

import argparse
from pathlib import Path

from barnabas.cli.dump_log.decoding import DECODERS, text_of
from barnabas.cli.dump_log.indexes import IndexFaults, dump_index, dump_time_index
from barnabas.cli.dump_log.segments import Dump, dump_segment
from barnabas.cli.dump_log.side_files import dump_snapshot, dump_transaction_index
from barnabas.cli.failures import ToolError

DESCRIPTION = """\
Print what the files of a partition hold: .log, .index, .timeindex, .txnindex, .snapshot. The exit code
is 1 where something is wrong: a batch that does not match its checksum, offsets with holes in a segment
that was never compacted, an index that points elsewhere."""
EXAMPLES = """\
  barnabas dump-log --files data/orders-0/00000000000000000000.log
  barnabas dump-log --files data/orders-0/00000000000000000000.log --deep-iteration --print-data-log
  barnabas dump-log --files data/orders-0/00000000000000000000.index --verify-index-only
  barnabas dump-log --files data/__consumer_offsets-12/00000000000000000000.log --offsets-decoder
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--files", required=True, metavar="FILE,FILE", help="the files to print, with commas between them")
    add("--deep-iteration", action="store_true", help="the records of each batch, not only the batches")
    add("--print-data-log", action="store_true", help="the records with their keys and values")
    add("--index-sanity-check", action="store_true", help="only say whether an index is in order")
    add(
        "--verify-index-only", action="store_true", help="compare an index with its log and print faults only"
    )
    add("--max-bytes", type=int, metavar="BYTES", help="read no more than this of a .log file")
    add("--max-message-size", type=int, metavar="BYTES", help=argparse.SUPPRESS)
    add("--skip-record-metadata", action="store_true", help="of records print only keys and values")
    add("--offsets-decoder", action="store_true", help="records are those of __consumer_offsets")
    add("--transaction-log-decoder", action="store_true", help="records are those of __transaction_state")
    for name in ("--key-decoder-class", "--value-decoder-class"):
        add(name, nargs="?", metavar="NAME", help="only Kafka's StringDecoder is known here")


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
    faults.tell()
    dump.tell_holes()
    return 1 if faults.found or dump.damaged else 0


def _dump_of(options: argparse.Namespace) -> Dump:
    for name in ("key_decoder_class", "value_decoder_class"):
        decoder = getattr(options, name)
        if decoder is not None and decoder.rpartition(".")[2] != "StringDecoder":
            raise ToolError(f"{decoder} is a Java class, which cannot be loaded here; leave the option out.")
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
