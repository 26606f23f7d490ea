"""Make the datasets that the clients read: photographs by `stoker sample`, shards by `stoker build`, nothing else.

Run in Stoker's own environment: `python clients/datasets.py DIRECTORY`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from source_trees import photographs

STOKER = Path(sys.executable).with_name("stoker")
BREEDS = ["n02085620-Chihuahua", "n02085782-Japanese_spaniel", "n02086079-Pekinese", "n02099601-golden_retriever"]
BUILDS: dict[str, list[str]] = {
    "imagenet": ["photos", "--preset", "imagenet", "--shards", "4", "--validation-shards", "2"],
    "imagenet-nvidia": ["photos", "--preset", "imagenet-nvidia", "--shards", "4", "--validation-shards", "2"],
    "dlbs": ["photos", "--preset", "dlbs", "--img-size", "96", "--num-shards", "3"],
    "dlbs-exact": ["photos", "--preset", "dlbs", "--img-size", "96", "--filter", "tf1-align-corners"],
    "tiny-imagenet": ["tiny-imagenet-200", "--preset", "tiny-imagenet"],
    "dogs-onehot": ["Images", "--preset", "dogs-onehot", "--shards", "4"],
    "tfds": ["photos", "--preset", "tfds", "--shards", "3"],
}
"""Name of each dataset, and the arguments of `stoker build` but for the destination."""


def main() -> None:
    """Make everything anew in the directory that the first argument names."""
    data = Path(sys.argv[1])
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    stoker(data, "sample", "photos", "--classes", "10", "--images", "10", "--validation", "2")
    photos = [photo.path for photo in photographs(data / "photos" / "train").values()]
    note_conversions(data, [*photos, *(photo.path for photo in photographs(data / "photos" / "validation").values())])
    make_tiny(data / "tiny-imagenet-200", sorted(photos))
    make_dogs(data / "Images", sorted(photos))
    for name, arguments in BUILDS.items():
        stoker(data, "build", *arguments[:1], name, *arguments[1:])


def stoker(data: Path, *arguments: str) -> None:
    """Run the command line in the data directory."""
    print("$ stoker", *arguments, flush=True)
    subprocess.run([STOKER, *arguments], cwd=data, check=True, stdout=subprocess.DEVNULL)


def note_conversions(data: Path, paths: list[Path]) -> None:
    """Write down, by Pillow's word, which photographs are not JPEG of grey or colour."""
    odd = []
    for path in paths:
        with Image.open(path) as image:
            if image.format != "JPEG" or image.mode == "CMYK":
                odd.append(path.name)
    (data / "converted.json").write_text(json.dumps(sorted(odd)))


def save_square(source: Path, destination: Path, *, grey: bool = False) -> None:
    """Save a photograph of 64 x 64 pixels."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(source) as image:
        image.convert("L" if grey else "RGB").resize((64, 64)).save(destination, "JPEG", quality=90)


def make_tiny(tree: Path, photos: list[Path]) -> None:
    """Lay out photographs as TinyImageNet does: train in folders, validation by a list, test without classes."""
    wnids = sorted({path.parent.name for path in photos})
    for position, path in enumerate(photos):
        wnid = path.parent.name
        save_square(path, tree / "train" / wnid / "images" / f"{wnid}_{position}.JPEG", grey=position % 29 == 0)
    lines = []
    for position, path in enumerate(photos[::9]):
        save_square(path, tree / "val" / "images" / f"val_{position}.JPEG")
        save_square(path, tree / "test" / "images" / f"test_{position}.JPEG")
        lines.append(f"val_{position}.JPEG\t{path.parent.name}\t0\t0\t63\t63\n")
    (tree / "val" / "val_annotations.txt").write_text("".join(lines))
    (tree / "wnids.txt").write_text("".join(f"{wnid}\n" for wnid in reversed(wnids)))
    (tree / "words.txt").write_text("".join(f"{wnid}\tthing {wnid}\n" for wnid in wnids))


def make_dogs(tree: Path, photos: list[Path]) -> None:
    """Lay out photographs as Stanford Dogs does."""
    for position, path in enumerate(photos):
        breed = BREEDS[position % len(BREEDS)]
        destination = tree / breed / f"{breed[:9]}_{position}.jpg"
        destination.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(path) as image:
            image.convert("RGB").save(destination, "JPEG", quality=90)


if __name__ == "__main__":
    main()
