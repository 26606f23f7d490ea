"""A build is the same wherever the images lie, and whatever the way to them does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from builder.trees import build, contents, settings_for, write_tree
from servers.rules import Answer, Fault, Flip, Reset, Truncate
from sources.making import listing, tar_bytes, write, xml
from sources.uploading import copied
from stoker.builder import ItemConverter
from stoker.errors import StorageError
from stoker.format import ImagenetSchema
from stoker.recipe import Recipe
from storage.store_folders import store_folder

if TYPE_CHECKING:
    from pathlib import Path

    from servers.faults import FaultProxy

pytestmark = pytest.mark.servers

IMAGES = 24
FAULTS = {
    "busy": lambda: [Fault(Answer(503), probability=0.3, seed=1)],
    "resets": lambda: [Fault(Reset(), probability=0.2, seed=2)],
    "cut": lambda: [Fault(Truncate(100), method="GET", probability=0.3, seed=3)],
    # Bytes that are wrong in the same way four times are taken for those of an etag that is no MD5.
    "wrong": lambda: [Fault(Flip(at), method="GET", path=".JPEG", count=3, seed=at, probability=0.6) for at in (9, 99)],
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders with annotations, of which one is damaged, and an image that is none."""
    root = tmp_path_factory.mktemp("tree")
    write_tree(root / "train", {"n01": IMAGES // 2, "n02": IMAGES // 2})
    write(root, {"train/n01/bad.JPEG": b"no image", "train/n01/empty.JPEG": b""})
    (root / "Annotations").mkdir()
    for number in range(10):
        box = ("n01", "10", "10", "50", "50")
        (root / f"Annotations/n01_{number}.xml").write_text(xml(box) if number else "<broken")
    return root


@pytest.fixture
def url(tree: Path, faulty_s3: FaultProxy, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same in S3, behind a proxy."""
    return copied(tree, tree, store_folder("s3", request, monkeypatch, faulty_s3.url))


def built(source: str, destination: Path) -> tuple[dict[str, bytes], list[str]]:
    """The files of a dataset without the one that knows times and paths, and the damaged annotations."""
    report = build(settings_for(source, shards=3, max_rejects=2, threads=2), destination)
    assert report.manifest.records == IMAGES
    files = contents(destination)
    assert files.pop("manifest.json")
    files["dataset_id"] = report.manifest.dataset_id.encode()
    return files, [error.rpartition(": ")[2] for error in report.annotation_errors]


@pytest.mark.parametrize("kind", ["s3", "gs", "hdfs"])
def test_a_build_from_a_store_has_the_same_bytes(
    kind: str, tree: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = copied(tree, tree, store_folder(kind, request, monkeypatch))
    assert built(url, tmp_path / "there") == built(str(tree), tmp_path / "here")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_build_copes_with_faults(fault: str, tree: Path, url: str, tmp_path: Path, faulty_s3: FaultProxy) -> None:
    faulty_s3.faults = FAULTS[fault]()
    from_store = built(url, tmp_path / "there")
    assert faulty_s3.traffic.faults.total() > 5
    faulty_s3.faults = []
    assert from_store == built(str(tree), tmp_path / "here")


def test_a_build_from_a_tar_in_a_store(
    tree: Path, tmp_path: Path, faulty_s3: FaultProxy, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = {str(path.relative_to(tree)): path.read_bytes() for path in sorted((tree / "train").rglob("*.JPEG"))}
    tar = write(tmp_path / "photos", {"photos.tar": tar_bytes(members)}) / "photos.tar"
    url = copied(tar, tar.parent, store_folder("s3", request, monkeypatch, faulty_s3.url))
    faulty_s3.faults = [Fault(Answer(503), probability=0.2, seed=1), Fault(Truncate(50), method="GET", count=5)]
    assert built(url, tmp_path / "there") == built(str(tar), tmp_path / "here")


def test_images_are_asked_for_many_at_a_time(url: str, tmp_path: Path, faulty_s3: FaultProxy) -> None:
    faulty_s3.latency = 0.2
    faulty_s3.forget()
    built(url, tmp_path / "there")
    assert faulty_s3.traffic.most_at_once > IMAGES / 2
    asked = [request.path for request in faulty_s3.traffic.seen if ".JPEG" in request.path]
    heads = [path for path in asked if "list-type" not in path]
    assert len(heads) <= 2 * (IMAGES + 2) + 2  # once for the sample, once for the build; never to learn a size


def test_a_failing_store_is_no_bad_image(url: str, faulty_s3: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_SECONDS", "_FIRST_WAIT"):
        monkeypatch.setattr(f"stoker.storage.retrying.{name}", 0.001)
    source = listing(url)
    faulty_s3.faults = [Fault(Answer(500))]
    item = source.table[0]
    converter = ItemConverter(source, Recipe(), ImagenetSchema())
    for ask in (
        lambda: source.load(item, "train"),
        lambda: source.read_boxes(item, "train"),
        lambda: converter.check(item, "train"),
        lambda: converter.convert([item], "train", lambda: False),
    ):
        with pytest.raises(StorageError, match="tried"):
            ask()


def test_an_interrupt_of_a_plan_does_not_wait_for_a_store_that_is_busy(url: str, faulty_s3: FaultProxy) -> None:
    faulty_s3.faults = [Fault(Answer(503), method="GET", path=".JPEG")]
    faulty_s3.forget()
    process = subprocess.Popen([sys.executable, "-m", "stoker.cli.main", "plan", url], stderr=subprocess.PIPE)
    with process:
        while faulty_s3.traffic.faults["Answer"] < IMAGES and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, stderr = process.communicate(timeout=100)
    assert time.monotonic() - began < 10
    assert process.returncode == 130, stderr
