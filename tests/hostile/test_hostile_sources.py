"""Sources made to break a build: every item is stored or rejected by name, and nothing else is read."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from reference import pictures
from sources.making import tar_bytes, xml
from stoker.cli.main import main
from stoker.format import read_rejects
from stoker.sources.boxes import parse_annotation
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli


def jpeg() -> bytes:
    return pictures.encode(Image.new("RGB", (16, 16), "red"))


def put(root: Path, *names: str | bytes) -> Path:
    """A tree of small JPEGs."""
    return write_files(root, dict.fromkeys(map(os.fsdecode, names), jpeg()))


def build(source: Path, directory: Path, *more: str) -> dict[str, object]:
    """Build, verify, and return the manifest."""
    assert main(["build", str(source), str(directory), "--yes", "--max-rejects", "9", *more]) == 0
    assert main(["verify", str(directory)]) == 0
    return json.loads((directory / "manifest.json").read_text())


ODD_NAMES = [
    b"a/\xff\xfe.jpg",
    "a/x\n\r\t\x1b]0;mine\x07.jpg",
    "a/%s*?\"'$(id).jpg",
    "a/-rf.jpg",
    "a/" + "x" * 251 + ".jpg",
    "a/e\u0301.jpg",
    "a/\u00e9.jpg",
    "a/A.jpg",
    "a/a.jpg",
    "a/\u202etxt.jpg",
    "a/deep/" + "d" * 200 + "/" + "e" * 200 + "/x.jpg",
    "con/1.jpg",
    "labels.txt/1.jpg",
    "manifest.json/1.jpg",
    b"\xff/1.jpg",
    "e\u0301/1.jpg",
    "\u00e9/1.jpg",
    "\u202e/1.jpg",
]


def test_no_name_loses_an_image_or_commands_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = put(tmp_path / "source", *ODD_NAMES, "..a/1.jpg")
    (source / "a" / "no\x1b[31m\npicture.jpg").write_bytes(b"text\x1b[31m")
    manifest = build(source, tmp_path / "made")
    assert manifest["splits"]["train"]["records"] == len(ODD_NAMES)
    assert manifest["source"]["ignored"] == {"hidden": 1}
    assert [reject.key for reject in read_rejects(tmp_path / "made")] == ["a/no\x1b[31m\npicture.jpg"]
    for command, code in ((["plan", str(source)], 3), (["info", str(tmp_path / "made")], 0)):
        assert main(command) == code
    shown = capsys.readouterr()
    assert all(char.isprintable() or char == "\n" for char in shown.out + shown.err)


@pytest.mark.parametrize("name", ["b\n", "b\t", "b\r", "b\x1b[31m"])
def test_a_class_that_labels_txt_cannot_hold(tmp_path: Path, name: str, cli: Cli) -> None:
    source = put(tmp_path / "source", "a/1.jpg", f"{name}/2.jpg")
    assert f"the class {name!r} has a control character" in cli("build", source, tmp_path / "made", code=2)


def test_links_and_special_files(tmp_path: Path) -> None:
    """Links are followed wherever they lead, but for ``up``, which leads back; what is not an image is rejected."""
    source = put(tmp_path / "source", "a/1.jpg", "b/2.jpg")
    put(tmp_path / "elsewhere", "1.jpg", "x/2.jpg")
    for name, target in {
        "a/out.jpg": tmp_path / "elsewhere" / "1.jpg",
        "a/nowhere.jpg": "/nowhere",
        "a/zero.jpg": "/dev/zero",
        "a/folder": tmp_path / "elsewhere",
        "a/up": "..",
        "a/itself": "itself",
        "class": tmp_path / "elsewhere" / "x",
    }.items():
        (source / name).symlink_to(target)
    os.mkfifo(source / "a" / "pipe.jpg")
    manifest = build(source, tmp_path / "made")
    assert manifest["source"]["ignored"] == {"loop of links": 1, "special file": 2}
    assert {reject.key for reject in read_rejects(tmp_path / "made")} == {"a/nowhere.jpg", "a/itself"}
    assert manifest["source"]["items"] == manifest["splits"]["train"]["records"] + 2 == 8


LINES = ["/dev/zero", "a/pipe.jpg", "/etc/passwd", "a", "../../a/nowhere.jpg", "a/\x1b[31m.jpg"]


@pytest.mark.parametrize("line", LINES, ids=ascii)
def test_a_list_that_names_no_image(tmp_path: Path, line: str) -> None:
    """``/dev/zero`` was read for a gigabyte before it was refused."""
    put(tmp_path, "a/1.jpg")
    os.mkfifo(tmp_path / "a" / "pipe.jpg")
    (tmp_path / "list.txt").write_text(f"a/1.jpg\n{tmp_path / 'a' / line if '/' not in line else line}\n")
    build(tmp_path / "list.txt", tmp_path / "made")
    (reject,) = read_rejects(tmp_path / "made")
    assert reject.key.endswith(line)


@pytest.mark.parametrize("text", ["\n\n\n", " \n", "\ufeff\n"])
def test_a_list_of_nothing(tmp_path: Path, text: str, cli: Cli) -> None:
    (tmp_path / "list.txt").write_text(text)
    assert "list.txt" in cli("build", tmp_path / "list.txt", tmp_path / "made", code=2)


def declared(encoding: str) -> bytes:
    return f'<?xml version="1.0" encoding="{encoding}"?>{xml(("a", "1", "1", "5", "5"))}'.encode()


LAUGHS = "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9))
ANNOTATIONS: dict[str, tuple[bytes, str]] = {
    "laughs": (f'<!DOCTYPE l [<!ENTITY a "x">{LAUGHS}]><a>&j;</a>'.encode(), "EntitiesForbidden"),
    "file": (b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', "EntitiesForbidden"),
    "deep": (b"<a>" * 10**5, "no element found"),
    "large": (b"<a>" + b"x" * 2**22 + b"</a>", "bytes of XML"),
    "unknown encoding": (declared("no-such"), "unknown encoding"),
    "no encoding": (declared("base64"), "not a text encoding"),
    "idna": (declared("idna"), "codec"),
    "zeros": (bytes(50), "token"),
    "nothing": (b"", "no element found"),
    "nan": (xml(("a", "nan", "1", "5", "5")).encode(), "xmin> is 'nan', which is not a finite number"),
    "infinite": (xml(("a", "1", "1", "5", "1e999")).encode(), "ymax> is '1e999', which is not a finite number"),
    "no number": (xml(("a", "", "1", "5", "5")).encode(), "xmin> is '', which is not a finite number"),
    "hex": (xml(("a", "0x10", "1", "5", "5")).encode(), "xmin> is '0x10', which is not a finite number"),
    "thousands": (xml(("a", "1,000", "1", "5", "5")).encode(), "xmin> is '1,000', which is not a finite number"),
    "no size": (xml(size=("0", "5")).encode(), "size is 0 x 5"),
    "negative size": (xml(size=("-1", "5")).encode(), "size is -1 x 5"),
}


@pytest.mark.parametrize("case", list(ANNOTATIONS))
@pytest.mark.slow
def test_an_annotation_is_refused_for_what_is_wrong_with_it(case: str) -> None:
    text, problem = ANNOTATIONS[case]
    with pytest.raises(ValueError, match=problem):
        parse_annotation(text)


@pytest.mark.parametrize("in_tar", [False, True])
def test_no_annotation_costs_its_image(tmp_path: Path, in_tar: bool) -> None:
    """An encoding that Python lacks ended the build."""
    source = put(tmp_path / "source", *(f"a/{case}.jpg" for case in ANNOTATIONS))
    texts = {f"a/{case}.xml": text for case, (text, _) in ANNOTATIONS.items() if not in_tar or len(text) < 2**22}
    if in_tar:
        (source / "annotation.tar").write_bytes(tar_bytes(texts))
    else:
        write_files(source / "Annotations", texts)
    manifest = build(source, tmp_path / "made")
    assert manifest["splits"]["train"]["records"] == len(ANNOTATIONS)
    assert manifest["annotation_errors"] == len(ANNOTATIONS) - in_tar
