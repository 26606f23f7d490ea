"""What is done under faults, to which files, and what it must leave: the table of `every_call`."""

from __future__ import annotations

import errno
import operator
import os
import shutil
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shim import FAIL, FAIL_ALWAYS, INTERRUPT_OFTEN, KILL, SHORT_ALWAYS, TEAR, Fault, Outcome, in_child

import stoker
from stoker import _native
from stoker.builder import (
    BuildOptions,
    BuildReport,
    build_source,
)
from stoker.errors import TooManyRejectsError
from stoker.format.index import CachedIndex, read_index
from stoker.inspect import index_shards, verify_dataset
from stoker.loader import NodeCache, open_records

if TYPE_CHECKING:
    from collections.abc import Callable

CHANGES = "open,write,fsync,close,rename,unlink,mkdir"


@dataclass(frozen=True)
class Expected:
    """What comes of an action when nothing goes wrong."""

    value: Any
    files: dict[str, str]


class Stage:
    """A source, a dataset that was built of it, and a folder for what is to come."""

    def __init__(self, work: Path, source: Path, dataset: Path) -> None:
        self.work, self.source, self.dataset = work, source, dataset

    def fresh(self, case: Case) -> Path:
        """A new folder with a source and a dataset of its own, as a case wants them."""
        folder = Path(tempfile.mkdtemp(dir=self.work))
        shutil.copytree(self.source, folder / "source")
        shutil.copytree(self.dataset, folder / "dataset")
        case.prepare(folder)
        return folder


def build_it(folder: Path) -> Any:
    """A build of two shards."""
    try:
        report = stoker.build(folder / "source", folder / "out", shards=2, threads=2, progress=False)
    except TooManyRejectsError as error:
        report = error.report
    return told(report)


def told(report: BuildReport) -> Any:
    """What a build says that it made."""
    return [report.manifest.dataset_id, [f"{reject.key}: {reject.reason}" for reject in report.rejects]]


def repack_it(folder: Path) -> Any:
    """The dataset as a dataset of other shards."""
    source = open_records(str(folder / "dataset"), None)
    settings = BuildOptions(shards=3, threads=2).settings(str(folder / "dataset"))
    return told(build_source(source, settings, folder / "out"))


def index_it(folder: Path) -> Any:
    """Indexes for all shards."""
    for shard in index_shards([str(folder / "dataset")]):
        if shard.problem is not None:
            raise OSError(shard.problem.what)
    return "indexed"


def export_to(form: Any) -> Callable[[Path], Any]:
    """An export of the dataset; a tar or Parquet file for each record."""

    def act(folder: Path) -> Any:
        report = stoker.export(folder / "dataset", folder / "out", form, shard_size=1, progress=False)
        return {name: split.records for name, split in report.splits.items()}

    return act


def nothing_exported(folder: Path, _: Expected, where: str) -> None:
    """The destination is there, and has nothing in it; nor is anything left beside it."""
    assert sorted(path.name for path in folder.iterdir()) == ["dataset", "out", "source"], where
    assert list((folder / "out").iterdir()) == [], where


def without_indexes(folder: Path) -> None:
    """Leave shards alone."""
    for path in [*(folder / "dataset").glob("*.idx"), folder / "dataset" / "manifest.json"]:
        path.unlink()


def verify_it(folder: Path) -> Any:
    """What a check says of the dataset."""
    return [str(problem) for problem in verify_dataset(folder / "dataset", threads=2).problems]


def feed_it(folder: Path, **settings: Any) -> Any:
    """An epoch: indices, labels and pixels of all samples in their order."""
    train = stoker.open(folder / "dataset", "train")
    settings |= {"shuffle": True, "seed": 0, "threads": 2}
    with stoker.Loader(train, batch_size=2, transform=stoker.Resize(16), **settings) as loader:
        return [
            [index, sha256(image.tobytes()).hexdigest(), label]
            for batch in loader
            for index, image, label in zip(batch.indices.tolist(), batch.images, batch.labels.tolist(), strict=True)
        ]


def feed_cached(folder: Path) -> Any:
    """Two epochs, the second out of a node cache; what goes wrong with the cache is a warning at most."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cache = NodeCache(folder / "cache", "1MB")
        return [feed_it(folder, cache=cache), feed_it(folder, cache=cache)]


def look_up(folder: Path) -> Any:
    """Where records lie, by indexes that the user's cache keeps."""
    os.environ["STOKER_CACHE_DIR"] = str(folder / "user")
    extents = []
    for shard in sorted((folder / "dataset").glob("*.tfrecord")):
        cached = CachedIndex.of(shard)
        rows = cached.read()
        if rows is None:
            rows = _native.scan_shard(str(shard))
            cached.write(rows)
        extents.append(rows.tolist())
    return extents


