"""Calls every function of the native core with arguments that nobody has checked: python native_arguments.py FOLDER.

Each function has one sound call. Its arguments are replaced, one at a time and then several at once, and what comes
back is used: an engine decodes a batch, a source is read, ranges are delivered. A call returns or raises one of
`ALLOWED`; a crash ends this program, and the last line that it has printed names the call.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import random
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

import stoker
from stoker import _native
from stoker.errors import StokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALLOWED = (StokerError, TypeError, ValueError, OverflowError, MemoryError, OSError, RuntimeError, IndexError)
MEMORY = 3 << 30
"""Bytes of address space: what asks for more is a MemoryError here, and not the end of the machine."""
SEVERAL = 40
"""Calls of each function in which several arguments are replaced at once."""

WHOLE = [-1, 0, 1, 255, 65535, 65536, 65537, 2**31 - 1, 2**31, -(2**31), 2**32, 2**56, 2**60, 2**62]
WHOLE += [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63)]
REAL = [math.nan, math.inf, -math.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 1e-300, 1e300, 5e-324]
TEXT = ["", "x", "\0", "\udcff", "a" * 70000, "HWC", "é/../x"]
OTHERS = [None, object(), (), {}, "x", 1, 1.5, b"x"]
SIDE = 8


def jpeg(width: int = 24, height: int = 20, **options: Any) -> bytes:
    """Return a JPEG."""
    file = io.BytesIO()
    Image.fromarray(np.arange(width * height * 3, dtype=np.uint32).astype(np.uint8).reshape(height, width, 3)).save(
        file, "JPEG", **options
    )
    return file.getvalue()


class Sound:
    """Sound objects, new ones for every call.

    Args:
        folder: For files.
    """

    def __init__(self, folder: Path) -> None:
        self.shard, self.index = str(folder / "shard.tfrecord"), str(folder / "shard.idx")
        self.picture = folder / "picture.jpg"
        self.picture.write_bytes(jpeg())
        pixels = np.arange(SIDE * SIDE * 3, dtype=np.uint8).tobytes()
        payloads = [
            _native.write_example(
                {"i": ("bytes", [pixels]), "h": ("int64", [SIDE]), "w": ("int64", [SIDE]), "o": ("bytes", [order])}
            )
            for order in (b"HWC", b"CHW")
        ]
        Path(self.shard).write_bytes(b"".join(map(_native.frame_record, payloads)))
        rows = _native.scan_shard(self.shard)
        Path(self.index).write_bytes(b"".join(b"%d %d\n" % tuple(row) for row in rows.tolist()))
        self.bytes, self.rows = Path(self.shard).stat().st_size, rows
        self.cache = os.open(folder / "cache", os.O_RDWR | os.O_CREAT)
        self.counter = os.open(folder / "counter", os.O_RDWR | os.O_CREAT)
        os.pwrite(self.counter, bytes(8), 0)

    def records(self) -> _native.RecordSet:
        records = _native.RecordSet()
        records.add(self.shard, self.rows)
        return records

    def listed(self) -> _native.RecordSet:
        records = _native.RecordSet()
        records.add_listed(self.shard, self.index, 2, self.bytes)
        return records

    def keys(self) -> _native.RecordKeys:
        return _native.RecordKeys(
            image_key="i", height_key="h", width_key="w", order_key="o", image_encoding="raw", box_prefix="b/"
        )

    def source(self) -> _native.RecordSource:
        return _native.RecordSource(self.records(), self.keys())

    def files(self) -> _native.FileSet:
        name = os.fsencode(self.picture)
        starts, ones = np.array([0, len(name)], np.int64), np.array([1], np.int64)
        files = _native.FileSet("", name, starts, ones, ones, [], np.array([-1], np.int32), ones)
        files.set_boxes(np.array([0, 1], np.int64), np.array([[0.1, 0.2, 0.5, 0.6]], np.float32))
        return files

    def node_cache(self) -> _native.NodeCacheFile:
        return _native.NodeCacheFile(self.cache, self.counter, 1 << 20, self.rows[:, 1].copy())

    def cached(self) -> _native.CachedSource:
        return _native.CachedSource(self.source(), _native.MemoryCache(1 << 20))

    def transform(self) -> _native.TransformSpec:
        return _native.TransformSpec("Resize", {"size": [SIDE], "filter": "bilinear"})

    def engine(self, **changed: Any) -> _native.BatchEngine:
        settings: dict[str, Any] = {"source": self.source(), "transforms": [self.transform()], "seed": 0}
        settings |= {"max_pixels": 10**6, "batch_size": 2, "threads": 1, "spare_buffers": 1}
        return _native.BatchEngine(**settings | changed)

    def finished(self) -> _native.FinishedBatch:
        engine = self.engine()
        engine.submit(np.array([0, 1], np.uint64), 0)
        return engine.next()

    def ranges(self) -> _native.RemoteRanges:
        ranges = _native.RemoteRanges(1 << 20)
        ranges.expect(*range_columns(), planned_uses=2)
        return ranges

    def reader(self) -> _native.DirectReader:
        return _native.DirectReader(lambda _file, _offset, length: bytes(min(length, 1 << 16)))


def range_columns() -> tuple[Any, ...]:
    """Return the columns of one range of two pieces."""
    zero = np.array([0], np.int64)
    pieces = (np.array([0, 5], np.int64), np.array([5, 5], np.int64), np.array([1, 1], np.int64))
    return zero, zero, np.array([10], np.int64), np.array([1], np.int64), np.array([0, 2], np.int64), pieces


def show(sound: Sound, **changed: Any) -> None:
    """Decode a batch of what is sound but for one setting: raw pixels in both orders, and a file."""
    for source in (sound.source(), sound.files()):
        engine = sound.engine(**{"source": source, "boxes": 0.5} | changed)
        for number in range(len(source)):
            for object_ in (-1, 0):
                engine.submit(np.array([number], np.uint64), 0, objects=np.array([object_], np.int32))
                batch = engine.next()
                for _, error in batch.failures:
                    assert isinstance(error, ALLOWED), repr(error)
                batch.take()
        engine.close()


def use_source(sound: Sound, source: _native.SampleSource) -> None:
    show(sound, source=source)
    for number in (0, 1, len(source), 2**64 - 1):
        for name in {"read", "where"} & set(dir(source)):
            with contextlib.suppress(*ALLOWED):
                getattr(source, name)(number)


def use_records(sound: Sound, records: _native.RecordSet) -> None:
    use_source(sound, _native.RecordSource(records, sound.keys()))
    for call in (
        lambda: records.open_listed(1),
        lambda: records.labels("l", False, 0, 1),
        lambda: records.count_values("i", 1),
        lambda: records.remote_spans(np.array([0, 1, 2**63], np.uint64)),
        lambda: records.where(0),
        lambda: records.read(0),
    ):
        with contextlib.suppress(*ALLOWED):
            call()


def use_engine(engine: _native.BatchEngine) -> None:
    engine.submit(np.array([0], np.uint64), 0)
    engine.next().take()
    engine.close()


def use_ranges(ranges: _native.RemoteRanges) -> None:
    while (job := ranges.next(0.0)) is not None:
        ranges.deliver(job[0], bytes(min(job[3], 1 << 16)))
    ranges.release_until(1)
    ranges.close()


Use = "Callable[[Any], object] | None"


def calls(  # noqa: PLR0915 - one table
    sound: Sound,
) -> Iterator[tuple[str, Callable[[], Any], dict[str, Any], Callable[[Any, Any], object] | None]]:
    """Yield name, what makes the function, its sound arguments, and what uses (function, result)."""
    native = _native
    whole, pixels = jpeg(), np.zeros((20, 24, 3), np.uint8)
    zero = np.array([0], np.uint64)
    ten = np.array([10], np.uint64)
    payload = native.write_example({"a": ("bytes", [b"x"])})

    def free(name: str, use: Any = None, /, **arguments: Any) -> Any:
        return name, lambda: getattr(native, name), arguments, None if use is None else lambda _, result: use(result)

    def method(name: str, make: Callable[[], Any], use: Any = None, /, **arguments: Any) -> Any:
        """Describe a method; `use` is called with the object that has it."""
        last = name.partition(".")[2]
        return name, lambda: getattr(make(), last), arguments, None if use is None else lambda f, _: use(f.__self__)

    yield free("kernel_level")
    yield free("crc32c", data=b"abc", crc=0)
    yield free("crc32c_join", crc=1, others=2, size=3)
    yield free("frame_record", payload=b"abc")
    yield free("scan_shard", path=sound.shard, check=True)
    yield free("scan_and_sum", path=sound.shard)
    yield free("read_record", path=sound.shard, offset=0, size=int(sound.rows[0, 1]))
    yield free("write_example", features={"a": ("int64", [1, 2]), "b": ("float", [1.0]), "c": ("bytes", [b"x"])})
    yield free("frame_example", features={"a": ("int64", [1])})
    yield free("parse_example", payload=payload)
    yield free("probe_jpeg", data=whole)
    yield free("check_jpeg", data=whole)
    yield free("exif_orientation", data=whole)
    yield free("check_image", data=whole, max_pixels=10**6)
    settings = {"mode": "RGB", "size": (7, 9), "filter": "box", "decode": "fast"}
    out = np.zeros((7, 9, 3), np.uint8)
    yield free("decode_image", data=whole, box=(0, 0, 24, 20), max_pixels=10**6, **settings, out=out)
    yield free("measure_image", data=whole, max_pixels=10**6)
    yield free("measure_pixels", pixels=pixels)
    numbers = np.arange(20, dtype=np.uint64)
    yield free("near_hashes", hashes=numbers, strong=numbers, distance=3, mirrored=True, threads=2)
    yield free("copy_pixels", pixels=out.copy(), mode="RGB", out=out)
    yield free("image_formats")
    yield free("encode_jpeg", pixels=pixels, quality=90, subsampling="4:2:0", restart=True)
    yield free("transcode_jpeg", data=whole, max_pixels=10**6)
    yield free("restart_interval", mcus_per_row=10, tiles=5)
    yield free("resize", pixels=pixels, width=7, height=9, filter="lanczos", window=(0, 0, 7, 9), flip=True)
    yield free("resize_tf1", pixels=pixels, width=7, height=9, align_corners=True)
    yield free("permute", start=0, count=5, n=10, seed=0, epoch=0)
    yield free("permute_blocks", start=0, count=5, n=10, block=2, window=2, seed=0, epoch=0)
    yield free("positions", items=zero, n=10, seed=0, epoch=0)
    yield free("positions_in_blocks", items=zero, n=10, block=2, window=2, seed=0, epoch=0)
    yield free("permute_each", positions=zero, sizes=ten, seeds=zero, epochs=zero)
    yield free("draw_weighted", positions=zero, ends=ten, seed=0)
    yield free("draw_members", positions=zero, ends=ten, sizes=ten, seed=0)
    yield free("spread_weighted", slots=zero, ends=ten, size=10, offset=3)
    yield free("philox_each", counters=np.zeros((2, 4), np.uint32), key=[0, 1])
    yield free("name_digest", name=b"a.jpg")
    yield free("philox", counter=[0, 1, 2, 3], key=[0, 1])
    yield free("number_remote_files", count=1)
    objects = lambda: native.TransformSpec("ObjectCrops", {"size": [SIDE], "filter": "box"})  # noqa: E731
    sample = {"seed": 0, "epoch": 0, "index": 0}
    yield method("TransformSpec.plan", objects, width=24, height=20, **sample, object=(0.0, 0.1, 0.5, 1.0))
    yield method("TransformSpec.apply", sound.transform, pixels=pixels, **sample)
    images = {"images": [whole], "indices": zero, "transform": sound.transform(), "seed": 0, "epoch": 0, "threads": 1}
    yield free("decode_loop", **images, decode="exact")

    yield free("DirectReader", read=lambda _file, _offset, length: bytes(length))
    yield free("RemoteRanges", use_ranges, budget=100)
    names = ("files", "offsets", "lengths", "last_uses", "starts", "pieces")
    columns = dict(zip(names, range_columns(), strict=True))
    yield method("RemoteRanges.expect", lambda: native.RemoteRanges(100), use_ranges, **columns, planned_uses=2)
    yield method("RemoteRanges.wait_for_demand", sound.ranges, bytes=0, uses=0, timeout_s=0.0)
    yield method("RemoteRanges.next", sound.ranges, timeout_s=0.0)
    yield method("RemoteRanges.deliver", sound.ranges, use_ranges, id=0, bytes=bytes(10))
    yield method("RemoteRanges.fail", sound.ranges, use_ranges, id=0, error=ValueError("x"))
    yield method("RemoteRanges.release_until", sound.ranges, use_ranges, use=1)
    for name in ("forget", "close", "counts"):
        yield method(f"RemoteRanges.{name}", sound.ranges, use_ranges)

    text = {"image_key": "i", "label_key": "l", "source_key": "s", "label_encoding": "id", "label_base": 0}
    text |= {"image_encoding": "raw", "height_key": "h", "width_key": "w", "order_key": "o", "box_prefix": "b/"}
    yield free("RecordKeys", lambda keys: show(sound, source=native.RecordSource(sound.records(), keys)), **text)
    used = lambda source: use_source(sound, source)  # noqa: E731
    yield free("RecordSource", used, records=sound.records(), keys=sound.keys(), check=True)
    yield free("Concatenation", used, parts=[(sound.source(), 1), (sound.source(), 0)])
    for name in ("RecordSource", "Concatenation", "FileSet", "CachedSource", "RecordSet"):
        yield method(
            f"{name}.__len__",
            {
                "RecordSource": sound.source,
                "FileSet": sound.files,
                "CachedSource": sound.cached,
                "RecordSet": sound.records,
                "Concatenation": lambda: native.Concatenation([]),
            }[name],
        )
    listed = lambda records: use_records(sound, records)  # noqa: E731
    yield free("RecordSet", max_open=4, index_bytes=100)
    yield method("RecordSet.add", native.RecordSet, listed, path=sound.shard, extents=sound.rows, name="x")
    yield method(
        "RecordSet.add_listed",
        native.RecordSet,
        listed,
        path=sound.shard,
        index=sound.index,
        records=2,
        size_bytes=sound.bytes,
    )
    yield method("RecordSet.open_listed", sound.listed, listed, threads=1)
    yield method("RecordSet.set_extents", sound.listed, listed, shard=0, extents=sound.rows)
    yield method("RecordSet.set_remote", sound.records, listed, reader=sound.reader(), first=0)
    yield method("RecordSet.remote_spans", sound.records, numbers=zero)
    yield method("RecordSet.read", sound.records, index=0)
    yield method("RecordSet.where", sound.listed, index=0)
    yield method("RecordSet.count_values", sound.records, key="i", threads=1, ahead=None)
    yield method("RecordSet.labels", sound.records, label_key="h", one_hot=False, label_base=0, threads=1, ahead=None)
    yield method("RecordSet.name_digests", sound.records, key="h", threads=1, ahead=None, numbers=zero)

    signed = np.array([0], np.int64)
    name = os.fsencode(sound.picture.name)
    yield free(
        "FileSet",
        used,
        base=str(sound.picture.parent),
        names=name,
        starts=np.array([0, len(name)], np.int64),
        labels=signed,
        sizes=signed,
        archives=[str(sound.picture)],
        archive_of=np.array([0], np.int32),
        offsets=signed,
    )
    yield method(
        "FileSet.set_boxes",
        sound.files,
        used,
        starts=np.array([0, 1], np.int64),
        boxes=np.zeros((1, 4), np.float32),
        labels=np.zeros(1, np.int64),
    )
    yield method("FileSet.set_fields", sound.files, used, make=lambda _number, _image, _keys: b"")
    yield method("FileSet.set_remote", sound.files, used, reader=sound.reader(), first=0)
    yield method("FileSet.read", sound.files, index=0)
    yield method("FileSet.where", sound.files, index=0)
    yield free("MemoryCache", lambda cache: used(native.CachedSource(sound.source(), cache)), budget=1000)
    yield method("MemoryCache.counts", lambda: native.MemoryCache(10))
    yield method("NodeCacheFile.counts", sound.node_cache)
    yield free(
        "NodeCacheFile",
        lambda cache: used(native.CachedSource(sound.source(), cache)),
        file=sound.cache,
        counter=sound.counter,
        budget=10**6,
        sizes=sound.rows[:, 1].copy(),
    )
    yield free("CachedSource", used, source=sound.source(), cache=native.MemoryCache(1000))
    yield method("CachedSource.read", sound.cached, number=0)

    yield free(
        "PixelFormat",
        lambda pixel_format: show(sound, format=pixel_format),
        dtype="float16",
        layout="NCHW",
        mean=[0.1, 0.2, 0.3],
        std=[1.0, 2.0, 3.0],
    )
    for transform in (stoker.RandomResizedCrop(SIDE, hflip=0.5), stoker.CenterCrop(SIDE, SIDE), stoker.TopLeft(SIDE)):
        name, settings = transform.native_settings()
        colors = [stoker.ColorJitter(0.5, (0.5, 1.5), 0.5, 0.1).native_settings()]
        shown = lambda spec: show(sound, transforms=[spec])  # noqa: E731
        yield free("TransformSpec", shown, name=name, settings=settings, operations=colors)
    yield free(
        "JpegStoring",
        lambda storing: storing.reencode(whole, (0, 0, 24, 20), 5, 5),
        filter="box",
        quality=90,
        subsampling="4:2:0",
        restart=True,
        decode="fast",
        max_pixels=10**6,
    )
    resizer = lambda: native.JpegStoring(filter="bicubic", quality=90, subsampling="4:2:0")  # noqa: E731
    yield free("stored_size", mode="short", size=(2, 2), image=(40, 30))
    slots = {"a": "image", "b": "filename", "c": "width", "d": "height"}
    template = native.RecordTemplate({}, slots)
    fill = lambda blank: (blank.size_bytes, native.build_records([(os.fsencode(sound.picture), 0, blank)], resizer()))  # noqa: E731
    yield free("RecordTemplate", fill, features={"e": ("int64", [1])}, slots=slots)
    yield free("build_records", files=[(os.fsencode(sound.picture), 0, template)], storing=resizer())
    yield method("JpegStoring.reencode", resizer, data=whole, part=(0, 0, 24, 20), width=5, height=5)

    settings = {
        "source": sound.source(),
        "transforms": [sound.transform()],
        "seed": 0,
        "max_pixels": 10**6,
        "batch_size": 2,
    }
    settings |= {"threads": 1, "spare_buffers": 1, "format": native.PixelFormat(), "decode": "exact", "boxes": 0.5}
    settings |= {"decoded": native.MemoryCache(1000), "ahead": None, "convert": lambda data: data}
    columns, planes = (
        [native.FieldColumn("h", "int64", fixed=True)],
        [native.FieldPlane("i"), native.FieldPlane("i", 8)],
    )
    settings |= {"columns": columns, "planes": planes}
    yield free("BatchEngine", use_engine, **settings)
    yield method(
        "BatchEngine.submit",
        sound.engine,
        numbers=zero,
        epoch=0,
        objects=np.array([-1], np.int32),
        indices=zero,
        streams=zero,
    )
    column = {"key": "o", "kind": "bytes", "form": "str", "text": True, "fixed": True, "group": 3}
    yield free("FieldColumn", lambda field_column: show(sound, columns=[field_column]), **column)
    yield free("FieldPlane", lambda plane: show(sound, planes=[plane]), key="i", mask_bits=8)
    yield method("BatchEngine.where", sound.engine, number=0)
    yield method("BatchEngine.remote_spans", sound.engine, numbers=zero, objects=np.array([-1], np.int32))
    engine = sound.engine()
    engine.submit(zero, 0)
    yield method("BatchEngine.replace", lambda: engine, batch=engine.next(), row=0, number=0, object=-1, index=0)
    yield method("BatchEngine.time_stages", sound.engine, use_engine, on=True)
    yield method("BatchEngine.start_trace", sound.engine, use_engine, most=10)
    for name in ("next", "drop_pending", "close", "totals", "stop_trace", "is_traced", "take_trace"):
        yield method(f"BatchEngine.{name}", sound.engine)
    yield method("FinishedBatch.take", sound.finished, lambda batch: batch.take())


def arrays(sound: Any) -> list[Any]:
    """Return arrays like a sound one, of other numbers, types, shapes and layouts."""
    info = np.iinfo(sound.dtype) if sound.dtype.kind in "iu" else np.finfo(sound.dtype)
    variants: list[Any] = [np.full_like(sound, info.min), np.full_like(sound, info.max), sound[:0], sound[..., :0]]
    variants += [
        np.concatenate([sound, sound]), sound[::-1], sound.T, sound.astype(np.float64), sound[None], sound.tolist(),
    ]  # fmt: skip
    variants += [
        np.array(5, sound.dtype),
        np.broadcast_to(sound[:1], (2**31 + 5, *sound.shape[1:])),
        sound.astype("V1"),
    ]
    if sound.dtype.kind == "f":
        variants += [np.full_like(sound, np.nan), np.full_like(sound, np.inf)]
    return variants


def sequences(sound: tuple[Any, ...] | list[Any]) -> list[Any]:
    """Return tuples and lists of other lengths, or with one other item."""
    variants: list[Any] = [sound[:0], sound[:-1], (*sound, *sound), [*sound, *sound], sound * 1000]
    for position in range(len(sound)):
        before, after = sound[:position], sound[position + 1 :]
        variants += [type(sound)([*before, value, *after]) for value in hostile("", sound[position])]
    return variants


def hostile(name: str, sound: Any) -> list[Any]:
    """Return values in place of a sound one: of its type, and of others."""
    if name == "timeout_s":  # what is longer is waited for
        return [math.nan, -1.0, -math.inf, 0.0, None, "x"]
    kinds: list[Any] = list(OTHERS)
    if isinstance(sound, bool | int):
        kinds += WHOLE
    elif isinstance(sound, float):
        kinds += REAL
    elif isinstance(sound, str):
        kinds += TEXT
    elif isinstance(sound, bytes):
        kinds += [
            b"", sound[:-1], sound[: len(sound) // 2], bytes(100), sound * 50, memoryview(sound)[::2], bytearray(9),
        ]  # fmt: skip
    elif isinstance(sound, np.ndarray):
        kinds += arrays(sound)
    elif isinstance(sound, tuple | list):
        kinds += sequences(sound)
    elif callable(sound):
        kinds += [lambda: None, lambda *_: None, lambda *_: b"", lambda *_: b"x" * 10**6, lambda *_: 1 / 0]
    elif isinstance(sound, dict):
        kinds += [{key: value} for key in (*TEXT[:4], 1) for value in (*OTHERS, ("bytes", [1]), ("int64", [2**63]))]
        kinds += [{**sound, key: value} for key in sound for value in hostile("", sound[key])]
        kinds += [{"a": ("float", [1e300, math.nan])}, {"a": ("x", [])}, {"a": ("int64", [None])}]
    return kinds


def chosen(random_: random.Random, sound: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of which about a third are hostile."""
    return {
        name: random_.choice(hostile(name, value)) if random_.random() < 0.35 else value
        for name, value in sound.items()
    }


def covered(sound: Sound) -> set[str]:
    """Return the functions that are called."""
    return {name for name, _, _, _ in calls(sound)}


def main(folder: Path) -> None:
    """Make every call."""
    sound = Sound(folder)
    random_ = random.Random(0)
    outcomes: dict[str, int] = {}
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for name, make, arguments, use in calls(sound):
        changed = [arguments]
        changed += [{**arguments, key: other} for key, value in arguments.items() for other in hostile(key, value)]
        changed += [chosen(random_, arguments) for _ in range(SEVERAL if len(arguments) > 1 else 0)]
        for number, given in enumerate(changed):
            sys.stdout.write(f"{name} { ({k: repr(v)[:80] for k, v in given.items()}) }\n")
            sys.stdout.flush()
            try:
                function = make()
                result = function(**given)
                if use is not None:
                    use(function, result)
                outcome = "returned"
            except ALLOWED as error:
                outcome = type(error).__name__
            if number == 0 and outcome != "returned" and name != "BatchEngine.next":  # of which none is queued
                raise AssertionError(f"the sound call of {name} raises {outcome}")
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    sys.stdout.write(f"all calls: {outcomes}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
