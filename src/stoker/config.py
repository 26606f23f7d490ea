"""Checks of settings before any file is opened, texts for messages, the CPUs of this process, the folder of caches."""

from __future__ import annotations

import functools
import math
import operator
import os
import re
import shlex
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from stoker.errors import ConfigError
from stoker.habits import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_T = TypeVar("_T")
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")

_UNITS = {"": 1, "B": 1}
_UNITS |= {letter + "B": 1000 ** (power + 1) for power, letter in enumerate("KMGT")}
_UNITS |= {letter + "IB": 1024 ** (power + 1) for power, letter in enumerate("KMGT")}
MAX_SIZE = 2**62
"""The most bytes that a setting may give."""

_ENDLESS = 2**31
"""Limits from here on only guard the arithmetic; messages about smaller values need not name them."""

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", re.ASCII)

IMAGE_SUFFIXES = {
    **dict.fromkeys(("jpg", "jpeg", "jpe", "jfif"), "jpeg"),
    **{name: name for name in ("png", "webp", "gif", "bmp", "avif")},
    **dict.fromkeys(("tif", "tiff"), "tiff"),
    **dict.fromkeys(("heic", "heif"), "heif"),
    "jp2": "jpeg2000",
    **dict.fromkeys(("ppm", "pgm", "pbm"), "ppm"),
}
"""Extensions of image files, and the format of each in the words of `stoker.recipe.sniff`."""

_AS_OPTIONS: ContextVar[bool] = ContextVar("as_options", default=False)
_FLAGS = ("masks", "crop_objects", "allow_huge", "overwrite", "finish")
_OTHER_OPTIONS = {
    "allow_huge": "--yes",
    "keys.image": "--image-key",
    "keys.label": "--label-key",
    "keys.label_base": "--label-base (of repack: --from-label-base)",
}


def option_of(name: str) -> str:
    """Return the option of the command line for an argument: ``--shard-size`` for ``shard_size``."""
    return _OTHER_OPTIONS.get(name, f"--{name.replace('_', '-')}")


def names_options() -> bool:
    """Return whether messages of this thread name settings as options, because a command runs."""
    return _AS_OPTIONS.get()


def option(name: str) -> str:
    """Return how messages name a setting: as an argument of Python, or as an option while a command runs."""
    if names_options():
        return option_of(name)
    return f"{name}=True" if name in _FLAGS else name


def option_with(name: str, value: str) -> str:
    """Return how a person gives a setting a value, for a message: ``labels='a b'``, or ``--labels 'a b'``."""
    return f"{option_of(name)} {shlex.quote(value)}" if names_options() else f"{name}={value!r}"


@contextmanager
def settings_as_options() -> Iterator[None]:
    """Let messages of this thread name settings as the command line does while the body of ``with`` runs."""
    token = _AS_OPTIONS.set(True)
    try:
        yield
    finally:
        _AS_OPTIONS.reset(token)


def refuse_ineffective(given: Mapping[str, object], where: str, advice: str = "") -> None:
    """Refuse settings that have no effect ``where`` they are given; None and False count as not given."""
    if names := _given(given):
        has, it = ("has", "it") if len(names) == 1 else ("have", "them")
        raise ConfigError(f"{' and '.join(names)} {has} no effect {where}; {advice or f'omit {it}'}")


def refuse_contradicting(given: Mapping[str, object]) -> None:
    """Refuse settings if more than one of them is given; None and False count as not given."""
    if len(names := _given(given)) > 1:
        raise ConfigError(f"{names[0]} and {names[1]} contradict each other; give one of them")


def _given(settings: Mapping[str, object]) -> list[str]:
    return [option(name) for name, value in settings.items() if value is not None and value is not False]


@functools.cache
def stoker_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import version  # noqa: PLC0415 - takes longer to import than the rest of this module

    return version("stoker")


def parse_size(text: str) -> int:
    """Return the number of bytes in a size such as ``128MB``, ``1.5 GiB`` or ``4096``.

    ``KB MB GB TB`` are powers of 1000, ``KiB MiB GiB TiB`` of 1024; upper and lower case are the same.
    """
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise ConfigError(f"not a size: {text!r}; write for example 128MB or 1GiB")
    size = float(match[1]) * unit
    if not 1 <= size <= MAX_SIZE:  # before `int`, which takes no infinite number
        raise ConfigError(f"size {text!r} is out of range; it must be at least 1 byte and at most 4 EiB")
    return int(size)


def check_size(name: str, size: str | int, least: int) -> int:
    """Return a number of bytes, given as a number or as a text for `parse_size`."""
    return check_range(name, parse_size(size) if isinstance(size, str) else size, least, MAX_SIZE)


def format_size(size: float) -> str:
    """Return a number of bytes for a person, in powers of 1000: ``110.2 KB``."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 999.95:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def format_seconds(seconds: float) -> str:
    """Return a duration for a person: ``0.8 s``, ``12 s``, ``3 min 20 s``, ``2 h 05 min``."""
    whole = math.ceil(seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_count(count: int, noun: str) -> str:
    """Return a number of things for a person: ``1 record``, ``2,000 records``, ``2 classes``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}{'es' if noun[-1] in 'sx' else 's'}"


