"""The files of a dataset: shards, their indexes, the manifest, labels and rejects. `docs/format.md` is the norm."""

from __future__ import annotations
