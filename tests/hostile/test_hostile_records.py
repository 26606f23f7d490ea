"""Records and positions that lie: a loader refuses them, ``verify`` reports them, ``repack`` rejects them."""

from __future__ import annotations

import gzip
import re
import resource
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from loader.shards import image
from small_cases import each
from stoker import _native
from stoker.cli.main import main
from stoker.errors import ConfigError, ExampleError, ImageError, StokerError
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli

LABEL, BOX = "image/class/label", "image/object/bbox/"


def payload(**changes: tuple[str, list[Any]] | None) -> bytes:
    """A record of one picture with one object; a change of None takes a feature away."""
    features: dict[str, tuple[str, list[Any]] | None] = {
        "image/encoded": ("bytes", [image(0)]),
        LABEL: ("int64", [1]),
        "image/filename": ("bytes", [b"picture.JPEG"]),
        f"{BOX}label": ("int64", [1]),
        **{
            BOX + side: ("float", [edge]) for side, edge in (("xmin", 0.1), ("ymin", 0.1), ("xmax", 0.9), ("ymax", 0.9))
        },
        **changes,
    }
    return _native.write_example({key: value for key, value in features.items() if value is not None})


def write(directory: Path, *payloads: bytes) -> Path:
    return write_files(directory, {"train-00000-of-00001": b"".join(map(_native.frame_record, payloads))})


def read(folder: Path, **settings: Any) -> list[list[int]]:
    transform = stoker.Resize(16)
    with stoker.Loader(stoker.open(folder), batch_size=1, transform=transform, shuffle=False, **settings) as loader:
        return [batch.labels.tolist() for batch in loader]


BAD = {
    "no label": ({LABEL: ("int64", [])}, ExampleError, "label"),
    "a label of letters": ({LABEL: ("bytes", [b"one"])}, ExampleError, "label"),
    "no image": ({"image/encoded": None}, ExampleError, "image/encoded"),
    "an empty image": ({"image/encoded": ("bytes", [b""])}, ImageError, "empty"),
    "a name that commands": (
        {"image/filename": ("bytes", [b"\x1b[31m\n\xff"]), "image/encoded": ("bytes", [b"\x1b"])},
        ImageError,
        r"\\x1b\[31m\\n",
    ),
}


@pytest.mark.parametrize("case", list(BAD))
def test_a_record_that_cannot_be_used_is_named_by_everything(tmp_path: Path, case: str, cli: Cli) -> None:
    """``verify`` found nothing wrong with labels that are no numbers, and ``repack`` dropped them in silence."""
    changes, error, problem = BAD[case]
    folder = write(tmp_path / "records", payload(), payload(**changes))
    with pytest.raises(error, match=problem) as caught:
        read(folder)
    assert "record 1 at byte" in str(caught.value)
    assert str(caught.value).isprintable()
    cli("verify", folder, code=4)
    assert "record 1 at byte" in cli.out
    cli("repack", folder, tmp_path / "made", code=3)


@pytest.mark.parametrize("edge", [float("nan"), float("inf"), -float("inf")])
def test_boxes_that_are_not_numbers(tmp_path: Path, edge: float) -> None:
    folder = write(tmp_path / "records", payload(), payload(**{f"{BOX}xmin": ("float", [edge])}))
    dataset, transform = stoker.open(folder), stoker.Resize(16)
    with stoker.Loader(dataset, batch_size=2, transform=transform, boxes=stoker.BoxOutput()) as loader:
        (batch,) = loader
    assert batch.boxes.offsets.tolist() == [0, 1, 1]
    assert main(["verify", str(folder)]) == 4


@pytest.mark.parametrize("key", ["xmin", "ymax", "label"])
def test_edges_that_do_not_pair(tmp_path: Path, key: str) -> None:
    kind = "int64" if key == "label" else "float"
    folder = write(tmp_path / "records", payload(), payload(**{f"{BOX}{key}": (kind, [1, 1])}))
    with pytest.raises(ExampleError, match=r"record 1 at byte .* values for \d boxes"):
        read(folder, boxes=stoker.BoxOutput())


@pytest.mark.parametrize("label", [2**63 - 1, 2**31, 2**22 + 1])
def test_a_label_that_would_make_millions_of_classes(tmp_path: Path, label: int, cli: Cli) -> None:
    """Each class up to the largest label got a name, of which there were two thousand millions."""
    folder = write(tmp_path / "records", payload(), payload(**{LABEL: ("int64", [label])}))
    assert re.search(
        rf"{folder}[^ ]*, record 1 at byte \d+: label {label} is not below",
        cli("repack", folder, tmp_path / "made", code=2),
    )


@pytest.mark.slow
def test_a_hundred_thousand_features(tmp_path: Path) -> None:
    folder = write(tmp_path / "records", payload(**{f"key {i}": ("int64", [i]) for i in range(100_000)}))
    assert read(folder) == [[1]]


def test_a_compressed_record_of_zeros(tmp_path: Path) -> None:
    """Megabytes behind the end of a picture: kilobytes in the file."""
    large = payload(**{"image/encoded": ("bytes", [image(0) + bytes(32 << 20)])})
    (tmp_path / "train.tfrecord.gz").write_bytes(gzip.compress(_native.frame_record(large)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read(tmp_path / "train.tfrecord.gz") == [[1]]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10, "KiB"


@pytest.mark.parametrize("junk", [b"junk", b"\x1f\x8b", bytes(8)])
def test_what_follows_a_compressed_shard(tmp_path: Path, junk: bytes) -> None:
    path = tmp_path / "train.tfrecord.gz"
    path.write_bytes(gzip.compress(_native.frame_record(payload())) + junk)
    with pytest.raises(StokerError, match=r"train\.tfrecord\.gz"):
        read(path)


STATES = [None, [], 1, "state", {}, {"epoch": 0}]
VALUES = [None, True, -1, 2**63, 10**40, 0.5, float("nan"), "x", "\x1b[31m", [], {}, [[[[]]]], b"x"]


@pytest.fixture
def loader(tmp_path: Path) -> stoker.Loader:
    dataset = stoker.open(write(tmp_path / "records", payload()))
    return stoker.Loader(dataset, batch_size=1, transform=stoker.Resize(16), seed=0)


@pytest.mark.parametrize("state", STATES, ids=repr)
def test_what_is_not_a_state(loader: stoker.Loader, state: Any) -> None:
    with loader, pytest.raises(ConfigError, match="state"):
        loader.load_state_dict(state)


@each("value", VALUES)
@each("key", ["version", "dataset", "seed", "epoch", "consumed"])
def test_a_state_with_one_wrong_value(loader: stoker.Loader, key: str, value: Any) -> None:
    """``True`` was an epoch."""
    with loader, pytest.raises(ConfigError, match=key) as caught:
        loader.load_state_dict({**loader.state_dict(), key: value})
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400
