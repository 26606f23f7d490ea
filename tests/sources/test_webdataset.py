"""Tars of samples, written and read by ``webdataset``, and what is wrong with them."""

from __future__ import annotations

import gc
import gzip
import json
import os
import pickle
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stoker
from reference import pictures
from sources.making import check_refused, content, fill, listing, picture, split_sizes, tar_bytes, tar_of, write
from stoker import fields
from stoker.cli.main import main
from stoker.errors import SourceError, TooManyRejectsError
from stoker.sources.patterns import expand_braces

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from commands import Cli
    from stoker.sources import Source

CLASSES, SAMPLES = 3, 11
A = {"a.jpg": content("a.jpg"), "a.cls": b"0"}


def write_shards(root: Path, **extra: Any) -> Path:
    """Shards of two splits, as the library writes them."""
    import webdataset as wds  # noqa: PLC0415

    for split, first in (("train", 0), ("val", SAMPLES)):
        (root / split).mkdir(parents=True)
        with wds.ShardWriter(str(root / split / f"{split}-%06d.tar"), maxcount=4, verbose=0) as shards:
            for number in range(first, first + SAMPLES):
                image = {"png": picture(number, "PNG")} if number % 2 else {"jpg": picture(number)}
                texts = {"txt": f"caption {number} ü日", "json": {"n": number, "tags": ["x", None]}}
                label = number * 7 % CLASSES
                shards.write({"__key__": f"s/{number:06d}", **image, "cls": label, **texts, **extra})
    return root


