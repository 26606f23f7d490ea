"""Archives that a download unpacks, tar and zip: refused, or exactly their files, and nothing outside of the folder."""

from __future__ import annotations

import io
import shutil
import zipfile

from scripts.fuzz_python.scratch import folder
from scripts.fuzz_python.seed_data import sealed, tar_of
from stoker.download.catalogue import Unpacking
from stoker.download.run import is_unpacked, unpack

_FOLDER = folder()


class _Silent:
    def advanced(self, **_: object) -> None:
        """Ignore the progress."""


def one_input(data: bytes) -> None:
    """Unpack any bytes; the first byte says as what."""
    kind = data[0] if data else 0
    archive = _FOLDER / ("a.zip" if kind & 1 else "a.tar")
    archive.write_bytes(sealed(data[1:]) if kind & 5 == 4 else data[1:])
    unpacking = Unpacking("made", is_inside=bool(kind & 2), max_bytes=2**16)
    try:
        unpack(archive, unpacking, _Silent())  # type: ignore[arg-type]
        assert is_unpacked(archive, unpacking)
    finally:
        shutil.rmtree(_FOLDER / "made", ignore_errors=True)
        archive.unlink()
        assert not list(_FOLDER.iterdir())


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as writer:
        writer.writestr("made/a.txt", b"abc" * 30)
        writer.writestr("made/b/c.txt", b"")
    archive = tar_of({"made/a.txt": b"abc", "made/b/c.txt": b""})
    return [b"\3" + file.getvalue(), b"\1" + file.getvalue(), b"\2" + archive, b"\6" + archive]