def no_half_shard(folder: Path, expected: Expected, where: str) -> None:
    """Whatever has its final name is whole; a manifest is there only with everything else."""
    left = files_of(folder / "out")
    for name, content in left.items():
        if name != "build.journal" and ".tmp-" not in name:
            assert content == expected.files[name], f"{where}: {name} is not what it is in the end"
        if name.endswith(".tfrecord"):
            path = folder / "out" / name
            rows = read_index(path, path.stat().st_size)
            assert rows.tolist() == _native.scan_shard(str(path)).tolist(), where
    assert "manifest.json" not in left or expected.files.keys() <= left.keys(), where


def files_of(folder: Path) -> dict[str, str]:
    """A digest of each file."""
    if not folder.is_dir():
        return {}
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir()) if path.is_file()}


def files_but_temporary(folder: Path) -> dict[str, str]:
    """A digest of each file that has its final name."""
    return {name: content for name, content in files_of(folder).items() if ".tmp-" not in name}


def same_dataset(folder: Path, expected: Expected, where: str) -> None:
    """Reading leaves everything as it is."""
    assert files_of(folder / "dataset") == expected.files, where


@dataclass(frozen=True)
class Case:
    """One action under one kind of fault.

    Attributes:
        name: What it is called.
        act: Done in a folder; tells what came of it.
        on: Part of the path of the files that fail, in the folder.
        kinds: Which calls fail.
        error: How.
        how: What happens at the call.
        folder: Where the files are that must be the same in the end.
        check_left: Looks at what is left behind.
        blamed: An error must name one of these.
        tolerates: Whether what the action tells is right, given what it tells without a fault.
        prepare: Makes a new folder ready.
        keeps_litter: Whether files under temporary names may stay behind.
    """

    name: str
    act: Callable[[Path], Any]
    on: str
    kinds: str
    error: int = errno.EIO
    how: int = FAIL
    folder: str = "dataset"
    check_left: Callable[[Path, Expected, str], None] = same_dataset
    blamed: tuple[str, ...] = field(default=("/dataset", "/out", "/source"))
    tolerates: Callable[[Any, Any], bool] = operator.eq
    prepare: Callable[[Path], None] = lambda _: None
    keeps_litter: bool = False

    @property
    def dies(self) -> bool:
        """Whether the process is killed."""
        return self.how in (KILL, TEAR)

    def fault_in(self, folder: Path) -> Fault:
        """The fault, for one folder."""
        return Fault(f"{folder}/{self.on}", self.kinds, self.error, self.how)

    def contents(self, folder: Path) -> dict[str, str]:
        """The files that must be the same in the end."""
        return files_but_temporary(folder / self.folder) if self.keeps_litter else files_of(folder / self.folder)

    def finished(self, stage: Stage) -> Expected:
        """What comes of it without a fault."""
        folder = stage.fresh(self)
        outcome: Outcome = in_child(lambda: self.act(folder), None)
        assert not outcome.error, outcome.trace
        sys.stdout.flush()
        return Expected(outcome.value, self.contents(folder))


def one_reject(value: Any, expected: Any) -> bool:
    """As expected, or one image was rejected because it could not be read."""
    return value == expected or (len(value[1]) == 1 and "Input/output error" in value[1][0])


def expected_or_unreadable(value: Any, expected: Any) -> bool:
    """As expected, or a problem of a file that cannot be read."""
    return value == expected or any("Input/output error" in problem for problem in value)


_BUILD = {"act": build_it, "on": "out", "folder": "out", "check_left": no_half_shard}
_REPACK = {"act": repack_it, "on": "out", "folder": "out", "check_left": no_half_shard}
_INDEX: dict[str, Any] = {"act": index_it, "on": "dataset", "check_left": lambda *_: None, "prepare": without_indexes}
_CACHE: dict[str, Any] = {"act": feed_cached, "on": "cache"}
_USER: dict[str, Any] = {"act": look_up, "on": "user", "check_left": lambda *_: None, "prepare": without_indexes}

_EXPORT: dict[str, Any] = {
    "on": ".out.stoker-unfinished/train", "error": errno.ENOSPC, "folder": "out", "check_left": nothing_exported,
    "blamed": ("/.out.stoker-unfinished/train",),
}  # fmt: skip

