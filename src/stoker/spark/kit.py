"""What must be the same on the driver and on every executor for the bytes to be the same."""

from __future__ import annotations

import zlib
from importlib.metadata import PackageNotFoundError, version

from stoker.errors import ConfigError

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


def require(wanted: Kit) -> None:
    """See that the versions here are those of the driver.

    Raises:
        ConfigError: One is not.
    """
    here = kit(compressed="zlib" in wanted)
    other = [
        f"{name} is {here.get(name)} and not {wanted[name]}"
        for name in sorted(wanted)
        if here.get(name) != wanted[name]
    ]
    if other:
        message = f"{', '.join(other)} on an executor, so its bytes could differ"
        raise ConfigError(f"{message}; give it the driver's versions, as docs/spark.md says")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"
