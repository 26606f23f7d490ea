"""Stoker keeps accelerators fed with images: files to TFRecord shards to batches, at the speed of the JPEG codec.

>>> import stoker                                                         # doctest: +SKIP
>>> stoker.build("photos/", "dataset/", shards=8, resize="short:256")     # doctest: +SKIP
>>> train = stoker.open("dataset/", split="train")                        # doctest: +SKIP
>>> transform = stoker.RandomResizedCrop(224, hflip=0.5)                  # doctest: +SKIP
>>> for batch in stoker.Loader(train, batch_size=256, transform=transform, shuffle=True, seed=17):  # doctest: +SKIP
...     print(batch.images.shape, batch.labels.shape)

``stoker.torch``, ``stoker.tensorflow`` and ``stoker.jax`` hold the same loader for those frameworks, ``stoker.spark``
builds on a cluster; they are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stoker import errors as errors

if TYPE_CHECKING:
    from stoker.builder import BuildReport, PartReport, build
    from stoker.exporting import ExportedSplit, ExportReport, export
    from stoker.format import RecordKeys
    from stoker.inspect import AuditedImage, AuditedSplit, AuditReport, DoctorReport, DuplicateGroup, audit, doctor
    from stoker.loader import (
        BadSample,
        BadSampleReport,
        Balanced,
        Batch,
        Boxes,
        BoxOutput,
        CacheStats,
        Dataset,
        Loader,
        LoaderStats,
        MemoryCache,
        Mix,
        NodeCache,
        PaddedBoxes,
        ReadAhead,
        Sample,
        StageStats,
        Weighted,
        loader_settings,
        mix,
        trace,
    )
    from stoker.loader import open_dataset as open  # noqa: A004 - `stoker.open` is the name people type
    from stoker.merging import MergeReport, merge
    from stoker.order import BlockShuffle, Position
    from stoker.storage import location
    from stoker.transforms import (
        CenterCrop,
        ColorJitter,
        MultiCrop,
        ObjectCrops,
        Output,
        RandomResizedCrop,
        RawTensor,
        Resize,
        TopLeft,
    )

    __version__: str

__all__ = [
    "AuditReport",
    "AuditedImage",
    "AuditedSplit",
    "BadSample",
    "BadSampleReport",
    "Balanced",
    "Batch",
    "BlockShuffle",
    "BoxOutput",
    "Boxes",
    "BuildReport",
    "CacheStats",
    "CenterCrop",
    "ColorJitter",
    "Dataset",
    "DoctorReport",
    "DuplicateGroup",
    "ExportReport",
    "ExportedSplit",
    "Loader",
    "LoaderStats",
    "MemoryCache",
    "MergeReport",
    "Mix",
    "MultiCrop",
    "NodeCache",
    "ObjectCrops",
    "Output",
    "PaddedBoxes",
    "PartReport",
    "Position",
    "RandomResizedCrop",
    "RawTensor",
    "ReadAhead",
    "RecordKeys",
    "Resize",
    "Sample",
    "StageStats",
    "TopLeft",
    "Weighted",
    "audit",
    "build",
    "doctor",
    "errors",
    "export",
    "loader_settings",
    "location",
    "merge",
    "mix",
    "open",
    "trace",
]

_MODULES = ("fields", "image", "inspect", "jax", "order", "spark", "tensorflow", "torch", "transforms")
_NOT_OF_LOADER = {
    "builder": ("BuildReport", "PartReport", "build"),
    "exporting": ("ExportReport", "ExportedSplit", "export"),
    "format": ("RecordKeys",),
    "inspect": ("AuditReport", "AuditedImage", "AuditedSplit", "DoctorReport", "DuplicateGroup", "audit", "doctor"),
    "merging": ("MergeReport", "merge"),
    "order": ("BlockShuffle", "Position"),
    "storage": ("location",),
    "transforms": (
        "CenterCrop",
        "ColorJitter",
        "MultiCrop",
        "ObjectCrops",
        "Output",
        "RandomResizedCrop",
        "RawTensor",
        "Resize",
        "TopLeft",
    ),
}
_HOMES = dict.fromkeys(__all__, "loader") | {name: home for home, names in _NOT_OF_LOADER.items() for name in names}
"""Where each name is defined. It is imported with its first use, so that ``import stoker`` takes no time."""


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name in _MODULES:
        return importlib.import_module(f"stoker.{name}")
    if name == "open":
        value = importlib.import_module("stoker.loader").open_dataset
    elif name == "__version__":
        value = importlib.import_module("stoker.config").stoker_version()
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"stoker.{_HOMES[name]}"), name)
    elif name.startswith("__"):  # what programs ask for, often
        raise AttributeError(f"module 'stoker' has no attribute {name!r}")
    else:
        from stoker.habits import NAMES, answer_to  # noqa: PLC0415 - nobody else needs it

        raise AttributeError(f"module 'stoker' has no attribute {name!r}{answer_to(name, __all__, NAMES)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return what there is to use."""
    return sorted([*__all__, *_MODULES, "__version__"])
