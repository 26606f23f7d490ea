"""Packs what fuzzing has reached into the checkout, and unpacks it, so that every run starts where another one ended.

    python scripts/fuzz_corpus.py unpack CORPUS
    python scripts/fuzz_corpus.py pack CORPUS TARGET ...

``scripts/fuzz_corpus/TARGET.tar.xz`` holds inputs of one target: those of ``CORPUS/TARGET`` that are not made anew by
each run as seeds. `make fuzz-corpus` minimises them first. The same inputs give the same archive.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import sys
import tarfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "fuzz_corpus"
SUFFIX = ".tar.xz"
LONGEST = 8 << 10
"""Bytes of an input that is kept: a longer one is tried too seldom, and a picture cannot be compressed."""
MOST = 64 << 10
"""Bytes of an archive. The shortest inputs come first, and the others are left out."""


def archive_of(inputs: list[bytes]) -> bytes:
    """Return an archive of inputs, which are named after their bytes."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for data in inputs:
            info = tarfile.TarInfo(hashlib.sha256(data).hexdigest()[:16])
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return lzma.compress(file.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def pack(corpus: Path, target: str) -> tuple[int, int]:
    """Write the archive of a target; return how many inputs it has, and its bytes."""
    files = [path for path in (corpus / target).iterdir() if not path.name.startswith("seed-")]
    contents = {path.read_bytes() for path in files if path.stat().st_size <= LONGEST}
    inputs = sorted(contents, key=lambda data: (len(data), data))
    few, many = 0, len(inputs)
    while few < many:  # the most that fit
        middle = (few + many + 1) // 2
        few, many = (middle, many) if len(archive_of(inputs[:middle])) <= MOST else (few, middle - 1)
    data = archive_of(inputs[:few])
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{target}{SUFFIX}").write_bytes(data)
    return few, len(data)


def unpack(corpus: Path) -> int:
    """Write the inputs of every archive to ``CORPUS/TARGET``; return how many there are."""
    count = 0
    for path in sorted(FOLDER.glob(f"*{SUFFIX}")):
        folder = corpus / path.name.removesuffix(SUFFIX)
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path) as tar:
            tar.extractall(folder, filter="data")
            count += len(tar.getmembers())
    return count


if __name__ == "__main__":
    command, where, *targets = sys.argv[1:]
    if command == "unpack":
        sys.stdout.write(f"{unpack(Path(where))} inputs of earlier runs\n")
    for name in targets:
        sys.stdout.write("{}: {} inputs in {} bytes\n".format(name, *pack(Path(where), name)))