def check_range(name: str, value: int, low: int, high: int) -> int:
    """Return ``value`` as a plain int if it lies in ``low..high``; integers of NumPy are welcome."""
    try:
        whole = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        whole = None
    if whole is None:
        allowed = f"of {low} or more" if high >= _ENDLESS else f"from {low} to {high}"
        raise ConfigError(f"{name} is {value!r}; it must be a whole number {allowed}")
    if not low <= whole <= high:
        allowed = f"{low} or more" if whole < low and high >= _ENDLESS else f"between {low} and {high}"
        raise ConfigError(f"{name} is {whole}; it must be {allowed}")
    return whole


def check_share(name: str, value: float) -> float:
    """Return ``value`` if it is a number from 0 to 1."""
    if isinstance(value, bool) or not (isinstance(value, Real) and 0.0 <= value <= 1.0):
        raise ConfigError(f"{name} is {value!r}; it must be a number between 0 and 1, such as 0.5")
    return value


def format_some(values: Sequence[_T], most: int, text: Callable[[_T], str] = str) -> str:
    """Return a list for a message, of which ``most`` are named: ``a, b and 3 more``."""
    more = f" and {len(values) - most:,} more" if len(values) > most else ""
    return ", ".join(map(text, values[:most])) + more


def alternatives(names: Sequence[str]) -> str:
    """Return names as a person lists them: ``a, b or c``."""
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def without_address(value: object) -> str:
    """Return the repr of a value, without its address in memory."""
    return (
        f"the class {value.__qualname__}" if isinstance(value, type) else re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    )


def check_choice(name: str, value: object, known: Sequence[object]) -> None:
    """Refuse a value that is not among those known."""
    if value not in known:
        hint = did_you_mean(value, (word for word in known if isinstance(word, str)))
        raise ConfigError(f"{name} is {value!r}; it must be {alternatives(list(map(repr, known)))}{hint}")


def check_seconds(seconds: float) -> None:
    """Refuse a time for a measurement that is not between 0.1 and 3,600 seconds."""
    if not 0.1 <= seconds <= 3600:
        raise ConfigError(f"--seconds is {seconds}; it must be between 0.1 and 3600")


def available_cpus() -> int:
    """Return how many CPUs this process may use, by its affinity mask and its control groups: at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = cpu_limit()
    return allowed if limit is None else max(1, min(allowed, math.ceil(limit)))


def cpu_limit(root: Path = _CGROUPS, own: Path = _OWN_CGROUPS) -> float | None:
    """Return how many CPUs' time this process may use; None if nothing limits it.

    This is the lowest limit of its control groups, which ``own`` names, and of those around them, of version 1 or 2, as
    ``docker run --cpus`` and Kubernetes set it. The affinity mask does not show it, and with a thread for each CPU of
    the mask, a process would be stopped for most of every period. A group that cannot be read sets no limit. See the
    kernel's ``cgroup-v2.rst`` (``cpu.max``) and ``sched-bwc.rst`` (``cpu.cfs_quota_us``).
    """
    try:
        lines = own.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    limits = [limit for line in lines for folder in _folders(line, root) if (limit := _limit(folder)) is not None]
    return min(limits, default=None)


def _folders(line: str, root: Path) -> Iterator[Path]:
    """Yield the folders of the groups that a line ``ID:CONTROLLERS:PATH`` names, the innermost first."""
    _, _, rest = line.partition(":")
    controllers, _, path = rest.partition(":")
    if controllers == "":
        mounts = (root, root / "unified")
    elif "cpu" in controllers.split(","):
        mounts = (root / controllers, root / "cpu")
    else:
        return
    inner = PurePosixPath(path.lstrip("/"))
    # In a container the path is often that of the host, where only the root of the mount is the group's folder.
    for mount in mounts:
        for group in (inner, *inner.parents):
            if ".." not in group.parts:
                yield mount / group


def _limit(folder: Path) -> float | None:
    if (text := _read(folder / "cpu.max")) is not None:
        quota, _, period = text.partition(" ")
    else:
        quota, period = _read(folder / "cpu.cfs_quota_us") or "", _read(folder / "cpu.cfs_period_us") or ""
    if not (quota.isascii() and quota.isdigit() and period.isascii() and period.isdigit()):  # "max", "-1", or nothing
        return None
    return int(quota) / int(period) if int(quota) > 0 and int(period) > 0 else None


def _read(path: Path) -> str | None:
    try:
        with path.open() as file:
            return file.read(100).strip()
    except (OSError, UnicodeDecodeError):
        return None


def user_cache_directory() -> Path | None:
    """Return the folder for caches of this user; None if there is none."""
    chosen = os.environ.get("STOKER_CACHE_DIR")
    if chosen:
        return Path(chosen).absolute()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():  # a relative one is ignored, as the XDG Base Directory Specification asks for
        return shared / "stoker"
    try:
        return Path.home() / ".cache" / "stoker"
    except RuntimeError:  # a user without a home
        return None
