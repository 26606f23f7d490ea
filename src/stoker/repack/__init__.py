"""Records that exist already as a source of images: the one place where the read path feeds the write path."""

from __future__ import annotations

from stoker.repack.records import RecordSource, open_records

__all__ = ["RecordSource", "open_records"]
