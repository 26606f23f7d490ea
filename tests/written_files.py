"""Files that tests write, and bytes of them that tests change."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_files(root: Path, files: Mapping[str, bytes | str]) -> Path:
    """Write files by their paths below a folder, and the folders that they are in."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def flip_bit(path: Path, at: float) -> None:
    """Change a bit of the byte at an offset, or after that share of the file."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * at) if isinstance(at, float) else at] ^= 0x10
    path.write_bytes(data)