def read_shards(root: Path, split: str) -> dict[str, Any]:
    """What the library reads of a split, by key."""
    import webdataset as wds  # noqa: PLC0415

    shards = sorted(map(str, (root / split).glob("*.tar")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves the tars open
        samples = list(wds.WebDataset(shards, shardshuffle=False).decode())
        gc.collect()
    return {
        sample["__key__"].rpartition("/")[2]: {
            "label": sample["cls"],
            "image": sample.get("jpg") or sample.get("png"),
            "txt": sample["txt"],
            "json": sample["json"],
        }
        for sample in samples
    }


def one_tar(root: Path, members: Mapping[str, bytes | None], name: str = "photos.tar") -> Path:
    path = root / name
    path.write_bytes(tar_bytes(members))
    return path


def items(tree: Source, split: str = "train") -> dict[str, int]:
    """The label of each item of a split; what was loaded is what the name says."""
    labels = {}
    for row in tree.splits[split].tolist():
        item = tree.table[row]
        assert tree.load(item, split).data == content(item.key)
        labels[item.key] = item.label
    return labels


def test_a_build_stores_what_webdataset_reads(tmp_path: Path) -> None:
    source = write_shards(tmp_path / "src")
    assert stoker.build(source, tmp_path / "out", progress=False).items == 2 * SAMPLES
    for split, theirs in (("train", "train"), ("validation", "val")):
        stored = {
            str(sample.source).partition(".")[0]: {"label": sample.label, "image": sample.encoded, **sample.fields}
            for sample in stoker.open(tmp_path / "out", split)
        }
        assert stored == read_shards(source, theirs)


def test_tables_that_img2dataset_writes_beside_tars_are_no_lists(tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    members = {}
    for number in range(3):
        texts = {"txt": b"a caption", "json": b'{"url": "http://a.example/1.jpg", "similarity": null}'}
        members |= {f"00000000{number}.{suffix}": data for suffix, data in {"jpg": picture(number), **texts}.items()}
    one_tar(tmp_path, members, "00000.tar")
    (tmp_path / "00000_stats.json").write_text('{"count": 3}')
    table = pa.table({"url": ["http://a.example/1.jpg"] * 3, "key": ["0"] * 3, "caption": ["a caption"] * 3})
    parquet.write_table(table, tmp_path / "00000.parquet")
    tree = listing(tmp_path)
    assert (tree.latency, len(tree.table), tree.ignored) == ("disk", 3, {".parquet": 1})
    assert [*tree.fields] == ["txt", "json"]


def test_a_name_with_dots_is_explained(tmp_path: Path) -> None:
    path = one_tar(tmp_path, {"a.v1.jpg": picture(1), "a.v1.cls": b"0", "b.jpg": picture(2), "b.cls": b"0"})
    tree = listing(path)
    assert "samples without an image are not used (a key is a name up to its first dot): photos.tar: a" in tree.warnings


def test_fingerprints_change_with_the_length_of_a_value(tmp_path: Path) -> None:
    ids = {listing(one_tar(tmp_path, {**A, "a.txt": text})).fingerprint() for text in (b"one", b"two", b"three")}
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (A, {"a.jpg": 0}),
        ({"./a.jpg": content("a.jpg"), "./a.txt": b""}, {"a.jpg": -1}),
        ({"a.JPEG": content("a.JPEG"), "a.Json": b"1"}, {"a.JPEG": -1}),
        ({"x/a.jpg": content("a.jpg"), "x/a.cls": b" 0\n", "y/a.jpg": content("a.jpg")}, {"x/a.jpg": 0, "y/a.jpg": -1}),
        ({**A, "b.cls": b"-1", "b.webp": content("b.webp")}, {"a.jpg": 0, "b.webp": -1}),
        ({"a.cls": b"1", "a.jfif": content("a.jfif"), "b.ppm": content("b.ppm")}, {"a.jfif": 1, "b.ppm": -1}),
        ({**A, "a.0.png": b"x", "a.mp3": b"x"}, {"a.jpg": 0}),
        ({"v1.0/a.jpg": content("a.jpg"), "v1.0/a.cls": b"0"}, {"v1.0/a.jpg": 0}),
    ],
)
def test_samples_are_items(tmp_path: Path, members: dict[str, bytes], expected: dict[str, int]) -> None:
    assert items(listing(one_tar(tmp_path, members))) == expected


def test_tars_of_class_folders_mean_what_they_meant(tmp_path: Path) -> None:
    members = {"cat/1.jpg": content("1.jpg"), "cat/1.txt": b"", "dog/2.jpg": content("2.jpg"), "dog/2.json": b"1"}
    tree = listing(one_tar(tmp_path, members))
    assert (tree.classes, tree.fields) == ((b"cat", b"dog"), {})
    assert items(tree) == {"cat/1.jpg": 0, "dog/2.jpg": 1}
    check_refused(one_tar(tmp_path, {"1.jpg": b"x", "2.txt": b""}), match="do not lie in class folders")


def test_a_folder_of_shards_has_splits_by_names_or_folders(tmp_path: Path) -> None:
    for name in ("train-000000.tar", "train-000001.tar", "my-val-0.tar", "test.tar"):
        one_tar(tmp_path, A, name)
    tree = listing(tmp_path)
    assert split_sizes(tree) == {"train": 2, "validation": 1, "test": 1}
    tree = listing(write(tmp_path / "more", dict.fromkeys(("train/0.tar", "val/0.tar"), tar_bytes(A))))
    assert split_sizes(tree) == {"train": 1, "validation": 1}


def test_class_folders_beside_shards_mean_what_they_meant(tmp_path: Path) -> None:
    for split in ("", "train/"):
        root = tmp_path / f"of-{split}"
        write(root / split, {"cat/1.jpg": content("1.jpg")})
        one_tar(root / split, A)
        assert listing(root).classes == (b"cat",)


def test_class_ids_without_images_are_classes(tmp_path: Path) -> None:
    tree = listing(one_tar(tmp_path, {"a.jpg": content("a.jpg"), "a.cls": b"2"}))
    assert tree.classes == (b"0", b"1", b"2")
    assert tree.warnings == ("class ids run from 0 to 2, and these have no images: 0, 1",)


@pytest.mark.parametrize(
    ("members", "kind", "warning"),
    [
        ({"b.cls": b"1", "b.txt": b"x"}, "sample without an image", "without an image are not used"),
        ({"b.jpg": b"x", "b.png": b"y"}, "sample with several images", "with several images are not used"),
        ({"b.jpg": b"x", "b.JPG": b"y"}, "sample with a member twice", "have a member twice are not used"),
        ({"b.jpg": b"x", "b.cls": b"cat"}, "sample with a bad class", "is not a class id, such as 7, are not used"),
        ({"b.jpg": b"x", "b.cls": b""}, "sample with a bad class", "is not a class id"),
        ({"b.jpg": b"x", "b.cls": b"-2"}, "sample with a bad class", "is not a class id"),
        ({"b.jpg": b"x", "b.cls": b"9" * 18}, "sample with a bad class", "is not a class id"),
        ({"b.jpg": b"x", "b.cls": b" " * 2**20 + b"1"}, "sample with a bad class", "is not a class id"),
        ({"b.jpg": b"x", "b.mask.png": b"x", "b.mask.jpg": b"x"}, "sample with a member twice", "a member twice"),
        ({"b.cls": b"1", "b.cls.txt": b"", "b.Cls": b"1", "b.jpg": b"x"}, "sample with a member twice", "twice"),
    ],
)
def test_incomplete_samples_are_named(tmp_path: Path, members: dict[str, bytes], kind: str, warning: str) -> None:
    tree = listing(one_tar(tmp_path, {**A, **members, "c.jpg": content("c.jpg")}))
    assert items(tree) == {"a.jpg": 0, "c.jpg": -1}
    assert tree.ignored[kind] == 1
    assert [message.endswith("photos.tar: b") and warning in message for message in tree.warnings] == [True]


def test_a_repeated_key_is_named(tmp_path: Path) -> None:
    tree = listing(one_tar(tmp_path, {**A, "c.jpg": content("c.jpg"), "a.txt": b"x"}))
    assert items(tree) == {"a.jpg": 0, "c.jpg": -1}
    assert tree.warnings == ("samples with the key of an earlier one are not used: photos.tar: a",)


def test_a_tar_without_a_usable_sample_is_refused(tmp_path: Path) -> None:
    check_refused(
        one_tar(tmp_path, {"a.jpg": b"x", "a.cls": b"cat"}),
        match=r"no sample that can be used; samples whose \.cls .*: photos\.tar: a",
    )


@pytest.mark.parametrize(
    ("names", "ignored"),
    [
        (("a.0.PNG", "a.npy", "a.0.npy", "a.\udcff"), {".npy": 1, ".0.npy": 1, ".0.png": 1, "other member": 1}),
        (("__index__", "__x__/b.jpg", "README", ".c.jpg", "../d.jpg"), {"not in a sample": 4, "unsafe name": 1}),
    ],
)
def test_other_members_are_counted(names: tuple[str, ...], ignored: dict[str, int], tmp_path: Path) -> None:
    tree = listing(one_tar(tmp_path, {**A, **dict.fromkeys(names, b"x"), "f": None}))
    assert (items(tree), tree.ignored) == ({"a.jpg": 0}, ignored)


def test_a_tar_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = one_tar(tmp_path, {**A, "b.jpg": bytes(2000)})
    path.write_bytes(path.read_bytes()[:3000])
    check_refused(path, match=r"photos\.tar is cut short at byte")


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("b.txt", b"ab\xff", "the txt of b.jpg in {path} is damaged: it is not UTF-8 at byte 2"),
        ("b.json", b"{", "the json of b.jpg in {path} is damaged: "),
        ("b.json", b'{"a": NaN}', "the json of b.jpg in {path} is damaged: "),
        ("b.json", b"[" * 100_000, "the json of b.jpg in {path} is damaged: "),
        ("b.json", b"null", "json"),
        ("b.txt", b"x" * (2**24 + 1), "the txt of b.jpg in {path} has 16777217 bytes, more than 16777216"),
        (None, None, "txt"),
    ],
)
def test_damaged_values_are_rejects(tmp_path: Path, name: str | None, value: bytes | None, problem: str) -> None:
    good = {"a.jpg": picture(1), "a.txt": b"one", "a.json": b"1"}
    bad = {"b.jpg": picture(2), "b.txt": b"two", "b.json": b"2"}
    if name is None:
        del bad["b.txt"]
    else:
        bad[name] = value or b""
    path = one_tar(tmp_path, {**good, **bad})
    assert listing(path).fields == {"txt": fields.Text(), "json": fields.Json()}
    with pytest.raises(TooManyRejectsError):
        stoker.build(path, tmp_path / "out", progress=False)
    stoker.build(path, tmp_path / "out", max_rejects=1, progress=False)
    [reject] = [json.loads(line) for line in (tmp_path / "out/rejects.jsonl").read_text().splitlines()]
    assert dict(stoker.open(tmp_path / "out", "train")[0].fields) == {"txt": "one", "json": 1}
    assert problem.format(path=path) in json.dumps(reject)
    assert "b.jpg" in json.dumps(reject)


