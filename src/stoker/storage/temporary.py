"""The former place of `stoker.storage.files`."""

from stoker.storage.files import TEMPORARY_MARK, temporary_name

__all__ = ["TEMPORARY_MARK", "temporary_name"]
