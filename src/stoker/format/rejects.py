"""``rejects.jsonl``: one JSON object a line for each source item that is not in the dataset."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stoker.errors import ManifestError
from stoker.format.directory import REJECTS_NAME, ListedFile, read_text, write_listed
from stoker.storage import location
from stoker.strict_json import parse_json
from stoker.types import Reject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stoker.storage import LocationLike


_MAX_REJECTS_BYTES = 2**30


def write_rejects(directory: LocationLike, rejects: Iterable[Reject]) -> ListedFile:
    """Write the rejects of a dataset atomically, and return what the manifest says about the file.

    The file is there, and empty, when there are none.
    """
    lines = [json.dumps({"key": r.key, "split": r.split, "reason": r.reason}) + "\n" for r in rejects]
    return write_listed(location(directory) / REJECTS_NAME, "".join(lines).encode())


def read_rejects(directory: LocationLike, listed: ListedFile | None = None) -> tuple[Reject, ...]:
    """Return the rejects of a dataset in the order of the build; none when there is no file.

    Raises:
        ManifestError: It is not as ``listed``; or a line is not what it should be, and the message names the line.
    """
    path = location(directory) / REJECTS_NAME
    if not path.lexists():
        return ()
    content = read_text(path, _MAX_REJECTS_BYTES, "list of rejects", listed)
    rejects = []
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n")):
        if not line and not number:
            continue  # nothing was rejected
        try:
            rejects.append(_reject(parse_json(line)))
        except (ValueError, TypeError, KeyError) as error:
            message = f"{path} line {number + 1} is not a reject: {error}; the dataset itself is not affected"
            raise ManifestError(message, path=str(path), record=number) from error
    return tuple(rejects)


def _reject(entry: dict[str, object]) -> Reject:
    key, split, reason = (entry[name] for name in ("key", "split", "reason"))
    if not (isinstance(key, str) and isinstance(split, str) and isinstance(reason, str)):
        raise TypeError("key, split and reason must be texts")
    return Reject(key, split, reason)