def grey(number: int) -> bytes:
    return pictures.png(np.random.default_rng(number).integers(0, 9, (6, 8), dtype=np.uint8))


def test_masks_and_other_images_are_fields(tmp_path: Path) -> None:
    import webdataset as wds  # noqa: PLC0415

    with wds.TarWriter(str(tmp_path / "photos.tar")) as tar:
        for number in range(3):
            masks = {"mask.png": grey(number), "my-MASK.png": grey(number + 9)}
            tar.write(
                {"__key__": f"s{number}", "jpg": picture(number), "depth.webp": picture(number + 5, "WEBP"), **masks}
            )
            tar.write({"__key__": f"t{number}", "jpg": picture(number), "cls": 0, "depth.jpeg": picture(1), **masks})
    source = tmp_path / "photos.tar"
    assert listing(source).fields == {"depth": fields.Image(), "mask": fields.Mask(), "my-mask": fields.Mask()}
    stoker.build(source, tmp_path / "out", progress=False)
    samples = {str(sample.source).partition(".")[0]: sample for sample in stoker.open(tmp_path / "out")}
    assert sorted(samples) == ["s0", "s1", "s2", "t0", "t1", "t2"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for theirs in wds.WebDataset(str(source), shardshuffle=False, empty_check=False):
            ours = samples[theirs["__key__"]]
            for name in ("mask", "my-mask", "depth"):
                [data] = [value for key, value in theirs.items() if key.startswith(f"{name}.")]
                np.testing.assert_array_equal(ours.fields[name], np.asarray(pictures.opened(data)))
        gc.collect()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("b.mask.png", b"", "field 'mask'"),
        ("b.mask.png", b"no image", "field 'mask'"),
        ("b.mask.png", picture(1, "PNG"), "field 'mask'"),  # RGB
        ("b.mask.png", grey(1)[:60], "field 'mask'"),
        ("b.other.png", b"", "field 'mask' is None"),
    ],
)
def test_damaged_and_missing_masks_are_rejects(tmp_path: Path, name: str, value: bytes, problem: str) -> None:
    other = {"a.other.png": picture(1)} if "other" in name else {}
    members = {"a.jpg": picture(1), "a.cls": b"0", "a.mask.png": grey(1), **other, "b.jpg": picture(2), name: value}
    path = one_tar(tmp_path, members)
    [reject] = stoker.build(path, tmp_path / "out", max_rejects=1, progress=False).rejects
    assert reject.key == "b.jpg"
    assert problem in reject.reason


