"""The former place of `stoker.storage.files`."""

from stoker.storage.files import attach_filename as naming

__all__ = ["naming"]
