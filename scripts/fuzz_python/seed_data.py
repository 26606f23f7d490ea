"""What seeds are made of: a small dataset, and tars."""

from __future__ import annotations

import functools
import io
import tarfile
from typing import TYPE_CHECKING

from scripts.fuzz_python.scratch import folder
from stoker.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@functools.cache
def dataset() -> Path:
    """Return a dataset that Stoker has built of a sample."""
    top: Path = folder()
    photos, built = str(top / "photos"), top / "dataset"
    assert main(["sample", photos, "--classes", "2", "--images", "6", "--validation", "1"]) == 0
    assert main(["build", photos, str(built), "--shards", "2"]) == 0
    return built


def tar_of(members: Mapping[str, bytes]) -> bytes:
    """Return a tar of some files."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        end = tar.offset
    return file.getvalue()[: end + 2 * tarfile.BLOCKSIZE]  # without the zeros that only fill a record of a tape


def sealed(data: bytes) -> bytes:
    """Return a tar whose blocks have the checksum that a header must have, so that what else it says is looked at."""
    blocks = bytearray(data)
    for at in range(0, len(blocks) - tarfile.BLOCKSIZE + 1, tarfile.BLOCKSIZE):
        if any(blocks[at : at + tarfile.BLOCKSIZE]):
            blocks[at + 148 : at + 156] = b" " * 8
            blocks[at + 148 : at + 156] = b"%06o\0 " % sum(blocks[at : at + tarfile.BLOCKSIZE])
    return bytes(blocks)