def test_names_that_no_field_has_are_counted(tmp_path: Path) -> None:
    names = ["label.png", "image.png", "txt.png", "cls.jpg", "a.b.png", "-x.png", "ü.png", "x" * 65 + ".png", ".png"]
    tree = listing(one_tar(tmp_path, {**A, **{f"a.{name}": b"x" for name in names}}))
    assert (tree.fields, sum(tree.ignored.values())) == ({}, len(names))


def test_there_are_only_so_many_fields(tmp_path: Path) -> None:
    members = {f"{key}.{name}": b"x" for key in "bc" for name in ("jpg", *(f"v{number}.png" for number in range(99)))}
    tree = listing(one_tar(tmp_path, {**A, **members}))
    assert len(tree.fields) <= 18
    assert tree.ignored == {"other member": 2 * (99 - len(tree.fields))}


@pytest.mark.parametrize(
    "first", [b"", bytes(10_240), b"x" * 3000, tar_bytes({"a.jpg": b"x"})[:700], tar_bytes({"x/": None})]
)
def test_a_first_tar_that_says_nothing_hides_no_samples(first: bytes, tmp_path: Path) -> None:
    (tmp_path / "000.tar").write_bytes(first)
    one_tar(tmp_path, A, "001.tar")
    if first in (bytes(10_240), tar_bytes({"x/": None})):  # whole, and without a sample
        assert items(listing(tmp_path)) == {"a.jpg": 0}
        return
    with pytest.raises(SourceError, match=r"000\.tar is (not a tar|(damaged|cut short) at byte \d+): ") as caught:
        listing(tmp_path)
    assert (caught.value.path, caught.value.offset) == (
        str(tmp_path / "000.tar"),
        1024 if first.startswith(b"a.jpg") else 0,
    )
    (tmp_path / "001.tar").unlink()
    check_refused(tmp_path, match=re.escape(str(caught.value)))


