"""Pascal VOC's folders: refused, or items below them whose boxes lie in their images and have known classes."""

from __future__ import annotations

from scripts.fuzz_python.scratch import check_boxes, folder
from stoker.sources import list_source

_FOLDER = folder()
_XML = b"<annotation><size><width>9</width><height>9</height></size><object><name>a</name><bndbox><xmin>1</xmin>"
_XML += b"<ymin>1</ymin><xmax>5</xmax><ymax>5</ymax></bndbox></object></annotation>"
for _name in ("JPEGImages", "Annotations", "ImageSets/Main"):
    (_FOLDER / _name).mkdir(parents=True)
(_FOLDER / "JPEGImages/1.jpg").write_bytes(b"x")


def one_input(data: bytes) -> None:
    """Read any bytes: by the first as the annotation, the list of a split, or the list of classes."""
    which, rest = data[:1], data[1:]
    (_FOLDER / "Annotations/1.xml").write_bytes(rest if which == b"\0" else _XML)
    (_FOLDER / "ImageSets/Main/train.txt").write_bytes(rest if which == b"\1" else b"1\n")
    (_FOLDER / "labelmap.txt").write_bytes(rest if which == b"\2" else b"a:1,1,1::\n")
    tree = list_source(str(_FOLDER))
    for item in tree.table:
        assert item.path.startswith(b"JPEGImages/")
        assert b".." not in item.path.split(b"/")
    check_boxes(tree)


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    return [b"\0" + _XML, b'\0011\n"a b"\nc 1\n', b"\2# label\na:1,1,1::\nbackground:0,0,0::\n"]
