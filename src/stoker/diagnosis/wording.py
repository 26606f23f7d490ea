"""Each verdict in a sentence with its figures, and its remedy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.config import format_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.diagnosis.evidence import Evidence, Spot

    _Words = Callable[[Evidence], tuple[str, str]]

_MANY = 20.0
_FEW_CONNECTIONS = 16
NO_CONSUMER = 0.02
"""Share of the time below which a consumer does nothing but take batches."""
_STAGES = {
    "decode": "JPEG",
    "resample": "resizing",
    "convert": "conversion of images that are no plain JPEG",
    "write": "the pixel format",
    "check": "checksums",
    "parse": "parsing",
    "read": "reading",
    "remote": "requests",
}


def times(factor: float) -> str:
    """Return a factor as a person writes it."""
    return f"more than {_MANY:.0f}x" if factor > _MANY else f"{factor:.1f}x"


def spot_name(spot: Spot) -> str:
    """Return where a spot is, on one line."""
    code = f" `{spot.code}`" if spot.code else ""
    return f"{spot.function}() at {Path(spot.file).name}:{spot.line}{code}"


def _unknown(e: Evidence) -> tuple[str, str]:
    sentence = f"only {e.batches} batches were taken after the first ones, too few to tell"
    return sentence, "let the loop run for a few dozen batches, better a few seconds"


def _waits(e: Evidence) -> str:
    if e.consumer_share < NO_CONSUMER:
        return "batches are taken as soon as they are there"
    faster = e.consumer.top_speed / e.speed if e.consumer.top_speed and e.speed else None
    could = f", and could take {times(faster)} as many images" if faster is not None and faster > 1.05 else ""
    return f"the consumer waits {e.wait_share:.0%} of its time{could}"


def _storage_bound(e: Evidence) -> tuple[str, str]:
    kind = "the store" if e.files.remote else "the disk"
    took = f"{e.waiting_for_files:.0%} of the decoding threads' time"
    rate = f"{format_size(e.bytes_per_second)}/s"
    sentence = f"{took} is waiting for {kind} ({e.files.place}), which gives {rate}; {_waits(e)}"
    return sentence, _storage_remedy(e)


def _storage_remedy(e: Evidence) -> str:
    if e.files.remote:
        return _store_remedy(e)
    if e.setup.threads <= 2 * e.setup.cpus:
        more = max(8, 4 * e.setup.cpus)
        return f"more reads at a time: threads={more}; threads that wait for a disk cost no CPU"
    return f"a faster disk, cache=stoker.MemoryCache(SIZE), or fewer bytes: {_smaller(e)}"


def _smaller(e: Evidence) -> str:
    return f"'stoker {'build' if e.files.loose else 'repack'} --resize short:256'"


def _store_remedy(e: Evidence) -> str:
    # Half of the budget is what is asked for at a time.
    if e.setup.ahead_bytes < 2 * e.setup.connections * e.sample_bytes:
        size = format_size(8 * e.setup.connections * e.sample_bytes)
        return f"the budget keeps most connections idle: read_ahead=stoker.ReadAhead({size!r}); costs that memory"
    if e.setup.connections <= _FEW_CONNECTIONS:
        more = 4 * e.setup.connections
        return f"ask for more at a time: read_ahead=stoker.ReadAhead(connections={more}); costs memory, no bytes"
    if e.setup.shuffle == "full":
        how = "fewer and longer requests"
        return f"shuffle=stoker.BlockShuffle(...) makes {how}; stoker.order.shuffle_quality measures how well it mixes"
    if not e.setup.cached:
        return "cache=stoker.NodeCache(DIRECTORY, SIZE) keeps what was fetched: from the second epoch on it is local"
    return f"more connections (read_ahead=), or smaller images: {_smaller(e)}"


def _cold_cache(e: Evidence) -> tuple[str, str]:
    size = format_size(e.files.size_bytes or 0)
    took = f"{e.waiting_for_files:.0%} of the decoding threads' time is waiting for the disk"
    cold = f"only {e.files.cached_before or 0:.0%} of the {size} were in memory; {_waits(e)}"
    remedy = "the next epoch is faster by itself, as all of it fits; to spare the first, read the files once before it"
    if e.files.is_directory:
        remedy += f": find {shlex.quote(e.files.place)} -type f -exec cat {{}} + > /dev/null"
    return f"{took}: {cold}", remedy


def _thread_bound(e: Evidence) -> tuple[str, str]:
    threads, cpus = e.setup.threads, e.setup.cpus
    if e.lacks_threads:
        sentence = f"{threads} of {cpus} CPUs may decode, and {'it is' if threads == 1 else 'they are'}"
        sentence += f" {e.busy_share:.0%} busy; {_waits(e)}"
        return sentence, f"threads={cpus}, or leave threads= out: up to {cpus / threads:.1f}x"
    sentence = f"the decoding threads have nothing to do {1 - e.busy_share:.0%} of the time, and yet {_waits(e)}"
    return sentence, "more batches ahead (prefetch=8) or larger ones; short epochs begin with an empty pipeline each"


def _decode_bound(e: Evidence) -> tuple[str, str]:
    stages = sorted(e.stages.items(), key=lambda item: -item[1])
    name, share = stages[0] if stages else ("decode", 0.0)
    sentence = f"{share:.0%} of the decoding threads' time is {_STAGES.get(name, name)}, "
    sentence += f"on {e.setup.threads} threads for {e.setup.cpus} CPUs; {_waits(e)}"
    if e.other_cpus is not None and e.other_cpus >= 0.4 * e.setup.cpus:
        sentence += f"; other programs use {e.other_cpus:.1f} of the CPUs"
    return sentence, _decode_remedy(e, name)


def _decode_remedy(e: Evidence, stage: str) -> str:
    if stage == "convert":
        return "build a dataset of it: 'stoker build' turns PNG, WebP, CMYK and the like into JPEG once"
    tell = "'stoker doctor DATASET' measures what each of these brings"
    if e.setup.decode == "exact":
        return f'decode="fast", or rebuild with --recipe restart or --resize short:256; {tell}'
    return f"rebuild with --recipe restart or --resize short:256; {tell}"


def _head_room(e: Evidence) -> str:
    return f"the loader has {times(e.head_room)} head-room" if e.head_room >= 1.05 else "the loader is as fast"


def _consumer_bound(e: Evidence) -> tuple[str, str]:
    spot = _first(e, "model", "waiting", "other", "python")
    where = f", most of it in {spot_name(spot)}" if spot else ""
    sentence = f"the consumer takes {e.consumer_share:.0%} of the time{where}; {_head_room(e)}"
    remedy = (
        "nothing to do at the input: only a faster step (device, model, precision, larger batches) makes this faster"
    )
    return sentence, remedy


def _transform_bound(e: Evidence) -> tuple[str, str]:
    spot, share = _first(e, "transform"), e.consumer.works.get("transform", 0.0) * e.consumer_share
    if spot is None and e.transformers:  # in threads that the consumer waits for
        spot, share = e.transformers[0], e.consumer.works.get("waiting", 0.0) * e.consumer_share
    where = spot_name(spot) if spot else "the loop"
    sentence = f"{share:.0%} of the time goes into changing images between batches, in {where}; {_head_room(e)}"
    remedy = "let the view do it (crops, flips, colours, float output), or do it for the whole batch on the device"
    return sentence, f"{remedy}: nothing else of the loop runs during {where}"


def _gil_bound(e: Evidence) -> tuple[str, str]:
    held = f"the interpreter's lock is taken {e.gil_held_share:.0%} of the time"
    others = [thread for thread in e.threads if thread.busy_share >= 0.1]
    own = e.consumer.works.get("python", 0.0) * e.consumer.cpu_share
    if others and sum(thread.busy_share for thread in others) >= 0.25:
        first = others[0]
        where = f", in {spot_name(first.spot)}" if first.spot else ""
        sentence = (
            f"{held}: thread {first.name!r} is busy {first.busy_share:.0%} of it{where}, and the loop waits for it"
        )
        return sentence, f"move {first.name!r} into a process of its own, or stop it while training"
    spot = _first(e, "python")
    where = spot_name(spot) if spot else "the loop"
    sentence = f"{held}, {own:.0%} of it by the loop itself in pure Python: {where}; {_head_room(e)}"
    return sentence, f"vectorise {where}, or move it into a process of its own"


def _balanced(e: Evidence) -> tuple[str, str]:
    sentence = f"loader and consumer are about equally fast: it waits {e.wait_share:.0%} of its time for batches"
    return sentence, "nothing single helps: both the input and the step would have to become faster"


def _first(e: Evidence, *works: str) -> Spot | None:
    return next((spot for spot in e.consumer.spots if spot.work in works), None)


WORDS: dict[str, _Words] = {
    "unknown": _unknown,
    "storage-bound": _storage_bound,
    "cold-cache": _cold_cache,
    "thread-bound": _thread_bound,
    "decode-bound": _decode_bound,
    "consumer-bound": _consumer_bound,
    "transform-bound": _transform_bound,
    "gil-bound": _gil_bound,
    "balanced": _balanced,
}
