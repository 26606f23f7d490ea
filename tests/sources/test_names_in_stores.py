"""What only stores have: marks of folders, names no client can read, lists of URLs, options that are URLs."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from builder.trees import write_tree
from sources.making import check_refused, content, fill, listed, listing, write, xml
from sources.uploading import copied
from stoker.cli.main import main
from stoker.errors import ConfigError
from stoker.sources import SourceOptions, list_source
from storage.store_folders import store_folder

if TYPE_CHECKING:
    from pathlib import Path

    from servers.s3 import S3Server
    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers


@pytest.fixture
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoreLocation:
    return store_folder("s3", request, monkeypatch)


def put(server: S3Server, bucket: StoreLocation, *names: str) -> None:
    """Empty objects, with names that the client would not send, spelled as in a URL."""
    for name in names:
        path = f"/{bucket.root.removeprefix('s3://')}/{bucket.key}/{name}"
        assert server.ask("PUT", path).status == 200


def test_marks_of_folders_are_not_items(tmp_path: Path, bucket: StoreLocation, s3_server: S3Server) -> None:
    fill(tmp_path, "cat/1.jpg", "cat/sub/2.jpg", "dog/3.jpg")
    (tmp_path / "dog/empty.jpg").touch()
    url = copied(tmp_path, tmp_path, bucket)
    put(s3_server, bucket, "", "cat/", "cat/sub/", "cat/lone/")
    there, here = listing(url), listing(tmp_path)
    assert there.classes == here.classes == (b"cat", b"dog")
    assert list(there.table) == list(here.table)
    message = "images that are missing or empty, or links that lead nowhere: 1 of 4, such as dog/empty.jpg in "
    assert (there.warnings, here.warnings) == ((f"{message}{url}",), (f"{message}{tmp_path}",))
    assert there.ignored == here.ignored == {}
    assert there.fingerprint() == here.fingerprint()
    put(s3_server, bucket, "bird/")
    check_refused(url, match="without images in any split: bird; move their folders away")


def test_folders_that_programs_leave_are_no_classes(tmp_path: Path, bucket: StoreLocation) -> None:
    fill(tmp_path, "cat/1.jpg", "__MACOSX/cat/._1.jpg", "@eaDir/1.jpg", "cat/@eaDir/1.jpg/SYNOFILE_THUMB_M.jpg")
    there, here = listing(copied(tmp_path, tmp_path, bucket)), listing(tmp_path)
    assert there.classes == here.classes == (b"cat",)
    assert there.ignored == here.ignored == {"junk": 3}
    assert there.fingerprint() == here.fingerprint()


def test_a_name_that_no_client_can_read_is_reported(tmp_path: Path, bucket: StoreLocation, s3_server: S3Server) -> None:
    url = copied(tmp_path, fill(tmp_path, "cat/1.jpg"), bucket)
    put(s3_server, bucket, "cat/line%0Abreak.jpg")
    check_refused(url, match=r"cannot list the folder .*: .*cat/line\\nbreak.*rename or delete it")


def test_what_is_not_there(bucket: StoreLocation) -> None:
    check_refused(bucket, match="does not exist")
    check_refused("s3://no-such-bucket-anywhere/tree", match="does not exist")
    with pytest.raises(ConfigError, match="not a URL that Stoker reads"):
        listing("ftp://somewhere/tree")


def test_a_list_here_of_images_there(tmp_path: Path, bucket: StoreLocation) -> None:
    fill(tmp_path, "here/cat/1.jpg")
    there = fill(tmp_path / "there", *(f"dog/{number}.jpg" for number in range(9)), "cat/a b+%20#.jpg", "cat/x.jpg ")
    url = copied(there, there, bucket)
    lines = [
        *(f"{url}/dog/{number}.jpg" for number in range(9)),
        "here/cat/1.jpg",
        f"{url}/cat/a b+%20#.jpg ",
        f"{url}/cat/x.jpg ",
        f"{url}/dog/missing.jpg",
        f"{url}/owl/missing.jpg",
    ]
    path = tmp_path / "list.txt"
    path.write_bytes("\n".join(lines).encode() + b"\n" + f"{url}/dog/".encode() + b"\xff.jpg\n")
    tree = listing(path)
    assert tree.latency == "store"
    assert tree.classes == (b"cat", b"dog", b"owl")
    missing = [item for item in tree.table if item.size_bytes == 0]
    assert [item.name for item in missing] == [b"missing.jpg", b"\xff.jpg", b"missing.jpg"]
    for item in tree.table:
        if item.size_bytes:
            assert tree.load(item, "train").data == content(item.key)
        else:
            with pytest.raises(OSError, match=r"no such object|no object has a name"):
                tree.load(item, "train")


def test_an_image_in_no_folder_of_a_bucket_has_no_class(tmp_path: Path, bucket: StoreLocation) -> None:
    (tmp_path / "list.txt").write_text(f"{bucket.root}/image.jpg\n")
    check_refused(tmp_path / "list.txt", match="lies in no class folder")


def test_options_may_be_urls(tmp_path: Path, bucket: StoreLocation) -> None:
    root = fill(tmp_path / "photos", "train/n02/1.jpg", "train/n01/2.jpg", "validation/ILSVRC2012_val_00000001.JPEG")
    side = tmp_path / "side"
    texts = {"map.txt": "n02\tsecond\nn01\tfirst\n", "names.txt": "n01\tone\n", "labels.txt": "n01\n"}
    write(side, {**texts, "xml/1.xml": xml(("n02", "10", "10", "50", "50"))})
    url = copied(side, side, bucket)

    def options(top: str) -> SourceOptions:
        return SourceOptions(
            boxes=f"{top}/xml",
            class_names=f"{top}/names.txt",
            labels=f"{top}/map.txt",
            validation_labels=f"{top}/labels.txt",
        )

    here, there = (list_source(str(root), options(top)) for top in (str(side), url))
    assert there.classes == here.classes == (b"n02", b"n01")
    assert there.texts == here.texts == (b"second", b"one")
    assert there.latency == "store"
    assert there.fingerprint() == here.fingerprint()
    assert listed(there, "validation") == [("ILSVRC2012_val_00000001.JPEG", "n01")]
    item = there.table[0]
    assert there.read_boxes(item, "train") == here.read_boxes(item, "train") != []
    (bucket / "xml/1.xml").unlink()
    check_refused(root / "train", match=r"boxes .* does not exist", boxes=f"{url}/xml")


def test_list_and_plan_take_urls(
    tmp_path: Path, bucket: StoreLocation, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    root = write_tree(tmp_path / "photos", {"cat": 3, "dog": 2})
    fill(root, "cat/.hidden/x.JPEG", "cat/deep/y.jpg")
    (root / "cat/deep/y.jpg").write_bytes(b"no image")
    url = copied(root, root, bucket)

    def lines(*words: str) -> list[str]:
        assert main(["list", *words]) == 0
        return capfdbinary.readouterr().out.decode().splitlines()

    for pattern in (
        "**/*.JPEG", "*/d*/*.jp*", "cat/cat_[01].JPEG", "cat/cat_0.JPEG", "**", "*/.hidden/*", "**/deep/**",
    ):  # fmt: skip
        here = [line.replace(os.fspath(root), url) for line in lines(f"{root}/{pattern}")]
        assert lines(f"{url}/{pattern}") == here != [], pattern
    assert main(["list", f"{url}/*/none*"]) == 2
    assert b"no file matches" in capfdbinary.readouterr().err
    assert main(["list", f"{url}/*/*.JPEG", "--out", f"{url}/all.txt"]) == 0
    capfdbinary.readouterr()
    assert [item.key for item in listing(f"{url}/all.txt").table] == lines(f"{url}/*/*.JPEG")
    (bucket / "all.txt").unlink()
    plans = []
    for source in (str(root), url):
        assert main(["plan", source, "--json"]) == 3
        plan = json.loads(capfdbinary.readouterr().out.decode().replace(source, "SOURCE"))
        del plan["estimate"]["seconds"], plan["estimate"]["sampled"]
        plans.append(plan)
    assert plans[0] == plans[1]
