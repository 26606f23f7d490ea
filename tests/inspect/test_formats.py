"""What commands say of the formats of images, of who decodes them, and of a core without a library."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import stoker
from bench_prepared import case_of, prepared_images, spec_for
from mixed_images import COUNTS, FILES, write_folder, write_records
from reference import example, tfrecord
from small_datasets import list_again, write_dataset
from stoker.inspect import bench as reading
from stoker.inspect import diagnosis_dataset as examined
from stoker.inspect import verify_dataset
from stoker.inspect.page import dataset_portrait
from stoker.recipe import by_decoder, image_formats, missing_libraries

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("records"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("photos"))


def test_info_counts_the_formats_of_records(records: Path, cli: Cli) -> None:
    assert "images of the first 19 records: 5 png, 4 jpeg, 4 webp, 2 gif, 1 bmp" in cli("info", records)
    assert json.loads(cli("info", records, "--json"))["formats"] == COUNTS


def test_info_counts_what_names_of_files_end_in(folder: Path, cli: Cli) -> None:
    assert "names end in: 5 png, 4 jpg, 4 webp, 2 gif, 1 bmp" in cli("info", folder)
    suffixes = json.loads(cli("info", folder, "--json"))["suffixes"]
    assert suffixes == {"png": 5, "jpg": 4, "webp": 4, "gif": 2, "bmp": 1, "tiff": 1, "jp2": 1, "ppm": 1}


def test_a_page_names_formats_and_files_that_are_cut_short(tmp_path: Path) -> None:
    cut = {f"cut-{name}": FILES[name][:-300] for name in ("plain.png", "lossy.webp", "plain.jpg")}
    looked_at = dataset_portrait(write_folder(tmp_path / "photos", FILES | cut))
    kinds = dict(looked_at.measured.kinds)
    assert (kinds["PNG"], kinds["WebP"], kinds["JPEG 2000"]) == (5, 4, 1)
    assert looked_at.rejects.total == len(cut)
    assert all("cut short" in reason for reason, _ in looked_at.rejects.reasons)


def test_verify_counts_them_and_finds_all_whole(records: Path, cli: Cli) -> None:
    assert "images: 5 png, 4 jpeg, 4 webp, 2 gif, 1 bmp" in cli("verify", records)
    assert verify_dataset(records).formats == COUNTS


def test_a_sheet_says_which_formats_it_shows(folder: Path, records: Path, tmp_path: Path, cli: Cli) -> None:
    output = cli("show", folder, "--out", tmp_path / "sheet.png")
    assert "19 samples of train (5 png, 4 jpeg, 4 webp, 2 gif" in output
    document = json.loads(cli("show", records, "--out", tmp_path / "sheet.png", "--json"))
    assert document["formats"] == COUNTS


def test_a_sample_knows_its_format(records: Path, folder: Path) -> None:
    for path in (records, folder):
        samples = stoker.open(path)
        formats = {samples[number].source: samples[number].format for number in range(len(samples))}
        assert next(kind for source, kind in formats.items() if source.endswith("animated.webp")) == "webp"
        assert sorted(set(formats.values())) == sorted(COUNTS)
    assert " of png," in repr(next(s for s in map(samples.__getitem__, range(len(samples))) if s.format == "png"))


def test_the_format_that_a_record_of_a_dataset_claims_is_checked(tmp_path: Path) -> None:
    write_dataset(tmp_path, {"train": [3]})
    assert verify_dataset(tmp_path).problems == ()
    shard = next(tmp_path.glob("train-*.tfrecord"))
    parsed = [example.parse(record.payload) for record in tfrecord.scan(shard.read_bytes())]
    parsed[1]["image/format"] = ("bytes", [b"WEBP"])
    parsed[2]["image/encoded"] = ("bytes", [FILES["plain.png"]])
    shard.write_bytes(b"".join(tfrecord.frame(example.write(features)) for features in parsed))
    list_again(tmp_path)
    wrong = [(problem.record, problem.what) for problem in verify_dataset(tmp_path).problems]
    assert (1, "image/format says b'WEBP', but the image is jpeg") in wrong
    assert (2, "image/format says b'JPEG', but the image is png") in wrong
    assert not any(record == 0 for record, _ in wrong)


@pytest.mark.slow
def test_the_doctor_says_who_decodes_what(folder: Path, records: Path, cli: Cli) -> None:
    output = cli("doctor", folder, "--seconds", "0.2", "--threads", "2")
    assert "formats of 19 images: 5 png, " in output
    native, others = output.partition("decoded natively: ")[2].splitlines()[0].split("; by Pillow: ")
    assert sorted(native.split(", ")) == ["4 jpeg", "4 webp", "5 png"]
    assert sorted(others.split(", ")) == ["1 bmp", "1 jpeg2000", "1 ppm", "1 tiff", "2 gif"]
    assert "Pillow, 32% of the images: " in output
    assert "decode with Pillow" in output
    document = json.loads(cli("doctor", records, "--seconds", "0.5", "--threads", "2", "--json"))
    assert document["formats"] == COUNTS
    assert document["pillow"]["share"] == pytest.approx(6 / 19)
    assert min(document["pillow"][name] for name in ("cpu_seconds", "alone", "together")) > 0
    assert 0 < document["evidence"]["pillow_share"] < 1
    assert [stage["name"] for stage in document["stages"]][1] == "decode with Pillow"


def test_images_that_the_core_decodes_say_nothing_of_pillow(tmp_path: Path, cli: Cli) -> None:
    native = {name: data for name, data in FILES.items() if name.endswith((".png", ".webp"))}
    photos = write_folder(tmp_path / "photos", native)
    output = cli("doctor", photos, "--seconds", "0.1")
    assert "formats of 9 images: 5 png, 4 webp" in output
    assert "Pillow" not in output
    document = json.loads(cli("doctor", photos, "--seconds", "0.1", "--json"))
    assert document["pillow"] is None
    assert document["evidence"]["pillow_share"] == 0
    assert next(stage for stage in document["stages"] if stage["name"] == "decode and resize")["alone"] > 0


def test_remedies_fit_the_formats(folder: Path) -> None:
    names = {}
    for suffix in (".jpg", ".png"):
        images = [data for name, data in FILES.items() if name.endswith(suffix)]
        ways = examined.ways_to_decode(stoker.open(folder), images, stoker.CenterCrop(8, 8), 1)
        names[suffix] = [way.name for way in ways]
    assert names[".jpg"] == ["as it is", 'decode="fast"', "--recipe restart"]
    assert names[".png"] == ["as it is", "--encode jpeg:95:420"]


def test_a_missing_library_is_told_with_its_remedy(records: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_libraries() == ()
    monkeypatch.setattr(image_formats, "NATIVE_FORMATS", frozenset({"jpeg", "webp"}))
    assert by_decoder(COUNTS)[1]["png"] == 5
    output = cli("doctor", records, "--seconds", "0.1")
    assert "warning: this Stoker was built without libpng, so Pillow decodes png images" in output
    assert "install libpng-dev " in output
    assert "; by Pillow: 5 png, 2 gif" in output


def test_all_cases_of_a_benchmark_read_what_a_build_would_store(folder: Path, tmp_path: Path) -> None:
    images = prepared_images(folder, tmp_path / "prepared", forms=frozenset({"files", "plain"}))
    assert images.unreadable == []
    assert images.own_formats == COUNTS
    assert images.formats == {"png": 14, "jpeg": 3, "webp": 2}  # no WebP with alpha or frames
    spec = spec_for("eval", len(FILES))
    for key in ("python-serial", "stoker", "codec"):
        batches = reading.batches(spec, images, case_of(key))
        assert next(batches) >= len(FILES)
        batches.close()


@pytest.mark.slow
def test_a_benchmark_says_which_formats_it_read(folder: Path, cli: Cli) -> None:
    output = cli("bench", folder, "--only", "stoker-own", "--seconds", "0.1", "--rounds", "1")
    assert "formats: 5 png, 4 jpeg, 4 webp, 2 gif, 1 bmp" in output
    assert "all cases but stoker-own read them as: 14 png, 3 jpeg, 2 webp" in output
    told = "Pillow decodes in stoker-own, under the GIL: 2 gif, 1 bmp, 1 jpeg2000, 1 ppm, 1 tiff; 'stoker build'"
    assert told in output
