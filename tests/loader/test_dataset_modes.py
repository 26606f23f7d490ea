"""The mode belongs to a dataset: it is kept wherever that goes, and what it has no meaning for is refused by name."""

from __future__ import annotations

import io
import pickle
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from loader.modes import INTEGERS, MODES, OUTPUTS
from loader.shards import boxes, payload, tensor, write_annotated
from page_checks import checked
from reference import colors, example, pictures, tfrecord, transform
from stoker.errors import ConfigError
from stoker.loader import open_main_split
from stoker.loader.pictures import original_pixels, visible

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli

SIZE, SIDE = 14, 9
TRANSFORM = stoker.RandomResizedCrop(SIDE, hflip=0.5)
BOTH = stoker.MultiCrop(TRANSFORM, stoker.Resize((7, 11)))


def picture(i: int) -> bytes:
    """A PNG: with alpha, grey of 16 bits, or a JPEG."""
    rng = np.random.default_rng(i)
    if i % 3 == 1:
        deep = rng.integers(0, 1 << 16, (31, 40 + i), dtype=np.uint16)
        return pictures.encode(Image.fromarray(deep), format="PNG")
    if i % 3 == 2:
        return pictures.jpeg(50, 33, i)
    rgba = np.dstack([pictures.pixels(44, 38, i), rng.integers(0, 256, (38, 44), dtype=np.uint8)])
    return pictures.encode(Image.fromarray(rgba), format="PNG")


def write(folder: Path, begin: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    records = [payload(i, picture(begin + i)) for i in range(SIZE)]
    (folder / "train-00000-of-00001.tfrecord").write_bytes(b"".join(map(tfrecord.frame, records)))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("modes") / "data")


def batches(train: stoker.Dataset | stoker.Mix, **settings: Any) -> list[stoker.Batch]:
    settings = {"batch_size": 4, "transform": TRANSFORM, "seed": 3, "threads": 2} | settings
    with stoker.Loader(train, **settings) as loader:
        return list(loader)


