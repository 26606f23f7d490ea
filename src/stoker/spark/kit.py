"""What must be the same on the driver and on every executor for the bytes to be the same."""

from __future__ import annotations

import zlib
from importlib.metadata import PackageNotFoundError, version

Kit = dict[str, str]
"""The version of each piece of software that decides bytes, by its name."""

_PACKAGES = ("stoker", "pillow")


def kit(*, compressed: bool) -> Kit:
    """Return the versions here.

    Args:
        compressed: Whether shards are compressed, so that zlib decides bytes, too.
    """
    found = {name: _version(name) for name in _PACKAGES}
    return found | ({"zlib": zlib.ZLIB_RUNTIME_VERSION} if compressed else {})


def difference(wanted: Kit) -> str:
    """Return what differs here from the driver's kit, in words; nothing where all is the same."""
    here = kit(compressed="zlib" in wanted)
    names = sorted(name for name in wanted if here.get(name) != wanted[name])
    return ", ".join(f"{name} is {here.get(name, 'missing')} and not {wanted[name]}" for name in names)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"
