"""`stoker verify` finds any damage, names it, and goes on; it holds little of what it has checked."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loader.shards import image, payload, write_shards
from reference import example, tfrecord
from small_datasets import list_again, manifest_text
from stoker.cli.main import main
from stoker.errors import DatasetNotFoundError, ManifestError, NewerManifestError
from stoker.format import read_manifest
from stoker.inspect import index_shards, verify_dataset
from written_files import flip_bit, write_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commands import Cli

SIDES = ("xmin", "xmax", "ymin", "ymax")


@pytest.fixture
def copy(dataset: Path, tmp_path: Path) -> Path:
    return shutil.copytree(dataset, tmp_path / "copy")


def whats(path: Path) -> list[str]:
    return [str(problem) for problem in verify_dataset(path).problems]


def test_a_whole_dataset_has_no_problem(dataset: Path) -> None:
    report = verify_dataset(dataset, threads=2)
    assert report.problems == ()
    assert report.warnings == ()
    assert report.records == 50
    assert report.shards == 3
    assert report.size_bytes == sum(path.stat().st_size for path in dataset.glob("*.tfrecord"))


@pytest.mark.parametrize("share", [0, 0.0001, 0.2, 0.5, 0.77, 0.999])
def test_any_changed_byte_of_a_shard_is_found(copy: Path, share: float) -> None:
    shard = sorted(copy.glob("train-*.tfrecord"))[1]
    flip_bit(shard, share)
    problems = whats(copy)
    assert any("CRC-32C" in what and shard.name in what for what in problems)
    assert any("record" in what and "at byte" in what for what in problems)
    # One record is damaged; the index still leads to all the others.
    assert sum("class" in what for what in problems) == 1


@pytest.mark.slow
def test_every_number_of_an_index_matters(copy: Path) -> None:
    index = next(iter(sorted(copy.glob("*.idx"))))
    text = index.read_bytes()
    for at in (number.end() - 1 for number in re.finditer(rb"\w+", text)):
        changed = bytearray(text)
        changed[at] = ord("7") if changed[at] != ord("7") else ord("8")
        index.write_bytes(changed)
        assert whats(copy), at


@pytest.mark.slow
def test_every_number_of_the_manifest_matters(copy: Path) -> None:
    """And every word: the checksum is that of the text, whatever a field means."""
    path = copy / "manifest.json"
    text = path.read_bytes()
    values = list(re.finditer(rb'(: |\n +)("[^"]*"|[0-9]+|null)(?=,?\n)', text))
    assert len(values) > 80
    for number, value in enumerate(values):
        other = b"7" if value[2] != b"7" else b"8"
        path.write_bytes(text[: value.start(2)] + other + text[value.end(2) :])
        with pytest.raises(ManifestError):
            read_manifest(copy)
        assert number % 10 or whats(copy), value[2]


def test_a_manifest_with_a_right_checksum_is_compared_with_the_shards(copy: Path) -> None:
    path = copy / "manifest.json"
    content = json.loads(path.read_text())
    for change in (
        lambda m: m["splits"]["train"]["class_counts"].__setitem__(2, 5),
        lambda m: m["splits"]["train"].update(rejects=1),
    ):
        changed = json.loads(json.dumps(content))
        change(changed)
        path.write_bytes(manifest_text(changed))
        assert whats(copy)
    for key in ("records", "bytes", "crc32c"):
        changed = json.loads(json.dumps(content))
        shard = changed["splits"]["validation"]["shards"][0]
        shard[key] = "00000000" if key == "crc32c" else shard[key] + 1
        path.write_bytes(manifest_text(changed))
        # The shards are checked all the same, as if they came from elsewhere.
        report = verify_dataset(copy)
        assert [problem.path for problem in report.problems] == [str(path)]
        assert report.records == 50
    path.write_bytes(manifest_text({**content, "version": 3}))
    with pytest.raises(NewerManifestError, match="install Stoker >= "):
        verify_dataset(copy)
    path.write_bytes(manifest_text({**content, "source": {**content["source"], "items": 51}}))
    assert any("51 items" in what for what in whats(copy))


def test_missing_cut_and_extra_files_are_named(copy: Path) -> None:
    first, second = sorted(copy.glob("train-*.tfrecord"))
    first.unlink()
    os.truncate(second, second.stat().st_size - 100)
    (copy / "labels.txt").write_text("n01\n")
    (copy / "rejects.jsonl").write_text('{"key": "a", "split": "train", "reason": "b"}\n')
    (copy / "train-00007-of-00009.tfrecord").touch()
    (copy / "x.tfrecord.tmp-1").touch()
    problems = "\n".join(whats(copy))
    assert "labels.txt was changed or damaged after the build" in problems
    assert "rejects.jsonl was changed or damaged after the build" in problems
    list_again(copy, "labels.txt", "rejects.jsonl")
    report = verify_dataset(copy)
    problems = "\n".join(map(str, report.problems))
    assert f"{first}: the shard is missing" in problems
    assert f"of {second}: its frame of" in problems
    records = [p.record for p in report.problems if p.path == str(second) and p.record is not None]
    assert len(records) == 1
    assert "names 1 classes, but the manifest counts 5" in problems
    assert "has 1 rejects of split train; the manifest says 0" in problems
    assert len(report.warnings) == 2


@pytest.mark.slow
def test_every_byte_of_the_class_names_matters(copy: Path) -> None:
    labels = copy / "labels.txt"
    text = labels.read_bytes()
    for at in range(0, len(text), 13):
        labels.write_bytes(text[:at] + (b"x" if text[at : at + 1] != b"x" else b"y") + text[at + 1 :])
        assert whats(copy), at


def test_an_unfinished_build_is_not_a_dataset(copy: Path) -> None:
    (copy / "manifest.json").rename(copy / "build.journal")
    with pytest.raises(DatasetNotFoundError, match="unfinished build"):
        verify_dataset(copy)


def test_without_an_index_the_records_before_the_damage_are_checked(copy: Path) -> None:
    shard = max(copy.glob("train-*.tfrecord"))
    index = Path(f"{shard}.idx")
    offset = int(index.read_text().splitlines()[5].split()[0])
    index.unlink()
    flip_bit(shard, offset)
    problems = "\n".join(map(str, verify_dataset(copy).problems))
    assert "no index leads to the records behind the damage" in problems
    assert f"{index}: the index is missing" in problems
    assert "has 5 records; the manifest says" in problems
    index.mkdir()
    assert any("cannot be read" in what for what in whats(copy))


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_records_behind_damaged_payloads_are_checked_without_an_index(tmp_path: Path, compression: str) -> None:
    frames = [tfrecord.frame(payload(number)) for number in range(6)]
    for number in (1, 3):
        frames[number] = frames[number][:-20] + bytes([frames[number][-20] ^ 1]) + frames[number][-19:]
    shard = tmp_path / "train.tfrecord"
    whole = b"".join(frames)
    shard.write_bytes(whole if compression == "none" else gzip.compress(whole))
    report = verify_dataset(shard)
    assert [problem.record for problem in report.problems] == [1, 3]
    assert report.records == 6


def test_records_of_other_origin_are_checked_too(tmp_path: Path) -> None:
    shard = write_shards(tmp_path, 6, 1, {2: image(2)[:300], 4: b"no picture"})[0]
    report = verify_dataset(tmp_path)
    assert [(p.record, p.source) for p in report.problems] == [(2, "picture-2.JPEG"), (4, "picture-4.JPEG")]
    assert verify_dataset(shard).records == 6
    shard.write_bytes(tfrecord.frame(b"no example") + tfrecord.frame(payload(1)))
    (problem,) = verify_dataset(tmp_path).problems
    assert problem.record == 0
    with pytest.raises(DatasetNotFoundError):
        verify_dataset(tmp_path / "nothing")
    write_files(tmp_path, {"my photos/1.jpg": image(0)})
    with pytest.raises(DatasetNotFoundError, match=f"'stoker audit '{tmp_path}/my photos'' checks images"):
        verify_dataset(tmp_path / "my photos")
    shard.rename(tmp_path / "train-00001-of-00003")
    assert any("lacks 2 shards" in what for what in whats(tmp_path))
    assert verify_dataset(tmp_path / "train-*-of-00003").shards == 1


def test_the_command_says_what_it_found(copy: Path, cli: Cli) -> None:
    assert "no damage" in cli("verify", copy)
    shard = next(iter(copy.glob("train-*.tfrecord")))
    flip_bit(shard, 5000)
    cli("verify", copy, code=4)
    assert f"damage: {shard}" in cli.out
    cli("verify", copy, "--json", code=4)
    assert cli.json["problems"][0]["path"] == str(shard)
    cli("verify", copy / "nothing", code=2)


def test_edges_of_boxes_and_one_hot_copies_must_agree(tmp_path: Path) -> None:
    boxes = {"image/encoded": ("bytes", [image(1)]), "image/class/label": ("int64", [1])}
    boxes |= {f"image/object/bbox/{side}": ("float", [0.5] * (side != "xmax")) for side in SIDES}
    (tmp_path / "a.tfrecord").write_bytes(tfrecord.frame(example.write(boxes)))
    assert "'image/object/bbox/xmax' has 0 values for 1 boxes" in whats(tmp_path)[0]
    boxes |= {"image/object/bbox/xmax": ("float", [0.5]), "image/object/bbox/label": ("int64", [1, 2])}
    (tmp_path / "a.tfrecord").write_bytes(tfrecord.frame(example.write(boxes)))
    assert "'image/object/bbox/label' has 2 values for 1 boxes" in whats(tmp_path)[0]
    tiny = {"image_raw": ("bytes", [bytes(12)]), "label": ("int64", [1]), "label_one_hot": ("bytes", [b"\1\0"])}
    (tmp_path / "a.tfrecord").write_bytes(tfrecord.frame(example.write(tiny)))
    assert "label_one_hot marks [0], but the label is 1" in whats(tmp_path / "a.tfrecord")[0]


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_any_changed_byte_of_a_compressed_shard_is_found(photos: Path, tmp_path: Path, compression: str) -> None:
    out = tmp_path / "out"
    assert main(["build", str(photos), str(out), "--shards", "1", "--compression", compression]) == 0
    assert verify_dataset(out).problems == ()
    shard = out / "train-00000-of-00001.tfrecord"
    whole = shard.read_bytes()
    for share in (0, 0.3, 0.7, 0.9999):
        shard.write_bytes(whole)
        flip_bit(shard, share)
        assert any("CRC-32C" in what and shard.name in what for what in whats(out))


@contextmanager
def spare_descriptors(more: int) -> Iterator[None]:
    """Let this process open so many more files than it has open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = set(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208 - names only
    limit = next(
        n for n in range(soft) if n - sum(descriptor < n for descriptor in taken) == more
    )  # of the numbers of files
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_compressed_shard_is_released_once_it_is_checked(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, 30, 30)
    for shard in shards:
        shard.write_bytes(gzip.compress(shard.read_bytes()))
    with spare_descriptors(20):
        report = verify_dataset(tmp_path, threads=2)
    assert report.problems == ()
    assert (report.shards, report.records) == (30, 30)
    assert report.size_bytes == sum(shard.stat().st_size for shard in shards)


def test_a_process_without_spare_descriptors_finds_no_damage(tmp_path: Path) -> None:
    (shard,) = write_shards(tmp_path, 3, 1)
    assert verify_dataset(shard).problems == ()
    with spare_descriptors(0), pytest.raises(OSError, match="Too many open files"):
        verify_dataset(shard)
    with spare_descriptors(0), pytest.raises(OSError, match="Too many open files"):
        index_shards([str(shard)])


@pytest.mark.slow
def test_what_a_record_claims_is_cut_in_messages(dataset: Path, tmp_path: Path) -> None:
    record = {f"key {number:05d}": ("int64", [1]) for number in range(200)} | {
        "image/encoded": ("bytes", [b"x"]),
        "image/class/label": ("int64", [1]),
        "image/class/synset": ("bytes", [b"y" * 1_000_000]),
        "image/object/bbox/xmin": ("bytes", [b"1"]),
    }
    (tmp_path / "a.tfrecord").write_bytes(tfrecord.frame(example.write(record)))
    for name in ("manifest.json", "labels.txt", "rejects.jsonl"):
        (tmp_path / name).write_bytes((dataset / name).read_bytes())
    manifest = (tmp_path / "manifest.json").read_text()
    shard = next(iter(sorted(dataset.glob("train-*.tfrecord")))).name
    (tmp_path / "a.tfrecord").rename(tmp_path / shard)
    assert shard in manifest
    whats = [problem.what for problem in verify_dataset(tmp_path).problems]
    assert any("key 00019 and 180 more are not in the schema" in what for what in whats)
    assert any(what.startswith("image/class/synset says b'yyyy") for what in whats)
    assert sum(map(len, whats)) < 20_000
