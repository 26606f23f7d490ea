"""What a record says about an image: which features, under which keys."""

from __future__ import annotations

from stoker.schema.imagenet import ImagenetSchema
from stoker.schema.schema import FeatureSpec, Sample, Schema

__all__ = ["FeatureSpec", "ImagenetSchema", "Sample", "Schema"]