def test_the_first_tar_with_files_says_what_all_are(tmp_path: Path) -> None:
    write(tmp_path, {"0.tar": bytes(10_240), "1.tar": tar_of("cat/1.jpg")})
    one_tar(tmp_path, A, "2.tar")
    check_refused(tmp_path, match="no tar with a name of ImageNet's")


def test_a_damaged_tar_beside_images_of_a_split_is_not_the_split(tmp_path: Path) -> None:
    assert listing(fill(tmp_path, "train/cat/1.jpg", "test/2.jpg", "test/more.tar")).classes == (b"cat",)


def test_labels_beside_tars_name_the_ids(tmp_path: Path) -> None:
    one_tar(tmp_path, {**A, "b.jpg": content("b.jpg"), "b.cls": b"2"})
    (tmp_path / "labels.txt").write_text("2\ttwo\n1\n0\tnull\n3\n")
    tree = listing(tmp_path)
    assert (tree.classes, tree.texts) == ((b"2", b"1", b"0", b"3"), (b"two", b"", b"null", b""))
    assert items(tree) == items(listing(tmp_path / "photos.tar")) == {"a.jpg": 0, "b.jpg": 2}
    (tmp_path / "others.txt").write_text("x\ny\nz\n")
    tree = listing(tmp_path, labels=str(tmp_path / "others.txt"))
    assert tree.classes == (b"x", b"y", b"z")


@pytest.mark.parametrize("text", ["a\nb\n", "", "a\na\nb\n", '{"a": '])
def test_labels_that_are_of_something_else_are_not_used(text: str, tmp_path: Path) -> None:
    one_tar(tmp_path, {"a.jpg": content("a.jpg"), "a.cls": b"2"})
    (tmp_path / "labels.txt").write_text(text)
    tree = listing(tmp_path)
    assert tree.classes == (b"0", b"1", b"2")
    assert any(
        "labels.txt" in message and "not used, and the classes are called by their ids" in message
        for message in tree.warnings
    )


def test_a_compressed_tar_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"a.tar.gz": gzip.compress(tar_bytes(A)), "more/b.tar.gz": gzip.compress(tar_bytes(A))})
    for source in ("a.tar.gz", "{a,a}.tar.gz", "more"):
        check_refused(tmp_path / source, match=r"[ab]\.tar\.gz is compressed, so .* unpack it with gunzip first")


def test_braces_name_the_shards_that_webdataset_reads(tmp_path: Path, cli: Cli) -> None:
    import webdataset as wds  # noqa: PLC0415

    source = write_shards(tmp_path / "src")
    pattern = f"{source}/train/train-{{000000..000002}}.tar"
    theirs = read_shards(source, "train")
    dataset = stoker.open(pattern)
    assert pickle.loads(pickle.dumps(dataset)).labels.tolist() == dataset.labels.tolist()
    pairs = sorted((sample.label, sample.encoded) for sample in dataset)
    assert pairs == sorted((sample["label"], sample["image"]) for sample in theirs.values())
    whole = stoker.build(source / "train", tmp_path / "folder", progress=False)
    part = stoker.build(pattern, tmp_path / "braces", progress=False)
    assert whole.manifest.dataset_id == part.manifest.dataset_id
    assert json.loads(cli("info", pattern, "--json"))["splits"]["train"]["images"] == SAMPLES
    both = listing(f"{source}/{{train/train-{{000000..000002}},val/val-{{000000..000002}}}}.tar")
    assert split_sizes(both) == {"train": SAMPLES, "validation": SAMPLES}
    assert list(map(os.fsdecode, both.reader.uris[1:])) == wds.shardlists.expand_urls(both.root)


