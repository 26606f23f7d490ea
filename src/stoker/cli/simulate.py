"""``stoker simulate``: how fast many ranks would be fed from a store, without reading anything."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
from typing import TYPE_CHECKING, TypeVar

from stoker.cli.output import Printer, print_json
from stoker.config import format_seconds, format_size, parse_size
from stoker.errors import ConfigError
from stoker.feed import ReadAhead
from stoker.order import BlockShuffle
from stoker.simulation import Data, Ranks, Storage, Stretch, simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.simulation import SimulationReport

_T = TypeVar("_T")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_DIGITS = r"[0-9]{1,18}(?:\.[0-9]*)?|\.[0-9]+"
_NUMBER = re.compile(rf"((?:{_DIGITS})(?:e[0-9]{{1,2}})?) *([kKmMgG]?)", re.ASCII)
_DURATION = re.compile(rf"({_DIGITS}) *(s|ms|us)", re.ASCII)
_SCALE = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command."""
    text = "how fast many ranks would be fed from a store: the real order and plan of requests, a model of the rest"
    parser = subparsers.add_parser("simulate", help=text, description=text)
    _add_data(parser.add_argument_group("data"))
    _add_ranks(parser.add_argument_group("ranks"))
    _add_storage(parser.add_argument_group("storage"))
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def _add_data(group: argparse._ArgumentGroup) -> None:
    data, stretch, add = Data(1_281_167), Stretch(), group.add_argument
    add("--records", type=_number, default=data.records, metavar="N", help="such as 1e10 (default %(default)s)")
    add("--record-bytes", type=_size, default=data.record_bytes, metavar="SIZE", help="(default %(default)s)")
    add("--shard-records", type=_number, default=data.shard_records, metavar="N", help="(default %(default)s)")
    text = "full, none, or block:BLOCK:WINDOW (default %(default)s)"
    add("--shuffle", type=_shuffle, default="full", metavar="ORDER", help=text)
    add("--seed", type=int, default=stretch.seed, help="of the order (default %(default)s)")
    add("--epoch", type=int, default=stretch.epoch, metavar="N", help="from 0; those before have filled the cache")
    add("--steps", type=_number, default=stretch.steps, metavar="N", help="batches simulated (default %(default)s)")


def _add_ranks(group: argparse._ArgumentGroup) -> None:
    ranks, ahead, add = Ranks(), ReadAhead(), group.add_argument
    add("--ranks", type=_number, default=ranks.world_size, metavar="N", help="of all nodes (default %(default)s)")
    add("--ranks-per-node", type=_number, default=None, metavar="N", help="(default 8, or fewer if there are fewer)")
    add("--batch-size", type=_number, default=ranks.batch_size, metavar="N", help="of a rank (default %(default)s)")
    text = "images a second that a rank decodes from local data; stoker bench tells (default %(default)s)"
    add("--rate", type=float, default=ranks.rate, metavar="N", help=text)
    add("--threads", type=_number, default=ranks.threads, metavar="N", help="of a rank (default %(default)s)")
    add("--step", type=_seconds, default=ranks.step, metavar="TIME", help="of training for a batch, such as 250ms")
    add("--cache", type=_size, default=ranks.cache_bytes, metavar="SIZE", help="of each node, such as 2TB (none)")
    add("--budget", default=ahead.budget, metavar="SIZE", help="of reading ahead (default %(default)s)")
    add("--connections", type=_number, default=ahead.connections, metavar="N", help="of a rank (default %(default)s)")


def _add_storage(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "from a request to its first byte, such as 50ms (default %(default)s)"
    add("--latency", type=_seconds, default="50ms", metavar="TIME", help=text)
    add("--connection-bandwidth", type=_size, metavar="SIZE", help="bytes a second of one request")
    add("--node-bandwidth", type=_size, metavar="SIZE", help="bytes a second of a node, such as 12.5GB")
    add("--store-bandwidth", type=_size, metavar="SIZE", help="bytes a second of the store for all nodes")
    add("--store-requests", type=_number, metavar="N", help="requests a second that the store takes, such as 5500")


def run(args: argparse.Namespace) -> int:
    """Simulate, print, and return 0."""
    report = simulate(
        Data(args.records, args.record_bytes, args.shard_records),
        Ranks(
            world_size=args.ranks,
            per_node=min(8, args.ranks) if args.ranks_per_node is None else args.ranks_per_node,
            batch_size=args.batch_size,
            rate=args.rate,
            threads=args.threads,
            step=args.step,
            read_ahead=ReadAhead(args.budget, args.connections),
            cache_bytes=args.cache,
        ),
        Storage(
            args.latency, args.connection_bandwidth, args.node_bandwidth, args.store_bandwidth, args.store_requests
        ),
        Stretch(args.shuffle, args.seed, args.epoch, args.steps),
    )
    if args.json:
        print_json(dataclasses.asdict(report))
    else:
        _print(report)
    return 0


def _print(report: SimulationReport) -> None:
    printer = Printer()
    first = max(rank.first_batch for rank in report.ranks)
    stalled = max(rank.stalled for rank in report.ranks)
    peak = max(rank.peak_bytes for rank in report.ranks)
    used = sum(rank.bytes_used for rank in report.ranks) or 1
    over = sum(rank.bytes_read for rank in report.ranks) / used - 1
    rows = [
        ("images a second", f"{report.images_per_second:,.0f}", f"{report.of_local:.0%} of what local data would give"),
        ("first batch after", format_seconds(first), f"training then waits {stalled:.0%} of the time"),
        ("an epoch", format_seconds(report.epoch_seconds), f"shuffle quality {report.quality:.2f} (1.00: full)"),
        ("requests a second", f"{report.requests_per_second:,.0f}", f"{report.requests_of_epoch:,.0f} in an epoch"),
        ("bytes a second", format_size(report.bytes_per_second), f"{format_size(report.bytes_of_epoch)} in an epoch"),
        ("read and not used", f"{max(0.0, over):.1%}", "bytes between samples"),
        ("cache hits", f"{report.cache_hit_rate:.1%}", "of the samples of this epoch"),
        ("bytes in flight", format_size(peak), "at most, on each rank"),
    ]
    simulated = len(report.ranks)
    printer.line(f"{report.world_size:,} ranks, {simulated} of them simulated for {report.ranks[0].samples:,} samples")
    printer.table(["", ">value", ""], rows)


def _argument(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """Return a parser of an argument whose message a person gets to see: argparse shows only those of its own class."""

    def parsed(text: str) -> _T:
        try:
            return parse(text)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parsed


_size = _argument(parse_size)


@_argument
def _number(text: str) -> int:
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ConfigError(f"not a number: {text!r}; write for example 1200, 5.5k or 1e10")
    value = float(found[1]) * _SCALE[found[2].lower()]
    if not math.isfinite(value):
        raise ConfigError(f"too large a number: {text!r}; write for example 1200, 5.5k or 1e10")
    return round(value)


@_argument
def _seconds(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ConfigError(f"not a duration: {text!r}; write for example 50ms or 0.2s")
    return float(found[1]) * _SECONDS[found[2]]


@_argument
def _shuffle(text: str) -> bool | BlockShuffle:
    if text in ("full", "none"):
        return text == "full"
    kind, _, sizes = text.partition(":")
    block, _, window = sizes.partition(":")
    if kind != "block" or not block.isdecimal() or not window.isdecimal():
        raise ConfigError(f"not an order: {text!r}; write full, none, or for example block:256:16")
    return BlockShuffle(int(block), int(window))