def pixels(train: stoker.Dataset | stoker.Mix, **settings: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([batch.images for batch in batches(train, **settings)])


@pytest.mark.parametrize("mode", MODES)
def test_a_dataset_keeps_its_mode(folder: Path, mode: Any) -> None:
    train = stoker.open(folder, mode=mode)
    assert train.mode == train[0].mode == open_main_split(folder, None, mode=mode).mode == mode
    assert (f"mode={mode!r}" in repr(train)) == (mode != "RGB")
    again = pickle.loads(pickle.dumps(train))
    assert again.mode == pickle.loads(pickle.dumps(again)).mode == mode
    expected = pixels(train)
    assert (pixels(again) == expected).all()
    with stoker.Loader(train, batch_size=SIZE, transform=TRANSFORM, seed=3, threads=2) as loader:
        brought: stoker.Loader = pickle.loads(pickle.dumps(loader))
        with brought:
            assert (next(iter(brought)).images == expected).all()


@pytest.mark.parametrize("mode", ["rgb", "CMYK", "P", "", None, 3, ["L"]])
def test_other_modes_are_refused(folder: Path, mode: Any) -> None:
    message = re.escape(f"mode is {mode!r}; it must be 'RGB', 'L', 'RGBA' or 'I;16'")
    with pytest.raises(ConfigError, match=message):
        stoker.open(folder, mode=mode)
    with pytest.raises(ConfigError, match=message):
        open_main_split(folder, None, mode=mode)


def test_the_parts_of_a_mix_have_one_mode(folder: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other", begin=SIZE)
    message = f"datasets[1], {other}, was opened with mode='L', and datasets[0], {folder}, with mode='RGB'; open all"
    with pytest.raises(ConfigError, match=re.escape(message)):
        stoker.mix([stoker.open(folder), stoker.open(other, mode="L")])
    for mode, channels in MODES.items():
        mixed = stoker.mix([stoker.open(folder, mode=mode), stoker.open(other, mode=mode)])
        assert mixed.mode == mode
        seen = pixels(mixed, transform=stoker.Resize(SIDE))
        assert seen.shape == (2 * SIZE, SIDE, SIDE, channels)
        parts = [pixels(part, transform=stoker.Resize(SIDE)) for part in mixed.datasets]
        order = np.concatenate([batch.indices for batch in batches(mixed, transform=stoker.Resize(SIDE))])
        assert (seen == np.concatenate(parts)[order.astype(int)]).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_floats_are_the_integers_scaled(folder: Path, mode: Any, layout: Any, dtype: Any) -> None:
    train, count = stoker.open(folder, mode=mode), MODES[mode]
    plain = pixels(train)
    assert (plain.dtype, plain.shape) == (INTEGERS[mode], (SIZE, SIDE, SIDE, count))
    mean, std = (0.485, 0.456, 0.406, 0.9)[:count], (0.229, 0.224, 0.225, 0.5)[:count]
    most = 65535.0 if mode == "I;16" else 255.0
    exact = {(None, None): plain / most, (mean, std): (plain / most - mean) / std}
    for (mean_, std_), expected in exact.items():
        seen = pixels(train, output=stoker.Output(dtype, layout, mean_, std_))
        wanted = expected.transpose(0, 3, 1, 2) if layout == "NCHW" else expected
        assert seen.dtype == dtype
        assert (seen == wanted.astype(dtype)).all()


@pytest.mark.parametrize("mode", MODES)
def test_integers_in_planes_and_by_name(folder: Path, mode: Any) -> None:
    train = stoker.open(folder, mode=mode)
    plain = pixels(train)
    for output in (stoker.Output(INTEGERS[mode]), stoker.Output(None)):
        assert (pixels(train, output=output) == plain).all()
    for output in (stoker.Output(layout="NCHW"), stoker.Output(INTEGERS[mode], "NCHW")):
        seen = batches(train, output=output)
        assert (np.concatenate([batch.images for batch in seen]) == plain.transpose(0, 3, 1, 2)).all()
        assert all(batch.images.flags.c_contiguous for batch in seen)
    with stoker.Loader(train, batch_size=4, transform=TRANSFORM) as loader:
        assert loader.feed.output == stoker.Output(INTEGERS[mode])
        assert f"{INTEGERS[mode]} NHWC" in repr(loader)


@pytest.mark.parametrize(
    ("mode", "output", "message"),
    [
        ("I;16", {"dtype": "uint8"}, "dtype is 'uint8', but the dataset was opened with mode='I;16', whose integers"),
        ("RGB", {"dtype": "uint16"}, "dtype is 'uint16', but the dataset was opened with mode='RGB', whose integers"),
        ("L", {"dtype": "uint16"}, "are uint8; omit it, or give dtype='float32' or 'float16'"),
        ("L", {"mean": (0.5, 0.5, 0.5)}, "mean is (0.5, 0.5, 0.5), but the dataset was opened with mode='L'; give one"),
        ("L", {"std": (0.5,) * 4}, "with mode='L'; give one number, of grey"),
        ("I;16", {"mean": (0.5,) * 3}, "with mode='I;16'; give one number, of grey"),
        ("RGBA", {"std": (0.5,) * 3}, "with mode='RGBA'; give four numbers, of red, green, blue and alpha"),
        ("RGB", {"mean": (0.5,)}, "with mode='RGB'; give three numbers, of red, green and blue"),
    ],
)
def test_an_output_without_meaning_is_refused(folder: Path, mode: Any, output: dict[str, Any], message: str) -> None:
    meaningless = stoker.Output(**{"dtype": "float32"} | output)
    train = stoker.open(folder, mode=mode)
    for make in (stoker.Loader, stoker.torch.DataLoader, stoker.tensorflow.dataset, stoker.jax.batches):
        with pytest.raises(ConfigError, match=re.escape(message)):
            make(train, 4, transform=TRANSFORM, output=meaningless)
    with pytest.raises(ConfigError, match=re.escape(message)):
        _ = stoker.torch.MapDataset(train, TRANSFORM, output=meaningless)[0]


@pytest.mark.parametrize("count", [0, 2, 5])
def test_other_numbers_of_channels_are_refused_at_once(count: int) -> None:
    with pytest.raises(ConfigError, match=r"mean is .*; it must be finite numbers, one for each channel"):
        stoker.Output("float32", mean=(0.5,) * count)


@pytest.mark.parametrize("mode", ["RGBA", "I;16"])
def test_colour_jitter_without_meaning_is_refused(folder: Path, mode: Any) -> None:
    train, jitter = stoker.open(folder, mode=mode), stoker.ColorJitter(0.4)
    message = re.escape(f"color_jitter is ColorJitter(0.4), but the dataset was opened with mode={mode!r}; omit it")
    colored = stoker.RandomResizedCrop(SIDE, color_jitter=jitter)
    for chosen in (colored, stoker.MultiCrop(TRANSFORM, colored), stoker.RawTensor(SIDE, color_jitter=jitter)):
        with pytest.raises(ConfigError, match=message):
            stoker.Loader(train, batch_size=4, transform=chosen)


def test_colour_jitter_of_grey_is_pillows(folder: Path) -> None:
    jitter = stoker.ColorJitter(0.4, 0.4, 0.4, 0.1)
    train = stoker.open(folder, mode="L")
    plain = pixels(train)
    transform = stoker.RandomResizedCrop(SIDE, hflip=0.5, color_jitter=jitter)
    seen = pixels(train, transform=transform)
    for index in range(SIZE):
        image = Image.fromarray(plain[index, :, :, 0])
        for name, factor in transform.native().plan(SIDE, SIDE, 3, 0, index)[-1]:
            if name != "hue":  # which grey does not have
                image = colors.ENHANCERS[name](image).enhance(factor)
        assert (seen[index, :, :, 0] == np.asarray(image)).all()
    assert (seen != plain).any()


@pytest.mark.parametrize("mode", MODES)
def test_objects_are_cut_out_in_every_mode(tmp_path: Path, mode: Any) -> None:
    path, chosen = write_annotated(tmp_path / "train-00000-of-00001", SIZE), stoker.ObjectCrops(SIDE, hflip=0.5)
    train = stoker.open(path, mode=mode)
    seen = pixels(train, transform=chosen)
    owners = [(i, box) for i in range(SIZE) for box in boxes(i) or [None]]
    assert len(seen) == len(owners)
    for index, (i, box) in enumerate(owners):
        with Image.open(io.BytesIO(train[i].encoded)) as opened:
            corners = None if box is None else np.float32(box)
            expected = transform.object_crop(opened.convert(mode), chosen, transform.Draws(3, 0, index), corners)
        assert (seen[index] == expected.reshape(seen.shape[1:])).all()


def test_records_of_pixels(tmp_path: Path) -> None:
    stored = [pictures.pixels(SIDE, SIDE, i) for i in range(SIZE)]
    for order in ("HWC", "CHW"):
        frames = [tfrecord.frame(example.write(tensor(i, array, order))) for i, array in enumerate(stored)]
        path = tmp_path / "train-00000-of-00001.tfrecord"
        path.write_bytes(b"".join(frames))
        for mode in ("L", "RGBA"):
            train = stoker.open(tmp_path, mode=mode)
            for chosen in (stoker.RawTensor(SIDE), stoker.RandomResizedCrop(6, hflip=0.5)):
                seen = pixels(train, transform=chosen)
                for index, array in enumerate(stored):
                    expected = transform.show(
                        Image.fromarray(array).convert(mode), chosen, transform.Draws(3, 0, index)
                    ).reshape(seen.shape[1:])
                    assert (seen[index] == expected).all()
            expected = np.asarray(Image.fromarray(stored[0]).convert(mode)).reshape(SIDE, SIDE, -1)
            assert (train[0].decode() == expected).all()
        with pytest.raises(ConfigError, match="holds RGB pixels of 8 bits, which have no form in mode 'I;16'"):
            stoker.open(tmp_path, mode="I;16")


def test_what_is_kept_as_stored_serves_every_mode(folder: Path, tmp_path: Path) -> None:
    for cache in (stoker.MemoryCache("64MB"), stoker.NodeCache(tmp_path / "cache", "64MB")):
        for number, mode in enumerate(MODES):
            train = stoker.open(folder, mode=mode)
            assert (pixels(train, cache=cache) == pixels(train)).all()
            assert cache.stats().hits == SIZE * number


def test_decoded_pixels_are_kept_for_each_mode(folder: Path) -> None:
    cache = stoker.MemoryCache("64MB", keep="decoded")
    for again in (0, 1):
        for number, mode in enumerate(MODES):
            train = stoker.open(folder, mode=mode)
            assert (pixels(train, cache=cache) == pixels(train)).all()
            assert cache.stats().hits == again * SIZE * (number + 1)


def test_a_state_serves_every_mode(folder: Path) -> None:
    with stoker.Loader(stoker.open(folder), batch_size=4, transform=TRANSFORM, shuffle=True, seed=3) as loader:
        batches_ = iter(loader)
        next(batches_)
        state = loader.state_dict()
        rest = [batch.indices.tolist() for batch in batches_]
    train = stoker.open(folder, mode="I;16")
    with stoker.Loader(train, batch_size=4, transform=TRANSFORM, shuffle=True, seed=3) as loader:
        loader.load_state_dict(state)
        assert [batch.indices.tolist() for batch in loader] == rest


@pytest.mark.parametrize("mode", MODES)
def test_samples_one_by_one_in_pytorch(folder: Path, mode: Any) -> None:
    import torch  # noqa: PLC0415

    train = stoker.open(folder, mode=mode)
    expected = pixels(train)
    images = stoker.torch.MapDataset(train, TRANSFORM, seed=3)
    loader = torch.utils.data.DataLoader(images, batch_size=SIZE)
    (batch, _), *_ = loader
    assert batch.dtype == getattr(torch, INTEGERS[mode])
    assert (batch.numpy() == expected).all()
    in_workers = torch.utils.data.DataLoader(images, batch_size=SIZE, num_workers=1)
    assert (next(iter(in_workers))[0].numpy() == expected).all()
    seen: list[Image.Image] = []

    def note(image: Image.Image) -> np.ndarray[Any, Any]:
        seen.append(image)
        return np.asarray(image)

    own = stoker.torch.MapDataset(train, [TRANSFORM, note], seed=3)
    for index in range(SIZE):
        assert (own[index][0].reshape(expected.shape[1:]) == expected[index]).all()
    wholes = stoker.torch.MapDataset(train, note)
    for index in range(SIZE):
        assert (wholes[index][0].reshape(train[index].decode().shape) == train[index].decode()).all()
    assert {image.mode for image in seen} == {mode}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_a_share_of_a_last_step_may_be_empty(folder: Path, mode: Any, layout: Any) -> None:
    train, count = stoker.open(folder, mode=mode), MODES[mode]
    settings: dict[str, Any] = {"rank": 0, "world_size": 2, "tail": "short", "output": stoker.Output(layout=layout)}
    with stoker.Loader(train, batch_size=3, transform=BOTH, **settings) as loader:
        loader.load_state_dict(loader.state_dict() | {"consumed": SIZE - 1})
        (last,) = loader
    assert len(last) == 0
    assert [images.dtype for images in last.images] == [INTEGERS[mode]] * 2
    shapes = [(0, SIDE, SIDE, count), (0, 7, 11, count)]
    assert [images.shape for images in last.images] == [
        shape if layout == "NHWC" else (shape[0], count, *shape[1:3]) for shape in shapes
    ]


@pytest.mark.parametrize("mode", MODES)
def test_fast_decoding_is_close_in_every_mode(folder: Path, mode: Any) -> None:
    train = stoker.open(folder, mode=mode)
    exact, fast = (pixels(train, transform=stoker.Resize(8), decode=decode) for decode in ("exact", "fast"))
    assert np.abs(fast.astype(int) - exact)[2::3].max() <= 20  # the JPEGs
    others = [index for index in range(SIZE) if index % 3 != 2]  # with coarser weights alone, of alpha too
    assert np.abs(fast.astype(int) - exact)[others].max() <= (3 if mode == "RGBA" else 1)


@pytest.mark.parametrize(("mode", "output"), OUTPUTS, ids=str)
def test_pictures_of_batches_and_samples(folder: Path, mode: Any, output: stoker.Output) -> None:
    train = stoker.open(folder, mode=mode)
    plain, batch = (batches(train, output=each)[0] for each in (None, output))
    for at in range(len(batch)):
        shown, expected = original_pixels(batch.images[at], batch.origin.output, mode), visible(plain.images[at])
        assert (shown.dtype, shown.shape) == (np.uint8, (SIDE, SIDE, 3))
        if output.dtype != "float16":
            assert (shown == expected).all()
        elif mode != "I;16" or plain.images[at].max() > 255:  # a half does not tell 8 of 16 bits apart
            assert np.abs(shown.astype(int) - expected).max() <= 1
    for text in (batch._repr_html_(), train[0]._repr_html_(), train._repr_html_()):
        page = checked(text)
        assert any(tag == "img" for tag, _ in page.tags)
        assert "cannot be shown" not in page.text
        assert "damaged" not in page.text


def test_what_is_shown_of_a_mode() -> None:
    deep = np.array([[[100], [4100]], [[2100], [100]]], np.uint16)
    assert visible(deep)[:, :, 0].tolist() == [[0, 255], [128, 0]]
    assert visible(np.full((2, 2, 1), 77, np.uint8)).tolist() == np.full((2, 2, 3), 77).tolist()
    clear = np.zeros((48, 48, 4), np.uint8)
    assert set(visible(clear).ravel().tolist()) == {155, 205}
    clear[:, :, 3] = 255
    assert (visible(clear) == 0).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.slow
def test_sheets_in_every_mode(folder: Path, tmp_path: Path, mode: Any, cli: Cli) -> None:
    out = tmp_path / "sheet.png"
    for more in ([], ["--transforms", "RandomResizedCrop(24)", "--epochs", "0,1"]):
        assert "damaged" not in cli("show", folder, "--out", out, "--count", SIZE, "--mode", mode, *more)
        with Image.open(io.BytesIO(out.read_bytes())) as sheet:
            assert (sheet.format, sheet.mode) == ("PNG", "RGB")
        sheet_of_rgb = tmp_path / "rgb.png"
        cli("show", folder, "--out", sheet_of_rgb, "--count", SIZE, *more)
        assert (out.read_bytes() == sheet_of_rgb.read_bytes()) == (mode == "RGB")
