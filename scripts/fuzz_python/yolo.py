"""YOLO's files: refused, or items whose boxes lie in their images and have classes that there are."""

from __future__ import annotations

from scripts.fuzz_python.scratch import check_boxes, folder
from stoker.sources import list_source

_FOLDER = folder()
_YAML = b"names: [a, b]\ntrain: images\n"
for _name in ("images", "labels"):
    (_FOLDER / _name).mkdir()
(_FOLDER / "images/1.jpg").write_bytes(b"x")


def one_input(data: bytes) -> None:
    """Read any bytes: after a 0 as the labels of an image, after another byte as ``data.yaml``."""
    (_FOLDER / "data.yaml").write_bytes(data[1:] if data[:1] > b"\0" else _YAML)
    (_FOLDER / "labels/1.txt").write_bytes(b"" if data[:1] > b"\0" else data[1:])
    check_boxes(list_source(str(_FOLDER)))


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    labels = b"0 0.5 0.5 0.1 0.2\n1 0.1 0.1 0.4 0.1 0.4 0.3\n"
    mapping = b"path: .\ntrain: [images, more]\nval: ../images\nnc: 2\nnames:\n  0: 'no'\n  1: 7\n"
    return [b"\0" + labels, b"\1" + _YAML, b"\1" + mapping]
