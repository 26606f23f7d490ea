"""Hugging Face datasets: Arrow files, decoded with Pillow by ``datasets`` itself, PyTorch's DataLoader with workers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import datasets

from stoker.measure.contenders.made_once import made_once
from stoker.measure.contenders.torch_workers import batch_sizes, tensor_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.measure.task import Task


def _make(task: Task, folder: Path) -> None:
    files = task.files()
    images = [{"bytes": Path(path).read_bytes(), "path": None} for path in files.paths]
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    made = datasets.Dataset.from_dict({"image": images, "label": list(files.labels)}, features=features)
    made.save_to_disk(folder / "arrow", num_shards=1)


def batches(task: Task, key: str) -> Iterator[int]:
    """Read without end."""
    datasets.disable_progress_bars()
    folder = made_once(task, key, lambda data: _make(task, data))
    # Bytes, of which Pillow decodes once; its own decoding gives the same Pillow image with more around it.
    stored = datasets.load_from_disk(folder / "arrow").cast_column("image", datasets.Image(decode=False))

    def loaded(found: dict[str, Any]) -> dict[str, Any]:
        return {
            "image": [tensor_of(io.BytesIO(image["bytes"]), task.view) for image in found["image"]],
            "label": found["label"],
        }

    return batch_sizes(task, stored.with_transform(loaded), collate_fn=_pairs)


def _pairs(samples: list[dict[str, Any]]) -> tuple[Any, list[int]]:
    import torch  # noqa: PLC0415 - the workers' own

    return torch.stack([sample["image"] for sample in samples]), [sample["label"] for sample in samples]
