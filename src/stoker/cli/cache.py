"""``stoker cache``: list what the caches on this machine hold, or empty them."""

from __future__ import annotations

import dataclasses
import itertools
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoker.cli import output
from stoker.config import format_count, format_size, user_cache_directory
from stoker.errors import ConfigError
from stoker.format import INDEXES_FOLDER, cached_indexes
from stoker.loader import CacheDirectory
from stoker.sources import UNPACKED_FOLDER, is_in_use, unpacked_files
from stoker.storage import location

if TYPE_CHECKING:
    import argparse

    from stoker.loader import CacheEntry

DESCRIPTION = (
    "List what a cache directory holds: samples of stoker.NodeCache, indexes of read-only shards, unpacked Parquet."
)
EXAMPLES = ("stoker cache", "stoker cache --dir /scratch/cache --clear")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the cache").add_argument
    text = "the directory (default: $STOKER_CACHE_DIR, else $XDG_CACHE_HOME/stoker, else ~/.cache/stoker)"
    add("--dir", metavar="DIR", help=text)
    add("--clear", action="store_true", help="remove what is not in use")


def run(args: argparse.Namespace) -> int:
    """Print what the caches hold, or what was removed, and return 0."""
    folder = _cache_folder(args.dir)
    directory = CacheDirectory(folder)
    files = {"indexes": list(cached_indexes(folder)), "unpacked": list(unpacked_files(folder))}
    if args.clear:
        entries = directory.clear() if directory.is_tagged() else []
        files["unpacked"] = [path for path in files["unpacked"] if not is_in_use(path)]
    else:
        entries = directory.entries()
    sizes = {name: [path.stat().st_size for path in paths] for name, paths in files.items()}
    for path in itertools.chain(*files.values()) if args.clear else ():
        path.unlink(missing_ok=True)
    if args.json:
        what = "removed" if args.clear else "entries"
        held = {name: {"files": len(of), "bytes": sum(of)} for name, of in sizes.items()}
        output.document({"directory": str(folder), what: [_fields(entry) for entry in entries], **held})
        return 0
    samples = format_size(sum(entry.disk_bytes for entry in entries))
    indexes, unpacked = (format_size(sum(of)) for of in sizes.values())
    output.line(
        f"{folder}: {'removed ' * args.clear}{format_count(len(entries), 'dataset')}, {samples}; "
        f"{len(files['indexes'])} indexes, {indexes}; {len(files['unpacked'])} unpacked files, {unpacked}"
    )
    if entries:
        columns = ("dataset", "split", ">on disk", ">of", "last use (UTC)", "in use")
        output.table(columns, [_row(entry) for entry in entries])
    return 0


def _cache_folder(named: str | None) -> Path:
    if named is not None and not location(named).is_local:
        raise ConfigError(f"{named} is in a store, but caches are on this machine; give a local directory with --dir")
    folder = user_cache_directory() if named is None else Path(named)
    if folder is None:
        raise ConfigError("this user has no home directory, so there is no default cache; give one with --dir")
    if (
        named is not None
        and not CacheDirectory(folder).is_tagged()
        and not any((folder / name).is_dir() for name in (INDEXES_FOLDER, UNPACKED_FOLDER))
    ):
        message = f"{folder} is not a Stoker cache, or its CACHEDIR.TAG is damaged"
        raise ConfigError(f"{message}; give the directory that was given to stoker.NodeCache")
    return folder


def _fields(entry: CacheEntry) -> dict[str, Any]:
    about = {"dataset": None, "split": None, "samples": None}
    return {
        "key": entry.key,
        **(dataclasses.asdict(entry.about) if entry.about else about),
        "bytes": entry.disk_bytes,
        "full_bytes": entry.file_bytes,
        "last_use": _time(entry).isoformat(timespec="seconds"),
        "in_use": entry.in_use,
    }


def _time(entry: CacheEntry) -> datetime:
    return datetime.fromtimestamp(entry.last_use, UTC)


def _row(entry: CacheEntry) -> tuple[str, ...]:
    sizes = format_size(entry.disk_bytes), format_size(entry.file_bytes)
    names = (entry.about.dataset, entry.about.split) if entry.about else (f"unknown ({entry.key})", "")
    return *names, *sizes, f"{_time(entry):%Y-%m-%d %H:%M}", "yes" if entry.in_use else "no"
