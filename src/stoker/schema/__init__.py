"""What a record says about an image: which features, under which keys."""

from __future__ import annotations

from stoker.schema.imagenet import ImagenetSchema, NvidiaSchema
from stoker.schema.pairs import DogsSchema, TfdsSchema
from stoker.schema.recognise import from_keys, recognise
from stoker.schema.schema import Sample, Schema
from stoker.schema.tensors import DlbsSchema, TinySchema

__all__ = [
    "DlbsSchema",
    "DogsSchema",
    "ImagenetSchema",
    "NvidiaSchema",
    "Sample",
    "Schema",
    "TfdsSchema",
    "TinySchema",
    "from_keys",
    "recognise",
]