_THREADS: dict[str, Any] = {
    "on": "", "how": FAIL_ALWAYS, "folder": "dataset", "blamed": ("threads, and no more",),
}  # fmt: skip

CASES = [
    Case("build: a full disk", kinds="write,open,mkdir", error=errno.ENOSPC, **_BUILD),
    Case("build: a quota is used up", kinds="write", error=errno.EDQUOT, **_BUILD),
    Case("build: a disk that fails", kinds="write,fsync,close,rename,unlink", **_BUILD),
    Case("build: a stale file handle", kinds="open,stat,read,write", error=errno.ESTALE, **_BUILD),
    Case("build: a disk that becomes read-only", kinds=CHANGES, error=errno.EROFS, **_BUILD | {"how": FAIL_ALWAYS}),
    Case("build: kill", kinds=CHANGES, **_BUILD | {"how": KILL}),
    Case("build: kill within a write", kinds="write", **_BUILD | {"how": TEAR}),
    Case("build: a source that cannot be read", build_it, "source", "open,read", folder="none",
         check_left=lambda *_: None, tolerates=one_reject),
    Case("build: a source that has gone stale", build_it, "source", "open,read,stat", errno.ESTALE, folder="out",
         check_left=no_half_shard),
    Case("build: short reads and writes", build_it, "", "read,write", how=SHORT_ALWAYS, folder="out",
         check_left=no_half_shard),
    Case("build: interrupted calls", build_it, "", "open,read,write", how=INTERRUPT_OFTEN, folder="out",
         check_left=no_half_shard),
    Case("feed: short reads", feed_it, "dataset", "read", how=SHORT_ALWAYS),
    Case("feed: interrupted calls", feed_it, "dataset", "open,read", how=INTERRUPT_OFTEN),
    Case("node cache: short reads and writes", kinds="read,write", **_CACHE | {"how": SHORT_ALWAYS}),
    Case("node cache: interrupted calls", kinds="open,read,write", **_CACHE | {"how": INTERRUPT_OFTEN}),
    Case("repack: a full disk", kinds="write", error=errno.ENOSPC, **_REPACK),
    Case("repack: kill", kinds=CHANGES, **_REPACK | {"how": KILL}),
    Case("repack: shards that cannot be read", repack_it, "dataset", "open,read", folder="none",
         check_left=lambda *_: None, tolerates=one_reject),
    Case("export folder: a full disk", export_to("folder"), kinds="write", **_EXPORT),
    Case("export webdataset: a full disk", export_to("webdataset"), kinds="write", **_EXPORT),
    Case("export webdataset: a disk that becomes full late", export_to("webdataset"), kinds="fsync", **_EXPORT),
    Case("export parquet: a full disk", export_to("parquet"), kinds="write", **_EXPORT),
    Case("index: a full disk", kinds="write,open", error=errno.ENOSPC, **_INDEX),
    Case("index: a disk that fails", kinds="read,write,fsync,close,rename", **_INDEX),
    Case("index: kill", kinds=CHANGES, keeps_litter=True, **_INDEX | {"how": KILL}),
    Case("verify: a disk that fails", verify_it, "dataset", "open,read", tolerates=expected_or_unreadable),
    Case("verify: kill", verify_it, "dataset", "open,read", how=KILL),
    Case("feed: a disk that fails", feed_it, "dataset", "open,read"),
    Case("feed: a stale file handle", feed_it, "dataset", "open,read,stat", errno.ESTALE),
    Case("threads: feed", kinds="thread", error=errno.EAGAIN, act=feed_it, **_THREADS),
    Case("threads: build", kinds="thread", error=errno.EAGAIN, act=build_it, **_THREADS),
    Case("threads: verify", kinds="thread", error=errno.EAGAIN, act=verify_it, **_THREADS),
    Case("node cache: a full disk", kinds="write,open,mkdir", error=errno.ENOSPC, **_CACHE),
    Case("node cache: a disk that fails", kinds="read,write,fsync,close,rename", **_CACHE),
    Case("node cache: kill", kinds=CHANGES, **_CACHE | {"how": KILL}),
    Case("node cache: kill within a write", kinds="write", **_CACHE | {"how": TEAR}),
    Case("cached indexes: a full disk", kinds="write,open,mkdir", error=errno.ENOSPC, **_USER),
    Case("cached indexes: a disk that fails", kinds="open,read,write,fsync,close,rename", **_USER),
    Case("cached indexes: kill", kinds=CHANGES, **_USER | {"how": KILL}),
]  # fmt: skip