def test_braces_in_folders_of_splits(tmp_path: Path) -> None:
    write(tmp_path, {f"{folder}/test-0.tar": tar_bytes(A) for folder in ("train", "val", "more")})
    for folders, splits in (("train,val", {"train", "validation"}), ("train,more", {"test"}), ("val,val", {"test"})):
        assert listing(tmp_path / f"{{{folders}}}/test-{{0..0}}.tar").splits.keys() == splits


def test_braces_name_tars_of_class_folders_too(tmp_path: Path) -> None:
    write(tmp_path, {f"{name}.tar": tar_of(f"{name}/1.jpg", f"{name}/2.jpg", "other/3.jpg") for name in ("cat", "dog")})
    tree = listing(tmp_path / "{cat,dog}.tar")
    assert tree.classes == (b"cat", b"dog", b"other")
    assert len(tree.table) == 6


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("{a,b}.tar", "b.tar, for which {path} stands, does not exist"),
        ("{a.tar,c}", "c, for which {path} stands, is not a file"),
        ("{a.tar,notes.txt}", "notes.txt, for which {path} stands, is no tar"),
        ("{a.tar,", "{path} has a brace without a partner"),
        ("{0..9999999}.tar", "{path} stands for more than 1048576 names"),
        ("a}.tar", "{path} does not exist"),
    ],
)
def test_braces_that_name_no_tars_are_refused(pattern: str, problem: str, tmp_path: Path) -> None:
    one_tar(tmp_path, A, "a.tar")
    (tmp_path / "c").mkdir()
    (tmp_path / "notes.txt").write_text("a.tar")
    path = str(tmp_path / pattern)
    check_refused(path, match=re.escape(problem.format(path=path)))
    with pytest.raises(stoker.errors.DatasetNotFoundError, match=re.escape(path)):
        stoker.open(path)
    assert main(["info", path]) == 2


def test_names_with_braces_are_names(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(("{a,b}.tar", "{x}/1.tar"), tar_bytes(A)))
    assert items(listing(tmp_path / "{a,b}.tar")) == {"a.jpg": 0}
    assert items(listing(tmp_path / "{x}/{1..1}.tar")) == {"a.jpg": 0}


numbers = st.integers(-12, 12).flatmap(lambda number: st.sampled_from([f"{number}", f"{number:03d}"]))
steps = st.sampled_from(["", "..2", "..-3", "..0"])
ranges = st.builds("{{{}..{}{}}}".format, numbers, numbers, steps) | st.builds(
    "{{{}..{}{}}}".format, st.sampled_from("abzABZ"), st.sampled_from("abzABZ"), steps
)
literals = st.sampled_from(["a", "b.tar", "/", "-", "", "..", ",", "0", "\\{", "\\}", "\\,", "é"])
patterns = st.recursive(
    literals | ranges,
    lambda inner: (
        st.builds("".join, st.lists(inner, max_size=3))
        | st.builds(lambda parts: "{" + ",".join(parts) + "}", st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=5,
)


@pytest.mark.needs("braceexpand")
@given(patterns)
def test_braces_mean_what_webdataset_makes_of_them(pattern: str) -> None:
    import braceexpand  # noqa: PLC0415

    assert expand_braces(pattern) == list(braceexpand.braceexpand(pattern))


@pytest.mark.parametrize("pattern", ["{", "}", "}{", "{a", "{{a,b}", "{" * 30 + "}" * 30, "{0..1023}{0..1023}{a,b}"])
def test_patterns_that_mean_nothing_are_refused(pattern: str) -> None:
    with pytest.raises(SourceError):
        expand_braces(pattern)


def test_a_tar_of_tars_is_not_a_webdataset(tmp_path: Path) -> None:
    path = one_tar(tmp_path, {"n01.tar": tar_of("1.jpg", "1.txt"), "n02.tar": tar_of("2.jpg")})
    assert listing(path).classes == (b"n01", b"n02")


def test_images_called_seg_beside_others_are_masks(tmp_path: Path) -> None:
    out = pictures.png(np.full((6, 8), 3, np.uint8))
    members = {f"{i}.{end}": data for i in range(3) for end, data in (("jpg", picture(i)), ("seg.png", out))}
    train = stoker.open(one_tar(tmp_path, members))
    assert train.fields == {"seg": fields.Mask()}
    assert set(train[0].fields["seg"].ravel().tolist()) == {3}
