"""ImageNet from its tars, which are not unpacked: the same dataset as from the folders.

    python examples/imagenet_tars.py dataset/

The images of a dataset stand for ILSVRC2012. See docs/how-to/migrate/imagenet.md.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path

import stoker
from stoker.cli.main import main as run
from stoker.format.manifest import read_manifest


def write_folders(dataset: str, root: Path, count: int) -> None:
    """Put some images of a dataset into ``train/<wnid>/``."""
    train = stoker.open(dataset, split="train")
    for sample in (train[key] for key in range(min(count, len(train)))):
        folder = root / "train" / train.classes[sample.label].name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / sample.source).write_bytes(sample.encoded)


def write_tars(root: Path, out: Path) -> None:
    """Make the train tar as it is distributed: a tar of one tar for each class."""
    out.mkdir()
    with tarfile.open(out / "ILSVRC2012_img_train.tar", "w") as outer:
        for folder in sorted((root / "train").iterdir()):
            inner_path = out / f"{folder.name}.tar"
            with tarfile.open(inner_path, "w") as inner:
                for image in sorted(folder.iterdir()):
                    inner.add(image, image.name)
            outer.add(inner_path, inner_path.name)
            inner_path.unlink()


def main(dataset: str) -> None:
    """Build from folders and from tars, and compare."""
    with tempfile.TemporaryDirectory() as work:
        folders, tars = Path(work, "folders"), Path(work, "tars")
        write_folders(dataset, folders, 120)
        write_tars(folders, tars)
        for source in (folders, tars):
            assert run(["build", str(source), f"{source}-records", "--preset", "imagenet", "--shards", "2"]) == 0
        ids = [read_manifest(f"{source}-records").dataset_id for source in (folders, tars)]
        assert ids[0] == ids[1]
        assert run(["verify", f"{tars}-records"]) == 0
        print(f"from folders and from tars: {ids[0]}")

        small = str(Path(work, "small"))
        assert run(["repack", f"{tars}-records", small, "--preset", "imagenet-nvidia", "--resize", "exact:96x96"]) == 0
        sample = stoker.open(small, split="train")[0]
        print(f"{sample.source}: {sample.decode().shape}, label {sample.label}")


if __name__ == "__main__":
    main(sys.argv[1])
